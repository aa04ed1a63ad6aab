"""Open the database; put a broken one aside and make a new one from its readable rows, the backups and the files."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from app.base import notices
from app.base.disk_faults import is_database_refused, is_disk_full, word_fault
from app.base.paths import Home
from app.base.put_aside import put_aside
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs import backups, salvage
from app.engine.jobs.creation import BIN, is_own, read_creation
from app.engine.jobs.database import JOBS, Database, Tables, list_columns, make_empty
from app.engine.jobs.gallery import GALLERY
from app.engine.jobs.journal import read_job
from app.engine.keeper.disk_room import ROOM_BYTES, describe_lack
from app.engine.keeper.shelf_refill import correct, find_unlisted

SIDE_FILES: Final = ("-wal", "-shm")
WAL_STARTS: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
BLOCK_BYTES: Final = 1 << 20
FILLED_IN: Final[Mapping[str, object]] = {
    "attempts": 0, "runner": "", "words": "", "rate": 0.0, "unit": "", "elapsed_s": 0.0, "highest_bytes": 0, "favourite": 0, "plan": "{}",
}  # fmt: skip
"""Columns that the rows of another version lack get these values."""
Row = Mapping[str, Any]


def open_database(home: Home, alone: bool) -> Database:
    """Open or make the database, whatever its state. `alone`: this process is the window, one per folder; a command
    repairs nothing while a window is open. On a full disk, what can be read is held in memory until there is room."""
    file = home.database
    try:
        if not file.exists() and not any(home.creations.glob("*.*")) and not backups.list_backups(home):
            return Database(file)
        if file.is_file() and file.stat().st_size:
            if alone:
                _drop_broken_wal(file)
            return Database(file)
        _require_readable(file)
        fault = "it is missing or empty"
    except (sqlite3.Error, OSError, UnicodeError) as broken:
        _require_readable(file, broken)
        if is_disk_full(broken):
            return _read_until_room(home, broken)
        if is_in_use(broken):
            raise Trouble(
                say(
                    "database.in-use",
                    "{file} is held by another program ({fault}). Close that program, then start Hearth again.",
                    file=str(file),
                    fault=str(broken),
                )
            ) from broken
        fault = str(broken)
    if alone:
        return _restore(home, fault, partial(_mend, home, fault))
    try:
        with FileLock(home.open_lock, timeout=0):
            return _restore(home, fault, partial(_leave_to_window, fault))
    except Timeout:
        raise Trouble(
            say(
                "database.window-open",
                "{file} cannot be used ({fault}). Quit the Hearth window and open it again: it repairs the file.",
                file=str(file),
                fault=fault,
            )
        ) from None


def open_gallery(home: Home) -> Database:
    """Open or make the file of albums, tags and names, whatever its state: what can be read of a broken one is put into a new one. On a full
    disk it is held in memory until there is room."""
    file = home.gallery
    try:
        return Database(file, tables=GALLERY)
    except (sqlite3.Error, OSError, UnicodeError) as broken:
        if is_disk_full(broken) or is_in_use(broken) or is_database_refused(broken):
            return Database(file, _read_into_memory(file, GALLERY), tables=GALLERY)
        fault = str(broken)
    columns, sources = list_columns(GALLERY), [_move_aside(file, fault), *backups.list_backups(home, file)]
    made = Database(file, tables=GALLERY)
    with made.transaction():
        for source in filter(None, sources):
            for table, rows in salvage.read_rows(source, columns).items():
                for row in rows:
                    with suppress(sqlite3.Error):
                        made.write(f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", *row.values())
    notices.tell(
        say(
            "gallery.restored",
            "The list of your albums, tags and names could not be used ({fault}). Hearth made it anew from what could be read and "
            "from its backups. The old file is kept as {aside}.",
            fault=fault,
            aside=str(sources[0]),
        )
    )
    return made


def relist(home: Home, database: Database) -> None:
    """Put on the shelf what lies in its folders without a row, as a backup was put in the database's place, and tell it."""
    listed = {str(row["path"]) for row in database.query("SELECT path FROM creations")}
    lost = list(find_unlisted(home.creations, listed, with_settings=True))
    if lost:
        known = {os.path.realpath(path) for path in listed}  # the same folder may have two names
        with database.transaction():
            before = database.query("SELECT COUNT(*) AS rows FROM creations")[0]["rows"]
            _add(
                database, list_columns(), {"creations": [row for row in lost if os.path.realpath(row["path"]) not in known]}, home.creations
            )
            more = database.query("SELECT COUNT(*) AS rows FROM creations")[0]["rows"] - before
        if more:
            notices.tell(
                say(
                    "database.relisted",
                    "The list of your creations lacked {more} of those in {folder}. They are on the shelf again.",
                    more=more,
                    folder=str(home.creations),
                )
            )


