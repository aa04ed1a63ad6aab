"""How a person adds what Hearth can do without: the one command for the way in which Hearth came."""

from __future__ import annotations

import sys
from pathlib import Path

START = Path(__file__).parent.parent / "start.py"


def install_command(extra: str) -> str:
    """In an environment of start.py's own, `add` also keeps it over updates and repairs."""
    if START.is_file() and (Path(sys.prefix) / "hearth.json").is_file():
        return f'"{sys.executable}" "{START}" add {extra}'
    return f'"{sys.executable}" -m pip install "hearth[{extra}]"'
