"""Families of pictures, a file each."""
