"""Know models, installed and available: detect, download, remove and forecast them. No torch."""
