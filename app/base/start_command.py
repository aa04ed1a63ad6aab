"""How Hearth is called in a terminal, and where its start.py lies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

START: Final = Path(__file__).parents[2] / "start.py"


def name_command() -> str:
    """Return how Hearth is called in a terminal, as every sentence writes it: from its folder, as the README does, or where pip put it."""
    if not START.is_file():
        return "hearth"
    return "Hearth.bat" if os.name == "nt" else "python3 start.py"
