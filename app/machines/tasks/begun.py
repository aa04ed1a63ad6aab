"""What is made so far of a task that has not ended: sent up now and then, so that another machine goes on with it if this one is lost."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from app.base import atomic_write
from app.base.path_checks import size_bytes
from app.engine.jobs.parts import FILES, PAINTED, SPOKEN, mark_elsewhere
from app.engine.jobs.request import Request
from app.engine.kinds import KINDS
from app.engine.speech.sound.arrived import is_sound
from app.machines.tasks.fetched_files import HASH, tidy

BYTES_MOST: Final = 32 << 20
"""One file may have so many bytes: the latents of the largest picture with what its scheduler remembers take 16 MiB."""


def list_begun(request: Request, folder: Path) -> list[Path]:
    """Return the files in a job's folder from which it can go on: of a piece how far it is, of a whole job its finished parts before that, a
    part's file to show before what is said of it."""
    files = FILES[request.kind]
    made = files.list_made(folder) if not request.is_piece else {}
    return [*(folder / files.name_made(place)[at] for at in range(len(files.made)) for place in made), *files.list_begun(folder)]


def keep(arrived: Path, target: Path) -> bool:
    """Put a file that another machine sent in place, if it is sound and further than the one there; tell whether it was put there."""
    if SPOKEN.find_place(target.name, *SPOKEN.made) is not None:
        return _keep_spoken(arrived, target)
    if measure(arrived) <= measure(target):
        return False
    mark_elsewhere(target)
    atomic_write.put_in_place(arrived, target)
    return True


def _keep_spoken(arrived: Path, target: Path) -> bool:
    """Put one of a finished part's two files in place, and take the second away again if they are no such part."""
    sound, about = target.with_suffix(".wav"), target.with_suffix(".json")
    if (about.is_file() and is_sound(sound)) or not 0 < size_bytes(arrived) <= BYTES_MOST:
        return False
    mark_elsewhere(sound)
    atomic_write.put_in_place(arrived, target)
    if target == about and not is_sound(sound):
        target.unlink()
        return False
    return True


def measure(path: Path) -> int:
    """Return how far the file of an unfinished part is, in steps or rows; 0 if it is not there, or is not what its name says."""
    kind = next((kind for kind in KINDS.values() if FILES[kind.name].find_place(path.name) is not None), None)
    return kind.measure_begun(path, foreign=True) if kind is not None and 0 < size_bytes(path) <= BYTES_MOST else 0


def set_aside(files: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Copy files, by their names there, to where they stay as they are while a machine fetches them; leave out what is gone."""
    kept = dict[str, Path]()
    tidy(folder)
    for name, file in files.items():
        try:
            content = file.read_bytes()
        except FileNotFoundError:  # it ended meanwhile
            continue
        kept[name] = folder / hashlib.sha256(content).hexdigest()
        with atomic_write.replacing(kept[name]) as unfinished:
            unfinished.write_bytes(content)
    return kept


def put_into(folder: Path, body: str, fetched: Path) -> None:
    """Put what a task brings along into the folder of the job that does it. `fetched`: where files lie by their hash."""
    for name, sha256 in _read_names(json.loads(body).get("begun")).items():
        arrived = folder / "arrived" / name
        arrived.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(fetched / sha256, arrived)
        keep(arrived, folder / name)
    shutil.rmtree(folder / "arrived", ignore_errors=True)


def _read_names(given: Any) -> dict[str, str]:
    """Return what is named as it may be; nothing leads out of the folder."""
    values = given if isinstance(given, dict) else {}
    return {name: sha256 for name, sha256 in values.items() if is_name(name) and isinstance(sha256, str) and HASH.fullmatch(sha256)}


def is_name(name: object, pieces: int = 10_000) -> bool:
    """Tell whether a file of a job with so many pictures or parts may be called so. A finished picture is a result, and never begun."""
    places = (SPOKEN.find_place(str(name)), PAINTED.find_place(str(name), PAINTED.begun))
    return any(place is not None and place < pieces for place in places)
