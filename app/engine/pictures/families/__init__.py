"""Load diffusion pipelines of every family and place their parts as planned. Runs no request."""
