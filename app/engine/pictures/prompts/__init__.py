"""What a prompt says: its weights, and the words that the starter painter knows. No torch."""
