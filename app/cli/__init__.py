"""The engine from the command line."""
