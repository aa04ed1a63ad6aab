"""Hide the names of this user and this computer in a text."""

from __future__ import annotations

import getpass
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

SHORTEST: Final = 3


def hide_own_names(words: str) -> str:
    for name in _list_names():
        words = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "...", words, flags=re.IGNORECASE)
    return words


def _list_names() -> list[str]:
    """List them, longest first."""
    found = {platform.node(), platform.node().partition(".")[0]}
    with suppress(RuntimeError):
        found.add(Path.home().name)
    with suppress(KeyError, OSError, ImportError):
        found.add(getpass.getuser())
    return sorted((each for each in found if len(each) >= SHORTEST), key=len, reverse=True)
