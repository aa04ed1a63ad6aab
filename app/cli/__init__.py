"""The command line: one module per command. Wiring only; the engine and the window do the work."""
