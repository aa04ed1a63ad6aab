"""What this computer is and was seen to do: facts, readings, verdicts. Knows nothing of plans, and imports no torch."""
