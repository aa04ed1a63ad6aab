"""What the other machine's tasks brought onto this disk, and what was made for it: how long that stays, and that it goes with the pairing."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from app.base.paths import Home
from app.engine.jobs.tasks import is_lent
from app.machines.sent_models import SentModels
from app.machines.tasks import fetched_files


def tidy(home: Home) -> None:
    """Delete what no task needed for a day, and models that none needed for two weeks."""
    fetched_files.tidy(_fetched(home))
    SentModels(home).tidy()
    for folder in _list_made(home):
        if time.time() - folder.stat().st_mtime > fetched_files.UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def clear(home: Home) -> None:
    """Delete all of it: no task comes any more."""
    for folder in (_fetched(home), home.scratch / "machines" / "models", *_list_made(home)):
        shutil.rmtree(folder, ignore_errors=True)


def _fetched(home: Home) -> Path:
    return home.scratch / "machines" / "files"


def _list_made(home: Home) -> list[Path]:
    jobs = home.scratch / "jobs"
    return [each for each in jobs.iterdir() if is_lent(each.name)] if jobs.is_dir() else []
