"""Check where a command is to write before anything is loaded, and write there, whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from app import atomic_write
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.engine.text.script import check
from app.sentence import Trouble, say

PICTURES: Final = ("", ".png")
SIDE_PX: Final = 1024
"""Of a picture whose size the model chooses; most are smaller."""
PNG_SHARE: Final = 0.3
"""Of the pixels' own bytes, what a picture of few details still needs."""
WAV_BYTES_S: Final = 32_000
PACKED_BYTES_S: Final = 4_000
"""Low guesses, all of them: only what cannot fit is refused."""


def number_paths(output: Path, count: int) -> list[Path]:
    """One for each picture of a batch: dusk.png, dusk 2.png ..."""
    return [output if number == 1 else output.with_stem(f"{output.stem} {number}") for number in range(1, count + 1)]


def check_writable(output: Path, request: Request) -> None:
    """Raises a Trouble where the result could not be written, found by trying. What was made for it is removed again."""
    count = request.batch if isinstance(request, PictureRequest) else 1
    if isinstance(request, PictureRequest) and output.suffix.lower() not in PICTURES:
        raise Trouble(say("output.not-png", "Pictures are written as PNG, which holds their settings, and {path} would be something else. Name it {example}.", path=str(output), example=str(output.with_suffix(".png"))))  # fmt: skip
    if _is_dir(output):
        raise Trouble(say("output.folder", "{path} is a folder. Name a file in it, such as {example}.", path=str(output), example=str(output / _example_name(request))))  # fmt: skip
    made: list[Path] = []
    try:
        made += _make_folders(output.parent)
        for path in number_paths(output, count):
            _try(path)
        free = shutil.disk_usage(output.parent)
        if free.total and free.free < (needed := estimate_bytes(request)):
            raise Trouble(say("output.full", "{path} needs about {needed} MB, but only {free} MB are free there. Make room, or write elsewhere.", path=str(output), needed=max(1, needed >> 20), free=free.free >> 20))  # fmt: skip
    except (OSError, ValueError) as fault:
        raise Trouble(say("output.not-writable", "{path} cannot be written ({fault}), so nothing was begun. Choose another place for -o.", path=str(output), fault=describe_fault(fault))) from fault  # fmt: skip
    finally:
        for folder in reversed(made):
            folder.rmdir()


def write(file: Path, path: Path) -> None:
    """Raises OSError. A device or a pipe is written into; a link is followed."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        shutil.copyfile(file, target)
        return
    with atomic_write.whole(target) as unfinished:
        shutil.copyfile(file, unfinished)


def estimate_bytes(request: Request) -> int:
    if isinstance(request, SpeechRequest):
        rate = WAV_BYTES_S if request.format in ("wav", "flac") else PACKED_BYTES_S
        return round(check(request.text).seconds_estimate / request.speed * rate)
    pixels = (request.width or SIDE_PX // 2) * (request.height or SIDE_PX // 2) * request.upscale**2
    return round(pixels * 3 * PNG_SHARE * request.batch)


def describe_fault(fault: Exception) -> str:
    """Without the path, which the sentence names."""
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault) or type(fault).__name__


def _example_name(request: Request) -> str:
    return f"speech.{request.format}" if isinstance(request, SpeechRequest) else "picture.png"


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file system takes; trying says so
        return False


def _make_folders(folder: Path) -> list[Path]:
    """The ones that had to be made, the outermost first."""
    if folder.is_dir():
        return []
    if folder.exists():
        raise NotADirectoryError(20, f"{folder} is no folder")
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
    """A small file beside it, and the name itself."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    if target.exists() and not target.is_file():  # a device or a pipe: to open it may do something
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "no right to write there")
        return
    if target.exists():
        target.open("ab").close()
    else:
        target.open("xb").close()
        target.unlink()
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".hearth-") as file:
        file.write(b"x" * 4096)
