"""Speak a request part by part with a loaded voice. Knows nothing of queues."""
