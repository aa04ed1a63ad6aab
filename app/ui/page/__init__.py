"""What the page is made of: its look, its scripts, its words, its pieces. Holds nothing of a person."""
