"""Run the engine as a child process of the window: start, feed, watch and restart it. Only the worker imports torch."""
