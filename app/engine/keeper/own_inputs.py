"""The files that jobs are made from lie in Hearth's own folders: a stored job, which may come from a stranger's database, is let name no other."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.base.atomic_write import replacing
from app.base.path_checks import is_file, size_bytes
from app.base.paths import Home, assets
from app.base.regular_file import is_inside, open_regular
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.request import Request

NAME_BYTES: Final = 200
"""A copy's name has at most so many bytes; file systems take 255, and an unfinished file's is longer."""
NOTE_BYTES: Final = 1 << 20
BLOCK_BYTES: Final = 1 << 20


def adopt(home: Home, request: Request) -> Request:
    """Return the request with copies of the files that lie elsewhere, as commands name them; each under its content, so that the same request
    gives the same. Weights are used where they lie."""
    return request.with_files(lambda path: _adopt(home, path, clip=bool(request.prompts)))


def _adopt(home: Home, path: str, clip: bool) -> str:
    file = Path(path)
    if not is_file(file) or _is_own(home, path):
        return path
    try:
        hashed = hashlib.sha256()
        for block in _read(file):
            hashed.update(block)
        name = hashed.hexdigest()[:32]
        copy = home.scratch / "uploads" / name / (file.name if len(os.fsencode(file.name)) <= NAME_BYTES else name + file.suffix[:16])
        copy.parent.mkdir(parents=True, exist_ok=True)
        os.utime(copy.parent)  # it stays a day from now, or as long as a job needs it
        if not copy.exists():
            _copy(file, copy)
        note = file.with_suffix(".json")  # beside the clip of a voice; it may change
        if clip and is_inside(note, file.parent) and is_file(note) and size_bytes(note) <= NOTE_BYTES:
            _copy(note, copy.with_suffix(".json"))
    except OSError:  # the run tells what cannot be read; without room for a copy it can still be used where it lies
        return path
    return str(copy)


def _copy(file: Path, to: Path) -> None:
    with replacing(to) as unfinished, unfinished.open("wb") as copy:
        for block in _read(file):
            copy.write(block)


def _read(file: Path) -> Iterator[bytes]:
    """Yield as much of a file as it says that it has: some of the system's own have no end."""
    with open_regular(file) as opened:
        left = os.fstat(opened.fileno()).st_size
        while left > 0 and (block := opened.read(min(left, BLOCK_BYTES))):
            left -= len(block)
            yield block


def require_own(home: Home, request: Request) -> None:
    """Raise a Trouble for a stored job that is made from a file elsewhere."""
    for path in filter(None, (*request.files, *request.keep)):
        if not _is_own(home, path):
            raise Trouble(
                say(
                    "job.foreign-input",
                    "This job is made from {file}, which lies outside Hearth's folders, so it cannot be used again. Start it anew with this file.",
                    file=path,
                )
            )


def _is_own(home: Home, path: str) -> bool:
    return any(is_inside(Path(path), folder) for folder in (home.root, home.creations, home.scratch, home.voices, assets()))
