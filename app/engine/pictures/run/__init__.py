"""Paint a request with a loaded diffusers pipeline: settings, prompt weights, steps, previews, checkpoints."""
