"""Run one request after another in the engine's process: plan, load, run, yield events, and retry as the plan allows."""
