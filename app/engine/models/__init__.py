"""The models there are, which lie on this disk, how they come here, and what this machine would do with them. No torch."""
