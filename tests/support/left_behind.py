"""What a helper's disk holds of another machine's tasks, and a job of its owner's beside it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from app.base.paths import Home


def leave_something(place: Home, age_s: float = 0.0) -> list[Path]:
    """Return a fetched file, what was made for a task, and a job of the owner's."""
    when = time.time() - age_s
    files = [place.scratch / name for name in ("machines/files/f", "jobs/lent-1/picture.png", "jobs/2/picture.png")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
        os.utime(file, (when, when))
        os.utime(file.parent, (when, when))
    return files
