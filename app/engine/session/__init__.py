"""One request after another in the engine's process: plan, load, run, yield events, and try again as the plan allows."""
