"""Speech heard back: what is said in a sound, when, and whether it is what was meant."""
