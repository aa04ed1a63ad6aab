"""Parse what people write: scripts, voices, captions, prompt weights. No torch."""
