"""Copy the database by SQLite's own means, daily and before each update; keep a few copies."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from app.base import atomic_write
from app.base.paths import Home

KEPT: Final = 7
DAY_S: Final = 86_400.0
BUSY_S: Final = 10
_log = logging.getLogger("hearth")


def list_backups(home: Home, file: Path | None = None) -> list[Path]:
    """List the copies of the database, or of another `file`, newest first."""
    return sorted(home.backups.glob(f"{(file or home.database).stem}-*.sqlite3"), reverse=True)


def make_backup(home: Home) -> Path | None:
    """Copy the database, and the gallery beside it, and delete copies beyond the newest few; None if there is no database. A copy that does
    not pass SQLite's check is not kept. Raise OSError or sqlite3.Error if it cannot be made."""
    made = [_copy(home, file) for file in (home.gallery, home.database) if file.is_file()]
    return made[-1] if home.database.is_file() else None


def _copy(home: Home, file: Path) -> Path:
    path = home.backups / f"{file.stem}-{time.strftime('%Y-%m-%d-%H%M%S')}.sqlite3"
    with atomic_write.replacing(path) as unfinished:
        with closing(sqlite3.connect(file, timeout=BUSY_S)) as source, closing(sqlite3.connect(unfinished)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without -wal beside it
            ((verdict,),) = copy.execute("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
    for old in list_backups(home, file)[KEPT:]:
        old.unlink(missing_ok=True)
    return path


def make_daily_backup(home: Home) -> None:
    """Make a backup if the newest one is a day old, or its date is in the future. A failure is logged and tried again
    the next time."""
    try:
        newest = max((each.stat().st_mtime for each in list_backups(home)), default=0.0)
        if not 0 <= time.time() - newest < DAY_S:
            make_backup(home)
    except (OSError, sqlite3.Error) as fault:
        _log.warning("the daily backup: %s", fault)
