"""The window's tabs: what stands on each, and what its buttons call."""
