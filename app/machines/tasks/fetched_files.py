"""The files that a helper fetches for tasks: what a task may make it fetch, and how long they stay."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.keeper.disk_room import MB, ROOM_BYTES

FILES_MOST: Final = 512
"""One task may have so many files."""
UNUSED_S: Final = 86_400
MOST_BYTES: Final = 8 << 30
"""All of them together may have so many bytes; what was unused for longest goes first."""
HASH: Final = re.compile(r"[0-9a-f]{64}")
"""A file is named by its SHA-256."""


def choose_missing(folder: Path, files: object) -> dict[str, int]:
    """Return the files that are not here yet, each hash with its size; mark the others as used. Raise Trouble if the main machine asks
    for what is no hash, or for more than the disk has room for."""
    if not isinstance(files, Mapping) or len(files) > FILES_MOST or not all(_is_named(name, size) for name, size in files.items()):
        raise odd_files()
    folder.mkdir(parents=True, exist_ok=True)
    missing = {name: size for name, size in files.items() if not _mark_used(folder / name)}
    needed, free = sum(missing.values()) + ROOM_BYTES, shutil.disk_usage(folder).free
    if missing and (needed > free or sum(files.values()) > MOST_BYTES):
        raise Trouble(
            say(
                "machines.no-room",
                "The other computer has no room for the files of this task: it needs {needed} MB and has {free} MB free.",
                needed=-(-needed // MB),
                free=free // MB,
            )
        )
    if missing:
        _make_room(folder, sum(missing.values()))
    return missing


def _make_room(folder: Path, needed_bytes: int) -> None:
    """Delete what was unused for longest where all would be too much. Whatever this task needs was used last."""
    files = sorted(_list_files(folder))
    there = sum(size for _, size, _ in files)
    for _, size, file in files:
        if there + needed_bytes <= MOST_BYTES:
            return
        file.unlink(missing_ok=True)
        there -= size


def _mark_used(file: Path) -> bool:
    """Mark a file as used now; tell whether it is here."""
    try:
        os.utime(file)
    except FileNotFoundError:
        return False
    return True


def _list_files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield when each file was used, its size, and the file; of one that has two names the second counts nothing. Another process may fetch
    and delete some meanwhile."""
    seen = set[tuple[int, int]]()
    for file in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            known = file.stat()
            itself = (known.st_dev, known.st_ino)
            yield known.st_mtime, 0 if itself in seen else known.st_size, file
            seen.add(itself)


def odd_files() -> Trouble:
    return Trouble(say("machines.odd-files", "The other computer's task needs files that did not arrive as it says."))


def tidy(folder: Path) -> None:
    """Delete what no task needed for a day."""
    for used_s, _, file in _list_files(folder):
        if time.time() - used_s > UNUSED_S:
            file.unlink(missing_ok=True)


def _is_named(name: Any, size: Any) -> bool:
    return isinstance(name, str) and HASH.fullmatch(name) is not None and type(size) is int and size >= 0
