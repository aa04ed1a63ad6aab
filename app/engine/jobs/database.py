"""Open the SQLite file and create its tables, whose rows belong to journal.py and shelf.py."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, request TEXT NOT NULL, choice TEXT NOT NULL, state TEXT NOT NULL,
    position REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, runner TEXT NOT NULL DEFAULT '', words TEXT NOT NULL DEFAULT '',
    created_s REAL NOT NULL, started_s REAL, ended_s REAL
);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, position);
CREATE TABLE IF NOT EXISTS creations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL,
    request TEXT NOT NULL, plan TEXT NOT NULL, path TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL, seconds REAL NOT NULL,
    rate REAL NOT NULL, unit TEXT NOT NULL, elapsed_s REAL NOT NULL, highest_bytes INTEGER NOT NULL, whole INTEGER NOT NULL,
    favourite INTEGER NOT NULL DEFAULT 0, created_s REAL NOT NULL, binned_s REAL
);
CREATE INDEX IF NOT EXISTS creations_by_age ON creations (binned_s, created_s DESC);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, model, content='creations', content_rowid='id', tokenize='trigram');
CREATE TRIGGER IF NOT EXISTS creations_added AFTER INSERT ON creations BEGIN
    INSERT INTO words (rowid, text, model) VALUES (new.id, new.text, new.model);
END;
CREATE TRIGGER IF NOT EXISTS creations_gone AFTER DELETE ON creations BEGIN
    INSERT INTO words (words, rowid, text, model) VALUES ('delete', old.id, old.text, old.model);
END;
"""
BUSY_S = 10


def read_number(value: object) -> float:
    """Return a stored number; raise ValueError for infinity, which no page can show, and TypeError for anything else."""
    if not isinstance(value, int | float):
        raise TypeError(value)
    if not math.isfinite(value):
        raise ValueError(value)
    return value


class Database:
    """One connection that threads share under a lock."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.executescript(SCHEMA)

    def query(self, query: str, *values: object) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def write(self, query: str, *values: object) -> int:
        """Execute a statement and return the number of rows it changed."""
        with self._lock:
            return self._connection.execute(query, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction that also locks out other processes."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()
