"""One request in, a stream of events out."""
