"""Speech: scripts, sound as files, the voices of each family, and their runs. Torch below run and families alone."""
