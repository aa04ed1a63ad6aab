"""Ways in which a database breaks, by name: each takes the file, which is closed, and a seeded source of chance."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

Damage = Callable[[Path, random.Random], object]


def execute(*statements: str) -> Damage:
    def damage(file: Path, chance: random.Random) -> None:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    return damage


def flip(count: int, first: int = 0, last: int | None = None) -> Damage:
    def damage(file: Path, chance: random.Random) -> None:
        data = bytearray(file.read_bytes())
        for _ in range(count):
            data[chance.randrange(first, last or len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data)

    return damage


def cut(share: float) -> Damage:
    return lambda file, chance: file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


def zero_pages(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    for page in chance.sample(range(1, len(data) // 4096), 3):
        data[page * 4096 : (page + 1) * 4096] = bytes(4096)
    file.write_bytes(data)


def make_folder(file: Path, chance: random.Random) -> None:
    file.unlink()
    file.mkdir()


def make_pipe(file: Path, chance: random.Random) -> None:
    file.unlink()
    if sys.platform != "win32":
        os.mkfifo(file)


DAMAGES: Final[dict[str, Damage]] = {
    "cut in half": cut(0.5),
    "cut to its first page": cut(0.01),
    "the last byte is missing": lambda file, chance: file.write_bytes(file.read_bytes()[:-1]),
    "garbage": lambda file, chance: file.write_bytes(chance.randbytes(file.stat().st_size)),
    "text": lambda file, chance: file.write_text("this is no database\n" * 500),
    "20 flipped bits": flip(20),
    "200 flipped bits": flip(200),
    "2000 flipped bits": flip(2000),
    "a broken header": flip(60, 0, 100),
    "a broken first page": flip(400, 0, 4096),
    "three pages of zeros": zero_pages,
    "zero length": lambda file, chance: file.write_bytes(b""),
    "only zeros": lambda file, chance: file.write_bytes(bytes(file.stat().st_size)),
    "a folder in its place": make_folder,
    "a pipe in its place": make_pipe,
    "gone": lambda file, chance: file.unlink(),
    "another program's database": lambda file, chance: (file.unlink(), execute("CREATE TABLE jobs (a, b)", "INSERT INTO jobs VALUES (1, 2)")(file, chance)),
    "a column is missing": execute("ALTER TABLE jobs DROP COLUMN words"),
    "a newer version": execute("PRAGMA user_version=9", "ALTER TABLE creations ADD COLUMN mood TEXT NOT NULL DEFAULT 'good'"),
    "the table of jobs is gone": execute("DROP TABLE jobs"),
    "the table of creations is gone": execute("DROP TABLE words", "DROP TABLE creations"),
    "a broken search index": execute("DELETE FROM words_data"),
}  # fmt: skip
