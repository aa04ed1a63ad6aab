"""Check that the output file can be written before anything is loaded, and write it atomically."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from app.base import atomic_write
from app.base.disk_faults import word_fault
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.request import Request
from app.engine.kinds import kind_of
from app.engine.speech.sound.stream_encoding import encode_file

STDOUT: Final = Path("-")


def check_stdout(request: Request, json: bool) -> None:
    """Raise a Trouble for what standard output cannot hold: events beside the result, or several files."""
    if request.batch > 1:
        raise Trouble(say("output.several", "Standard output takes one picture. Leave out --batch, or name a file for -o."))
    if json:
        raise Trouble(say("output.json", "With --json standard output has the events. Name a file for -o."))


def number_paths(output: Path, count: int) -> list[Path]:
    """Return a path for each picture of a batch: dusk.png, dusk 2.png ..."""
    return [output if number == 1 else output.with_stem(f"{output.stem} {number}") for number in range(1, count + 1)]


def check_writable(output: Path, request: Request) -> None:
    """Raise a Trouble if a trial shows that the result cannot be written; remove what the trial made."""
    if _is_dir(output):
        raise Trouble(
            say(
                "output.folder",
                "{path} is a folder. Give the name of a file, such as {example}.",
                path=str(output),
                example=str(output / kind_of(request).name_result(request)),
            )
        )
    made: list[Path] = []
    try:
        made += _make_folders(output.parent)
        for path in number_paths(output, request.batch):
            _try(path)
        free = shutil.disk_usage(output.parent)
        if free.total and free.free < (needed := kind_of(request).estimate_bytes(request)):
            raise Trouble(
                say(
                    "output.full",
                    "{path} needs about {needed} MB, but only {free} MB are free there. Free some space, or choose another place.",
                    path=str(output),
                    needed=max(1, needed >> 20),
                    free=free.free >> 20,
                )
            )
    except (OSError, ValueError) as fault:
        raise Trouble(
            say(
                "output.not-writable",
                "{path} cannot be written ({fault}), so nothing was started. Choose another path for -o.",
                path=str(output),
                fault=word_fault(fault),
            )
        ) from fault
    finally:
        for folder in reversed(made):
            folder.rmdir()


def write(file: Path, path: Path) -> None:
    """Copy `file` to `path`; raises OSError. Writes into devices and pipes, and follows links."""
    if path == STDOUT:
        with file.open("rb") as made:
            shutil.copyfileobj(made, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    if path.exists() and not path.is_file():
        with file.open("rb") as made, path.open("wb") as into:
            shutil.copyfileobj(made, into)
        return
    target = Path(os.path.realpath(path))
    with atomic_write.replacing(target) as unfinished:
        if path.suffix.lower() == ".aac" and file.suffix.lower() != ".aac":
            unfinished.write_bytes(encode_file("aac", file))
        else:
            shutil.copyfile(file, unfinished)


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # an invalid name; the trial reports it
        return False


def _make_folders(folder: Path) -> list[Path]:
    """Make the missing folders and return them, the outermost first."""
    if folder.is_dir():
        return []
    if folder.exists():
        raise NotADirectoryError(20, f"{folder} is not a folder")
    if folder.parent == folder:
        raise FileNotFoundError(2, "there is no such drive")
    above = _make_folders(folder.parent)
    try:
        folder.mkdir()
    except OSError:
        for each in reversed(above):
            each.rmdir()
        raise
    return [*above, folder]


def _try(path: Path) -> None:
    """Try to open the file, and to write a small one beside it."""
    if path.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    if path.exists() and not path.is_file():  # opening a device or a pipe can have effects
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "no permission to write")
        return
    target = Path(os.path.realpath(path))
    if target.exists():
        target.open("ab").close()
    else:
        target.open("xb").close()
        target.unlink()
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".hearth-") as file:
        file.write(b"x" * 4096)