def _drop_broken_wal(file: Path) -> None:
    """Put aside a file of latest changes that SQLite would ignore without a word, and tell it."""
    wal = Path(f"{file}{SIDE_FILES[0]}")
    if not wal.is_file():
        return
    with wal.open("rb") as opened:
        start = opened.read(len(WAL_STARTS[0]))
    if start and start not in WAL_STARTS:
        notices.tell(
            say(
                "database.wal",
                "The latest changes to the list of your jobs and creations could not be read, so jobs added just before are missing. "
                "The damaged file is kept as {aside}.",
                aside=str(put_aside(wal)),
            )
        )


def _require_readable(file: Path, broken: Exception | None = None) -> None:
    """Raise Trouble if the file may not be used or its disk does not give it: it may be whole, so it is neither renamed nor
    made anew."""
    fault = broken if broken is not None and (isinstance(broken, OSError) or is_database_refused(broken)) else None
    try:
        if file.exists() and not file.is_file():  # a folder or a pipe
            return
        for part in (file, *(Path(f"{file}{side}") for side in SIDE_FILES)):
            if part.is_file():
                with part.open("rb") as opened:
                    while opened.read(BLOCK_BYTES):
                        pass
    except OSError as unread:
        fault = unread
    if fault is not None:
        raise Trouble(
            say(
                "database.no-access",
                "The list of your jobs and creations, {file}, cannot be used now ({fault}). It stays as it is. See that your "
                "account may read and write it and its folder, and that its disk works, then start Hearth again. If nothing helps, rename the "
                "file: Hearth then makes the list anew from backups and from your files.",
                file=str(file),
                fault=word_fault(fault),
            )
        ) from broken


def is_in_use(fault: BaseException) -> bool:
    """Tell whether the file is whole and only held by another program: it must stay where that program writes."""
    code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
    return isinstance(fault, sqlite3.Error) and code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _restore(home: Home, fault: str, later: Callable[[], None]) -> Database:
    """Make a new database and open it; on a full disk it is made by `later`, before the first change."""
    made = home.database.with_name(f".{home.database.name}.restoring")
    try:
        jobs, creations = _make(made, home)
    except (OSError, sqlite3.Error) as full:
        if isinstance(full, sqlite3.Error) and not is_disk_full(full):
            raise
        return _read_until_room(home, full, later)
    _put_in_place(made, home, fault, jobs, creations)
    return Database(home.database)


def _mend(home: Home, fault: str) -> None:
    """Make a new database where there was no room for it before; raise sqlite3.Error if there still is none."""
    made = home.database.with_name(f".{home.database.name}.restoring")
    try:
        if (lack := describe_lack(home, ROOM_BYTES)) is not None:
            raise OSError(errno.ENOSPC, str(lack))
        _put_in_place(made, home, fault, *_make(made, home))
    except (OSError, Trouble) as stuck:
        refused = sqlite3.OperationalError(word_fault(stuck))
        refused.sqlite_errorcode = sqlite3.SQLITE_FULL if is_disk_full(stuck) else sqlite3.SQLITE_CANTOPEN
        raise refused from stuck


def _leave_to_window(fault: str) -> None:
    raise sqlite3.DatabaseError(fault)


def _make(made: Path, home: Home) -> tuple[int, int]:
    for side in ("", *SIDE_FILES):
        Path(f"{made}{side}").unlink(missing_ok=True)
    return _fill(made, home)


def _put_in_place(made: Path, home: Home, fault: str, jobs: int, creations: int) -> None:
    """Let a new database take the place of the broken one, and tell it."""
    aside = _move_aside(home.database, fault)
    made.replace(home.database)
    notices.tell(
        say(
            "database.restored",
            "The list of your jobs and creations could not be used ({fault}). Hearth made it anew: "
            "{creations} {creations:creation|creations} and {jobs} {jobs:job|jobs} are listed again. The old file is kept as {aside}.",
            fault=fault,
            creations=creations,
            jobs=jobs,
            aside=str(aside),
        )
        if aside is not None
        else say(
            "database.refilled",
            "The list of your jobs and creations was missing. Hearth made it anew from backups and files: "
            "{creations} {creations:creation|creations} and {jobs} {jobs:job|jobs} are listed again.",
            creations=creations,
            jobs=jobs,
        )
    )


