"""A job as values and on disk: what is asked, what happened, what was made. Loads no model."""
