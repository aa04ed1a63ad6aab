"""Dia: its layers, its decoder, its codec, and what makes them quick on this machine."""
