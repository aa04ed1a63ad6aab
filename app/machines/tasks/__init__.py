"""What travels between machines: requests with their files by hash, events, and facts. Pure, but for reading files."""
