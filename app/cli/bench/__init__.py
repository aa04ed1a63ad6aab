"""hearth bench: measure Hearth on this machine, in turn with the plain libraries."""
