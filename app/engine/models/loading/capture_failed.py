"""Define the error for a graph that torch refused to capture; the session makes rows call by call from then on."""


class CaptureFailed(RuntimeError):
    """torch refused to capture a graph."""
