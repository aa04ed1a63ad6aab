"""Open files that others made: regular ones only, as a pipe or a device may never answer; and only where a link does not lead out of their folder."""

from __future__ import annotations

import errno
import os
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import Final

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading; raise OSError for what is no regular file. A pipe that takes its place meanwhile is not waited for."""
    _require_regular(path, path.stat().st_mode)  # before it is opened: opening some devices does something
    handle = os.open(path, _FLAGS)
    try:
        _require_regular(path, os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _require_regular(path: Path, mode: int) -> None:
    if not S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def is_inside(path: Path, folder: Path) -> bool:
    """Tell whether a path, its links followed, lies in this folder. The hub's cache keeps the files of a snapshot among the blobs of its repository,
    or those that repositories share."""
    try:
        found, own = path.resolve(), folder.resolve()
        repository = own.parent.parent
        cached = own.parent.name == "snapshots" and repository.name.startswith("models--")
        homes = (own, repository / "blobs", repository.parent / "blobs") if cached else (own,)
        return any(found.is_relative_to(home) for home in homes)
    except (OSError, RuntimeError, ValueError):  # RuntimeError: links in a circle
        return False
