"""Sound as files and streams: read, converted, joined, encoded. No torch."""
