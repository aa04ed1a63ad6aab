"""Speak a request with Dia: load it, hear a voice's sample, decode part by part. Knows nothing of queues."""
