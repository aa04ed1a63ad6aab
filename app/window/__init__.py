"""Hearth's own window: a small process around the system's web view. Imports neither torch nor Gradio, and knows no tab."""
