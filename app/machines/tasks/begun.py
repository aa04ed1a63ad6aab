"""What is made so far of a task that has not ended: sent up now and then, so that another machine goes on with it if this one is lost."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from app.base import atomic_write
from app.base.bounded_json import Bounds, parse_json, read_json
from app.base.trouble import Trouble
from app.engine.jobs.request import PictureRequest, Request
from app.engine.models import safetensors
from app.engine.speech.sound import spoken_parts
from app.machines.results import is_sound
from app.machines.tasks.fetched_files import tidy

BYTES_MOST: Final = 32 << 20
"""Of one file: the latents of the largest picture with what its scheduler remembers take 16 MiB."""
_LATENT: Final = re.compile(r"latent-(?P<place>\d{1,4})\.safetensors")
_UNFINISHED: Final = re.compile(r"unfinished-(?P<place>\d{3,4})\.json")
_PART: Final = re.compile(r"part-(?P<place>\d{3,4})\.(wav|json)")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_ROWS: Final = Bounds(most_bytes=4 << 20, values=500_000)
"""A part of the decoder's longest run has 3,000 rows of nine numbers."""


def name_latent(place: int) -> str:
    return f"latent-{place}.safetensors"


def list_begun(request: Request, folder: Path) -> list[Path]:
    """Return the files in a job's folder from which it can go on, a part's sound before what is said of it."""
    if isinstance(request, PictureRequest):
        patterns = ["latent-*.safetensors"]
    else:
        patterns = ["unfinished-*.json"] if request.only_parts else ["part-*.wav", "part-*.json", "unfinished-*.json"]
    return [file for pattern in patterns for file in sorted(folder.glob(pattern))]


def keep(arrived: Path, target: Path) -> bool:
    """Put a file that another machine sent in place, if it is sound and further than the one there; tell whether it was put there."""
    part, sound = _PART.fullmatch(target.name) is not None, target.with_suffix(".wav")
    there = int(target.with_suffix(".json").is_file() and is_sound(sound)) if part else measure(target)
    if measure(arrived) <= there:
        return False
    atomic_write.put_in_place(arrived, target)
    if target.suffix == ".json" and part and not is_sound(sound):
        target.unlink()
        return False
    return True


def measure(path: Path) -> int:
    """Return how far a file is, in steps or rows; 0 if it is not there, or is not what its name says."""
    try:
        if path.stat().st_size > BYTES_MOST:
            return 0
        if _LATENT.fullmatch(path.name):
            return _count_steps(path)
        return spoken_parts.count_rows(read_json(path, _ROWS)) if _UNFINISHED.fullmatch(path.name) else 1
    except (OSError, Trouble, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return 0


def _count_steps(path: Path) -> int:
    """A picture whose steps are all done is no longer begun: its maker decodes it in a moment."""
    if "latents" not in safetensors.read_header(path):
        return 0
    with path.open("rb") as file:
        about = parse_json(file.read(int.from_bytes(file.read(8), "little")), safetensors.HEADER)["__metadata__"]
    return int(about["done"]) if about["whole"] == "0" else 0


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
    return {name: sha256 for name, sha256 in values.items() if is_name(name) and isinstance(sha256, str) and _HASH.fullmatch(sha256)}


def is_name(name: object, pieces: int = 10_000) -> bool:
    """Tell whether a file of a job with so many pictures or parts may be called so."""
    found = next(filter(None, (each.fullmatch(str(name)) for each in (_LATENT, _UNFINISHED, _PART))), None)
    return found is not None and int(found["place"]) < pieces
