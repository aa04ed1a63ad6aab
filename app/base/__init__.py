"""What every room may use: sentences, files, the system. Leaves, without torch and without Gradio."""
