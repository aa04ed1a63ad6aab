"""Know models, installed and available: detect, download, remove and forecast them. Torch below loading alone."""
