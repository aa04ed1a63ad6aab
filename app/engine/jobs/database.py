"""Open a SQLite file and create its tables, whose rows belong to journal.py and shelf.py, or, in a file of its own, to gallery.py."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
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
VERSION = 1
"""A newer Hearth that changes the tables counts this up. 0: the database is from before there was a version."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What a file consists of. A Hearth that finds anything else in it takes the file for damaged, so what a later version adds lies in
    another file: `start.py back` has to open the same home."""

    sql: str
    version: int
    names: tuple[str, ...]
    """These tables hold rows of Hearth's own."""
    searched: bool = False
    """There is a full-text table."""


JOBS = Tables(SCHEMA, VERSION, ("jobs", "creations"), searched=True)
BUSY_S = 10
SYNCHRONOUS = "FULL"
"""What was told as kept is on the disk, whatever happens to the power."""
LIST_STEPS = 100_000
"""The list of tables may take this many of SQLite's steps; Hearth's takes a few hundred."""


SHADOWS = {("table", f"words_{name}", f"words_{name}") for name in ("data", "idx", "docsize", "config")}
"""SQLite makes these tables for the full-text table, in words of its version."""


def describe_schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """Return kind, name, table and SQL of all that a database consists of; of the full-text table's own tables no SQL."""
    rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    found = {tuple(" ".join(str(each).split()) for each in row) for row in rows}
    return {row[:3] if row[:3] in SHADOWS else row for row in found}


def read_list(connection: sqlite3.Connection) -> None:
    """Have SQLite read the list of tables; raise sqlite3.Error if it has no end: pages of a stranger's may refer to each other."""
    connection.set_progress_handler(lambda: True, LIST_STEPS)
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    connection.set_progress_handler(None, 0)


def make_empty(tables: Tables = JOBS) -> sqlite3.Connection:
    """Make an empty database in memory."""
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    connection.executescript(tables.sql)
    return connection


def list_columns(tables: Tables = JOBS) -> dict[str, list[str]]:
    """Return the columns of the tables that hold rows of Hearth's own."""
    with closing(make_empty(tables)) as empty:
        return {table: [row[1] for row in empty.execute(f"PRAGMA table_info({table})")] for table in tables.names}


def check(connection: sqlite3.Connection, tables: Tables = JOBS) -> None:
    """Raise sqlite3.Error if the file is damaged, has tables of another version, or anything besides, such as a trigger of a stranger's.
    Nothing is changed."""
    ((version,),) = connection.execute("PRAGMA user_version")
    with closing(make_empty(tables)) as empty:
        if not 0 <= version <= tables.version or describe_schema(connection) != describe_schema(empty):
            raise sqlite3.DatabaseError(f"its tables are of another version ({version})")
    ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)
    if tables.searched:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")


def read_number(value: object) -> float:
    """Return a stored number; raise ValueError for infinity, which no page can show, and TypeError for anything else."""
    if not isinstance(value, int | float):
        raise TypeError(value)
    if not math.isfinite(value):
        raise ValueError(value)
    return value


def read_text(value: object) -> str:
    """Return a stored text; raise TypeError for anything else: SQLite stores bytes and numbers in any column."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _connect(path: Path, tables: Tables) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # one damaged letter takes no page of the shelf
        read_list(connection)
        if describe_schema(connection):
            check(connection, tables)
        connection.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
        connection.execute("PRAGMA journal_mode=WAL")
        version = "" if connection.execute("PRAGMA user_version").fetchone()[0] else f"PRAGMA user_version={tables.version};"
        connection.executescript(f"BEGIN IMMEDIATE;{tables.sql}{version}COMMIT;")
    except BaseException:
        connection.close()
        raise
    return connection


class Database:
    """One connection that threads share under a lock."""

    def __init__(
        self, path: Path, stand_in: sqlite3.Connection | None = None, mend: Callable[[], object] | None = None, tables: Tables = JOBS
    ) -> None:
        """Open a file, or make it. Raise sqlite3.Error if it is damaged or cannot be written. `stand_in`: what to read
        while the disk is full; the first change that finds room opens the file. `mend`: repairs a damaged one before
        that, or raises sqlite3.Error."""
        self._path, self._tables, self._lock = path, tables, threading.RLock()
        self.writes = 0
        """Counted, so that readers know when to look again."""
        self._connection = stand_in or _connect(path, tables)
        self._stands_in, self._mend = stand_in is not None, mend

    def query(self, query: str, *values: object) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def write(self, query: str, *values: object) -> int:
        """Execute a statement and return the number of rows it changed."""
        with self._lock:
            self._leave_stand_in()
            try:
                return self._connection.execute(query, values).rowcount
            finally:
                self.writes += 1

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction that also locks out other processes."""
        with self._lock:
            self._leave_stand_in()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite ends it by itself after some errors
                    self._connection.execute("ROLLBACK")
                self.writes += 1
                raise

    def _leave_stand_in(self) -> None:
        if self._stands_in:
            if self._mend is not None:
                self._mend()
                self._mend = None
            opened = _connect(self._path, self._tables)
            self._connection.close()
            self._connection, self._stands_in = opened, False

    @property
    def stands_in(self) -> bool:
        """Whether a copy in memory is read, which may lack rows."""
        return self._stands_in

    def close(self) -> None:
        with self._lock:
            self._connection.close()
