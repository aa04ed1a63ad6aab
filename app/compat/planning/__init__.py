"""From facts and needs to a plan, each field with its reason: tables and pure functions, and no torch."""
