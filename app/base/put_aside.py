"""Rename a damaged file or folder, so that it is kept, with the date, and its name is free again."""

from __future__ import annotations

import itertools
import time
from pathlib import Path


def put_aside(path: Path) -> Path:
    """Rename `path` within its folder and return its new path. Raise OSError if the system does not allow it."""
    dated = f"{path.name}.{time.strftime('%Y-%m-%d-%H%M%S')}"
    numbers = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    free = (target for number in numbers if not (target := path.with_name(f"{dated}{number}.damaged")).exists())
    return path.rename(next(free))
