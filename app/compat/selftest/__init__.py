"""Ask this machine whether attention is right on it, and make a pretended machine fail as a real one does."""
