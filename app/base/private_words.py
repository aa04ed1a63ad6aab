"""Hide folders and the names of this user and this computer in a text that may leave the machine."""

from __future__ import annotations

import getpass
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

SHORTEST: Final = 3
ROOT: Final = r"(?:~|[A-Za-z]:)?[/\\]"
_PART: Final = r"""[^\s"'`:;,()]"""
_WORD: Final = r"""[^\s"'`:;,()/\\]"""
_PATH: Final = re.compile(
    rf"""(["'`]){ROOT}[^"'`\n]*\1|(?<![\w.]){ROOT}{{1,2}}[\w.~-]+{_PART}*(?: (?:{_WORD}+ ){{0,3}}{_WORD}*[/\\]{_PART}*)*"""
)
"""A path from a root goes up to its quote, or to the last word with a slash; a folder's name may hold four words."""


def hide_private(words: str) -> str:
    """Return a machine's error message without folders, user and host name; of a path its last part stays."""
    with suppress(RuntimeError):  # an account without a home
        for home in (str(Path.home()), Path.home().as_posix()):  # with spaces or quotes in it
            words = words.replace(home, "~")
    words = _PATH.sub(lambda found: ".../" + re.split(r"[/\\]", found[0].strip("\"'`").rstrip("/\\"))[-1], words)
    return _hide_own_names(words)


def _hide_own_names(words: str) -> str:
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
