"""Atomic file writes: readers and crashes see the old file or the new one, never a partial one."""

from __future__ import annotations

import glob
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

WAITS_S = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Windows lets nobody take the place of a file that is being read, which lasts no longer than this."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write to, beside it and hidden, that becomes `path` only once all is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    begins = f".{path.name}."
    for left in path.parent.glob(f"{glob.escape(begins)}*-*"):
        process = left.name.removeprefix(begins).partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            left.unlink(missing_ok=True)  # It was killed before its file was whole.
    unfinished = path.with_name(f"{begins}{os.getpid()}-{threading.get_native_id()}")
    try:
        yield unfinished
        put_in_place(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def put_in_place(unfinished: Path, path: Path) -> None:
    """In the place of `path`, once nobody reads either."""
    for wait_s in WAITS_S:
        try:
            unfinished.replace(path)
            return
        except PermissionError:
            time.sleep(wait_s)
    unfinished.replace(path)


def write_text(path: Path, words: str, mode: int = 0o666) -> None:
    """Write a text; `mode`: who may read it, where the system knows that."""
    with replacing(path) as unfinished:
        unfinished.touch(mode)
        unfinished.write_text(words, "utf-8")
