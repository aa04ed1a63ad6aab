"""Facts, memory readings and test verdicts of this computer. Knows nothing of plans and imports no torch."""
