"""Read what is left of a damaged or a stranger's SQLite file through SQLite: past its damaged rows, and by a new first page where its own is broken."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from app.engine.jobs.database import make_empty, read_list

Row = dict[str, Any]
PAGE_BYTES: Final = 4096
PAGES_PLACE: Final = slice(28, 32)
"""Here the first page counts the pages; 0 stands for as many as there are. The format is documented at sqlite.org/fileformat2.html."""
SKIPPED_MOST: Final = 1000
"""After so many rows one after the other that cannot be read, the rest is read from the end; fewer lie on a page."""
MOST_S: Final = 20.0
ROW_BYTES: Final = 100
"""Every row of Hearth's takes more in the file."""
FAULTS: Final = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)


def read_rows(file: Path, tables: Mapping[str, Sequence[str]], anew: bool = False) -> dict[str, list[Row]]:
    """Return the rows of each table that SQLite can still read, by the columns asked for. `file` is not changed. `anew`: by the first page of
    a new database, whose tables begin at the same pages."""
    found: dict[str, list[Row]] = {table: [] for table in tables}
    if not file.is_file():
        return found
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        address = f"{file.absolute().as_uri()}?immutable=1"  # without its -wal file: there may be no room for a copy
        size = file.stat().st_size
        with suppress(OSError):
            copy = Path(shutil.copyfile(file, Path(folder) / "copy.sqlite3"))
            if anew:
                with copy.open("r+b") as opened:
                    opened.write(_make_first_page())
            if (wal := Path(f"{file}-wal")).is_file():
                shutil.copyfile(wal, f"{copy}-wal")
                size += wal.stat().st_size
            address = copy.as_uri()
        with suppress(*FAULTS), closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size)
            read_list(connection)
            real = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table' AND rootpage>0")}
            for table in found.keys() & real:  # a view may be a query without an end
                about = connection.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
                stored = {column["name"] for column in about if not column["hidden"]}  # any other is calculated, as a stranger likes
                if (names := [name for name in tables[table] if name in stored]) and "rowid" not in stored:
                    found[table] = _read_table(connection, table, names, 2 * size)
    return found


def _make_first_page() -> bytes:
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder, closing(make_empty()) as empty:
        with closing(sqlite3.connect(Path(folder) / "empty.sqlite3")) as stored:
            empty.backup(stored)
        page = bytearray((Path(folder) / "empty.sqlite3").read_bytes()[:PAGE_BYTES])
    page[PAGES_PLACE] = bytes(4)
    return bytes(page)


def _read_table(connection: sqlite3.Connection, table: str, names: Sequence[str], most_bytes: int) -> list[Row]:
    """Read a table, up to what a file of its size can hold: pages of a stranger's may refer to each other without end."""
    rows: dict[int, Row] = {}
    columns, end_s = ", ".join(f'"{name}"' for name in names), time.monotonic() + MOST_S
    for row in _find_rows(connection, f'SELECT rowid AS "rowid", {columns} FROM "{table}"', end_s):
        values = dict(row)
        rows.setdefault(values.pop("rowid"), values)
        most_bytes -= ROW_BYTES + sum(len(value) for value in values.values() if isinstance(value, str | bytes))
        if most_bytes < 0 or time.monotonic() > end_s:
            break
    return [rows[number] for number in sorted(rows)]


def _find_rows(connection: sqlite3.Connection, query: str, end_s: float) -> Iterator[sqlite3.Row]:
    """Yield a table's rows from its start, past those that cannot be read, and after more of these than a page has, from its end."""
    following = skipped = 0
    while skipped < SKIPPED_MOST and time.monotonic() < end_s:  # a row that cannot be read may take as long as the file is large
        try:
            for row in connection.execute(f"{query} WHERE rowid>=? ORDER BY rowid", (following,)):
                yield row
                if row["rowid"] >= following:
                    following, skipped = row["rowid"] + 1, 0
            return
        except FAULTS:
            with suppress(*FAULTS):  # Python's sqlite3 steps ahead, so that a fault hides the row before it
                yield from connection.execute(f"{query} WHERE rowid=?", (following,))
            following, skipped = following + 1, skipped + 1
    with suppress(*FAULTS):
        yield from connection.execute(f"{query} ORDER BY rowid DESC")
