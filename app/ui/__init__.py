"""The window; imports no torch."""
