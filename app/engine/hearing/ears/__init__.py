"""Recognisers in torch: loaded as a plan says, and what they hear."""
