"""Each family of voices, a package of its own: its facts, its voice, and what makes it quick here. Only a row names it."""
