"""Read what is left of a damaged SQLite file: row by row through SQLite, and page by page where SQLite gives up."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

Row = dict[str, Any]
PAGE_BYTES: Final = 4096
TABLE_LEAF: Final = 0x0D
NUMBERS: Final = {1: ">b", 2: ">h", 4: ">i", 6: ">q", 7: ">d"}


def read_rows(file: Path, tables: Iterable[str]) -> dict[str, list[Row]]:
    """Return the rows of each table that SQLite can still read, by their columns. `file` is not changed."""
    found: dict[str, list[Row]] = {table: [] for table in tables}
    if not file.is_file():
        return found
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        address = f"{file.absolute().as_uri()}?immutable=1"  # without its -wal file: there may be no room for a copy
        with suppress(OSError):
            copy = Path(shutil.copyfile(file, Path(folder) / "copy.sqlite3"))
            if (wal := Path(f"{file}-wal")).is_file():
                shutil.copyfile(wal, f"{copy}-wal")
            address = copy.as_uri()
        with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            real = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table' AND rootpage>0")}
            for table in found.keys() & real:  # a view may be a query without an end
                found[table] += _read_table(connection, table)
    return found


def _read_table(connection: sqlite3.Connection, table: str) -> list[Row]:
    """Read a table from its start and, after damage, from its end."""
    rows: dict[int, Row] = {}
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error, UnicodeError, MemoryError):
            for row in connection.execute(f'SELECT rowid AS "_rowid", * FROM "{table}" ORDER BY rowid {order}'):
                values = dict(row)
                rows.setdefault(values.pop("_rowid"), values)
            break
    return [rows[number] for number in sorted(rows)]


def scan_pages(file: Path, tables: Mapping[str, Sequence[str]]) -> dict[str, list[Row]]:
    """Return the rows that lie in any page of the file, known by their number of columns, whatever else is damaged. Some
    may be older versions of others. The format is documented at sqlite.org/fileformat2.html."""
    found: dict[str, list[Row]] = {table: [] for table in tables}
    if not file.is_file():
        return found
    with suppress(OSError):
        for table, row in _scan(file.read_bytes(), tables):
            found[table].append(row)
    return found


def _scan(data: bytes, tables: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Row]]:
    (size,) = struct.unpack_from(">H", data, 16) if len(data) >= 100 else (0,)
    size = 65_536 if size == 1 else size
    size = size if size >= 512 and size & (size - 1) == 0 else PAGE_BYTES
    by_width = {len(columns): table for table, columns in tables.items()}
    for begin in range(0, len(data), size):
        head = begin + (100 if begin == 0 else 0)
        if len(data) < head + 8 or data[head] != TABLE_LEAF:
            continue
        (count,) = struct.unpack_from(">H", data, head + 3)
        for place in range(min(count, size // 4)):
            with suppress(struct.error, ValueError, IndexError):
                (offset,) = struct.unpack_from(">H", data, head + 8 + 2 * place)
                number, values = _read_cell(data, begin + offset, size)
                table = by_width.get(len(values))
                if table is not None:
                    row = dict(zip(tables[table], values, strict=True))
                    if row.get("id", "") is None:
                        row["id"] = number  # an INTEGER PRIMARY KEY is the row's number, and stored as NULL
                    yield table, row


def _read_cell(data: bytes, at: int, size: int) -> tuple[int, list[Any]]:
    """Return a row's number and values."""
    length, at = _read_varint(data, at)
    number, at = _read_varint(data, at)
    payload = _read_payload(data, at, length, size)
    end, place = _read_varint(payload, 0)
    kinds, values = [], []
    while place < end:
        kind, place = _read_varint(payload, place)
        kinds.append(kind)
    for kind in kinds:
        value, place = _read_value(payload, place, kind)
        values.append(value)
    return number, values


def _read_payload(data: bytes, at: int, length: int, size: int) -> bytes:
    """Return a row's bytes, the later ones from its overflow pages."""
    if length > len(data):
        raise ValueError(length)
    local = length
    if length > size - 35:
        least = (size - 12) * 32 // 255 - 23
        local = least + (length - least) % (size - 4)
        local = local if local <= size - 35 else least
    payload = data[at : at + local]
    following = int.from_bytes(data[at + local : at + local + 4], "big") if local < length else 0
    while len(payload) < length and 0 < following <= len(data) // size:
        page = data[(following - 1) * size : following * size]
        payload += page[4 : 4 + length - len(payload)]
        following = int.from_bytes(page[:4], "big")
    if len(payload) < length:
        raise ValueError(length)
    return payload


def _read_value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    if kind >= 12:
        end = at + (kind - 12) // 2
        if end > len(payload):
            raise ValueError(kind)
        body = payload[at:end]
        return (body.decode("utf-8") if kind % 2 else body), end
    if kind in (3, 5):
        width = {3: 3, 5: 6}[kind]
        return int.from_bytes(payload[at : at + width], "big", signed=True), at + width
    if kind not in NUMBERS:
        raise ValueError(kind)
    (value,) = struct.unpack_from(NUMBERS[kind], payload, at)
    return value, at + struct.calcsize(NUMBERS[kind])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return SQLite's number of 1 to 9 bytes, and where it ends."""
    value = 0
    for count in range(8):
        byte = data[at + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1
    return value << 8 | data[at + 8], at + 9
