"""Make the environment, start Hearth in it and watch it. Standard library only, but for desktop_entry."""
