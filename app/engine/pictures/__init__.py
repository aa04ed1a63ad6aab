"""Pictures: prompts, the pipelines of each family, and their runs. Torch below run and families alone."""
