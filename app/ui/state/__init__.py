"""What the window holds: the desk, a person's settings and presets, what a guest may do. Knows no page."""