def _move_aside(file: Path, fault: str) -> Path | None:
    try:
        aside = put_aside(file) if file.exists() else None
        for side in SIDE_FILES:
            if (beside := Path(f"{file}{side}")).exists():
                beside.rename(f"{aside}{side}") if aside is not None else put_aside(beside)
    except OSError as stuck:
        raise Trouble(
            say(
                "database.stuck",
                "{file} cannot be used ({fault}) and cannot be renamed ({stuck}). Close the programs that use it, then start Hearth again.",
                file=str(file),
                fault=fault,
                stuck=str(stuck),
            )
        ) from stuck
    return aside


def _fill(made: Path, home: Home) -> tuple[int, int]:
    """Fill a new database, the best source first; return how many jobs and creations it has."""
    columns = list_columns()
    database = Database(made)
    try:
        with database.transaction():
            for anew in (False, True):
                found = salvage.read_rows(home.database, columns, anew)
                _add(database, columns, {**found, "creations": map(correct, _find_here(home, found["creations"]))}, home.creations)
            for backup in backups.list_backups(home):
                found = salvage.read_rows(backup, columns)
                _add(database, columns, {**found, "creations": _find_here(home, found["creations"])}, home.creations)
            listed = {str(row["path"]) for row in database.query("SELECT path FROM creations")}
            _add(database, columns, {"creations": list(find_unlisted(home.creations, listed))}, home.creations)
            counts = [database.query(f"SELECT COUNT(*) AS rows FROM {table}")[0]["rows"] for table in ("jobs", "creations")]
    finally:
        database.close()
    return counts[0], counts[1]


def _find_here(home: Home, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows whose files are here; those of a home that was copied or moved name the files of this one."""
    for row in rows:
        path = Path(str(row.get("path")))
        here = home.creations / BIN / path.name if path.parent.name == BIN else home.creations / path.name
        own = here if _is_file(here) else path
        if is_own(own, home.creations):
            yield {**row, "path": str(own)}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a damaged row may hold any name
        return False


def _add(database: Database, columns: Mapping[str, list[str]], found: Mapping[str, Iterable[Row]], folder: Path) -> None:
    """Add the rows that are whole and not there yet; of creations those whose files are there, in this folder."""
    for table, rows in found.items():
        names = columns[table]
        query = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        for row in rows:
            values = {name: FILLED_IN.get(name) if row.get(name) is None else row[name] for name in names}
            try:
                if table == "jobs":
                    read_job(values)
                elif not _has_file_and_settings(values, folder):
                    continue
                database.write(query, *values.values())
            except (Trouble, TypeError, ValueError, AttributeError, RecursionError, sqlite3.IntegrityError):
                continue  # It is damaged: a backup or the file itself may have it.


def _has_file_and_settings(row: Row, folder: Path) -> bool:
    creation = read_creation({**row, "id": 0}, folder)
    return creation.condition != "missing" and bool(creation.request)


def _read_until_room(home: Home, fault: Exception, mend: Callable[[], None] | None = None) -> Database:
    """Return a copy in memory, and tell it where the page would not say that the disk is full."""
    if describe_lack(home, ROOM_BYTES) is None:
        notices.tell(
            say(
                "database.stands-in",
                "{file} cannot be written now ({fault}). You see what it holds, and nothing new is kept until it can be: if you have a quota there, "
                "delete files of yours; if not, check the disk and its connection.",
                file=str(home.database),
                fault=word_fault(fault),
            )
        )
    return Database(home.database, _read_into_memory(home.database), mend)


def _read_into_memory(file: Path, tables: Tables = JOBS) -> sqlite3.Connection:
    """Return what can be read, as a database in memory."""
    columns, connection = list_columns(tables), make_empty(tables)
    connection.row_factory = sqlite3.Row
    for table, rows in salvage.read_rows(file, columns).items():
        names = columns[table]
        query = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        for row in rows:
            with suppress(sqlite3.Error):
                connection.execute(query, [row.get(name) for name in names])
    return connection
