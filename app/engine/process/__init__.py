"""The engine as a process of its own, kept by the window's: started, fed, watched, buried. Only the worker knows torch."""
