"""Areas of the page, one folder each."""
