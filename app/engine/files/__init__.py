"""Read and write users' files: sound, picture settings, paths, safetensors headers. Loads no model."""
