"""Pictures as files: the settings that they carry, of Hearth and of other tools."""
