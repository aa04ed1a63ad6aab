"""Make the environment, start Hearth in it and supervise it. Standard library only, except desktop_entry and window."""
