"""Make rows of the shelf from the files in its folders: each file carries the settings it was made with."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from app.base.trouble import Trouble
from app.engine.jobs.creation import BIN
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest, from_json, to_json
from app.engine.pictures.files import picture_settings
from app.engine.speech.sound import sound

PICTURES: Final = frozenset({".png"})
SOUNDS: Final = frozenset({".wav", ".flac", ".mp3", ".ogg", ".opus"})
DATE: Final = re.compile(r"^\d{4}-\d\d-\d\d \d{4} ")


def find_unlisted(folder: Path, listed: Collection[str], with_settings: bool = False) -> Iterator[dict[str, Any]]:
    """Yield a row for each sound and picture of the shelf's folder and its bin whose path is not listed; or only for those
    that hold the settings they were made with."""
    for kept in (folder, folder / BIN):
        for file in sorted(kept.iterdir()) if kept.is_dir() else ():
            if str(file) not in listed and file.suffix in PICTURES | SOUNDS and file.is_file() and not file.is_symlink():
                try:
                    str(file).encode()
                    if with_settings:
                        _read_settings(file)
                    yield _make_row(file, binned=kept != folder)
                except (Trouble, OSError, ValueError, TypeError, KeyError):
                    continue  # It is gone, nobody may read it, or its name is no text, which no table holds.


def correct(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take from the file what it says of itself: a row from a damaged page may differ in a letter or in its size."""
    try:
        file = Path(row["path"])
        return {**row, **_describe(_read_settings(file)), "bytes": file.stat().st_size}
    except (Trouble, OSError, ValueError, TypeError, KeyError):
        return row


def _make_row(file: Path, binned: bool) -> dict[str, Any]:
    about = file.stat()
    request = _read_request(file)
    return {
        **_describe(request),
        "job": "",
        "owner": OWNER,
        "model": request.model,
        "plan": "{}",
        "path": str(file),
        "bytes": about.st_size,
        "seconds": _measure_seconds(file),
        "rate": 0.0,
        "unit": "",
        "elapsed_s": 0.0,
        "highest_bytes": 0,
        "whole": 1,
        "created_s": about.st_mtime,
        "binned_s": about.st_mtime if binned else None,
    }


def _describe(request: Request) -> dict[str, Any]:
    settings = to_json(request)
    return {"kind": settings["kind"], "text": request.words, "request": json.dumps(settings)}


def _read_settings(file: Path) -> Request:
    return picture_settings.read(file).request if file.suffix in PICTURES else from_json(sound.read_settings(file) or {})


def _read_request(file: Path) -> Request:
    """Read the settings inside a file; for a file without any, the words of its name."""
    try:
        return _read_settings(file)
    except Trouble:
        words = DATE.sub("", file.stem).strip() or file.stem.strip() or "?"
        return PictureRequest(words) if file.suffix in PICTURES else SpeechRequest(words)


def _measure_seconds(file: Path) -> float:
    try:
        return sound.measure_seconds(file) if file.suffix in SOUNDS else 0.0
    except RuntimeError:  # libsndfile cannot read it
        return 0.0
