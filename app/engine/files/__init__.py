"""Files people bring and take away: sound, pictures' settings, paths, safetensors' headers. Loads no model."""
