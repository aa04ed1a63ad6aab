"""hearth bench, from a checkout: measure Hearth on this machine, in turn with the plain libraries."""
