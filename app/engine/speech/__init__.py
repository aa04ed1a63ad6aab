"""Speak a request with Dia: load it, encode a voice recording, decode part by part. Knows nothing of queues."""
