"""What start.py runs over the checkout itself: style, house rules, types, and the tests of all, of the quick ones, or of one room."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# Options for the whole test suite: one worker more than cores, because a third of it waits for browsers and processes. Each spends half a
# minute of a slow core on reading all tests, so four are the most. Named tests run serially and may print.
ALL_TESTS: Final = ("-n", str(min(4, (os.cpu_count() or 1) + 1)), "--dist", "loadfile")
TESTS: Final = {(): ALL_TESTS, ("fast",): ("--fast", *ALL_TESTS)}

STYLE: Final = (("ruff", "check", "."), ("ruff", "format", "--check", "."))
HOUSE: Final = ("pytest", "-q", "-rs", "-n", "0", "tests/test_house.py", "-k", "not test_style_and_types[")
CHECKS: Final = {"style": STYLE, "lint": (*STYLE, HOUSE), "types": (("mypy",),)}


def list_programs(verb: str, words: Sequence[str], top: Path) -> list[tuple[str, ...]]:
    """Name the modules that a command runs one after the other, each with its words."""
    if verb in CHECKS:
        return list(CHECKS[verb])
    return [("pytest", *TESTS.get(tuple(words), [_find_room(word, top) for word in words]))]


def _find_room(word: str, top: Path) -> str:
    """Take a room's name for the folder of its tests: `speech`, `ui/tabs`, `keeper`."""
    if not word or word.startswith("-") or (top / word.partition("::")[0]).exists():
        return word
    found = [each for each in sorted((top / "tests").rglob(f"{word}/")) if each.is_dir()]
    return found[0].relative_to(top).as_posix() if len(found) == 1 else word
