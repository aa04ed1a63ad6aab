"""Parse what people write to be spoken: scripts, voices, captions of clips. No torch."""
