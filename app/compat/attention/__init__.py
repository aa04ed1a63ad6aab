"""Replace torch's attention according to a plan: choose a way for each call and compute it. Decides nothing about
models."""
