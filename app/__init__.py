"""Hearth: local speech and pictures on the machine you already own."""

__version__ = "0.1.0"
