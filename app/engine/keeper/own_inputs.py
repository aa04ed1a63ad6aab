"""The files that jobs are made from lie in Hearth's own folders: a stored job, which may come from a stranger's database, is let name no other."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from app.base.atomic_write import replacing
from app.base.path_checks import is_file
from app.base.paths import Home, assets
from app.base.regular_file import is_inside, open_regular
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.request import Request


def adopt(home: Home, request: Request) -> Request:
    """Return the request with copies of the files that lie elsewhere, as commands name them; each under its content, so that the same request
    gives the same. Weights are used where they lie."""
    return request.with_files(lambda path: _adopt(home, path))


def _adopt(home: Home, path: str) -> str:
    if not is_file(Path(path)) or _is_own(home, path):
        return path
    try:
        with open_regular(Path(path)) as file:
            folder = home.scratch / "uploads" / hashlib.file_digest(file, "sha256").hexdigest()[:32]
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # it stays a day from now, or as long as a job needs it
        for each in (Path(path), Path(path).with_suffix(".json")):  # the second: what is noted beside the clip of a voice, which may change
            if is_file(each) and (each.suffix == ".json" or not (folder / each.name).exists()):
                with open_regular(each) as file, replacing(folder / each.name) as unfinished, unfinished.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
    except OSError:  # the run tells what cannot be read; without room for a copy it can still be used where it lies
        return path
    return str(folder / Path(path).name)


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
