"""What people write: scripts, voices, captions, prompt weights. Text alone: no torch."""
