"""Diffusion pipelines of every family, loaded and put where the plan says. Runs no request."""
