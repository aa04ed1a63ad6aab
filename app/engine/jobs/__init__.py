"""Define jobs as values and store them on disk: requests, events, results. Loads no model."""
