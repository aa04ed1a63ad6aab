"""The command line: one file a command. Only wiring; what is done stands in the engine and the window."""
