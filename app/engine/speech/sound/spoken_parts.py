"""Save and find the spoken parts of a script, each atomically in the job's folder, so that a job resumes after the last one."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import shutil
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, NotRequired

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base.bounded_json import Bounds, read_json
from app.base.stored_json import is_right
from app.base.trouble import Trouble
from app.engine.jobs.events import Doubt
from app.engine.jobs.parts import HEARD, SPOKEN, is_elsewhere, mark_elsewhere, name_mark
from app.engine.jobs.settings import SEED_LIMIT
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.sound.join_sound import Loudness
from app.engine.speech.sound.sound import Samples

Codes = NDArray[np.int16]
ATTEMPTS: Final = 4
"""A part that comes out wrong is begun anew three times."""
ROWS_MOST: Final = 10_000
"""No attempt has as many."""
_UNFINISHED: Final = Bounds(most_bytes=4 << 20, values=500_000)
"""A part of the decoder's longest run has 3,000 rows of nine numbers."""
ABOUT: Final = Bounds(most_bytes=4 << 20)
"""What is said of a finished part stays within these bounds; its codes are one long word."""
SECONDS_MOST: Final = 3600.0
LOUDNESS_MOST: Final = 1e6
"""No number of a part's loudness is as large."""


@dataclass(frozen=True, slots=True)
class SpokenPart:
    text: str
    seed: int
    key: str
    """All inputs are hashed into it: a take with another key does not match this part."""
    seconds: float
    whole: bool
    """False: it was stopped before its end."""
    codes: Codes | None
    """The model made exactly these (frames, channels), the voice prompt of the next part. None: it makes none that can be kept."""
    path: Path
    frames: int = 0
    doubt: Doubt = ""


class StoredPart(TypedDict):
    text: str
    seed: Annotated[int, Field(ge=0, lt=SEED_LIMIT)]
    key: str
    seconds: Annotated[float, Field(ge=0, le=SECONDS_MOST)]
    frames: Annotated[int, Field(ge=0, le=1 << 20)]
    whole: bool
    channels: Annotated[int, Field(ge=1)]
    codes: str
    doubt: NotRequired[Doubt]
    loudness: NotRequired[Annotated[list[Annotated[float, Field(ge=0, le=LOUDNESS_MOST)]], Field(min_length=3, max_length=3)]]


STORED: Final = TypeAdapter(StoredPart)


def measure_begun(path: Path) -> int:
    """Count the rows in the state of an unfinished part; a later attempt is further than any before. 0 for anything else."""
    try:
        unfinished = read_json(path, _UNFINISHED)
        return len(unfinished["rows"]) + ROWS_MOST * min(int(unfinished.get("attempt", 0)), ATTEMPTS)
    except (OSError, Trouble, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return 0


def hash_inputs(*made_from: Any) -> str:
    return hashlib.sha256(json.dumps(made_from, sort_keys=True, default=str).encode()).hexdigest()[:24]


def save(part: SpokenPart, samples: Samples, rate: int) -> None:
    """Save the sound first and its metadata last, because the metadata marks the part as saved."""
    about = part.path.with_suffix(".json")
    about.unlink(missing_ok=True)
    sound.write(part.path, samples, rate)
    name_mark(part.path).unlink(missing_ok=True)
    codes = np.zeros((0, 1), np.int16) if part.codes is None else part.codes
    packed = base64.b64encode(np.ascontiguousarray(codes, "<i2").tobytes()).decode()
    values = {
        "text": part.text, "seed": part.seed, "key": part.key, "whole": part.whole, "seconds": part.seconds,
        "frames": part.frames or len(codes), "channels": codes.shape[1], "codes": packed, "doubt": part.doubt,
        "loudness": astuple(join_sound.measure_loudness(*join_sound.read_spoken(part.path))),
    }  # fmt: skip
    with sound.replacing_or_explaining(about) as unfinished:
        unfinished.write_text(json.dumps(values), "utf-8")


def find(path: Path) -> SpokenPart | None:
    """Return the take of this sound; None if it was never finished. Raise OSError if it cannot be read now: it is not made
    anew."""
    about = path.with_suffix(".json")
    if not (path.is_file() and about.is_file()):
        return None
    try:
        values = read_json(about, ABOUT)
        if not is_right(STORED, values):
            return None
        codes = np.frombuffer(base64.b64decode(values["codes"]), "<i2").reshape(-1, values["channels"]).astype(np.int16)
        return SpokenPart(
            values["text"],
            values["seed"],
            values["key"],
            values["seconds"],
            values["whole"],
            codes if values["codes"] else None,
            path,
            len(codes) if values["codes"] else values["frames"],
            values.get("doubt", ""),
        )
    except (FileNotFoundError, ValueError, RecursionError):
        return None


def read_loudness(path: Path) -> Loudness | None:
    """Return what was noted of this sound; None where nothing was, or the sound was changed since."""
    about = path.with_suffix(".json")
    try:
        if about.stat().st_mtime_ns < path.stat().st_mtime_ns:
            return None
        values = read_json(about, ABOUT)
    except (OSError, ValueError, RecursionError):
        return None
    return Loudness(*values["loudness"]) if is_right(STORED, values) and "loudness" in values else None


def measure(job: Path, index: int, text: str) -> float:
    """Return how long a finished part of this text lasts; 0 if there is none that can be read."""
    with contextlib.suppress(OSError):
        saved = find(SPOKEN.shown(job, index))
        return saved.seconds if saved is not None and saved.whole and saved.text == text else 0.0
    return 0.0


def adopt(path: Path, job: Path, index: int) -> SpokenPart:
    """Copy a take into this job as one of its parts; one that another program edited keeps its sound but loses its
    codes."""
    target = SPOKEN.shown(job, index)
    take = find(path)
    if path.resolve() != target.resolve():
        if is_elsewhere(path):
            mark_elsewhere(target)
        with sound.replacing_or_explaining(target) as unfinished:
            shutil.copyfile(path, unfinished)
        if take is not None:
            about = read_json(path.with_suffix(".json"), ABOUT)
            if read_loudness(path) is None:
                about.pop("loudness", None)  # the copy's times would not tell that the sound was changed since
            with sound.replacing_or_explaining(target.with_suffix(".json")) as unfinished:
                unfinished.write_text(json.dumps(about), "utf-8")
            if path.with_suffix(HEARD).is_file():
                with sound.replacing_or_explaining(target.with_suffix(HEARD)) as unfinished:
                    shutil.copyfile(path.with_suffix(HEARD), unfinished)
    if take is not None:
        return replace(take, path=target)
    return SpokenPart("", 0, "", sound.measure_seconds(target), True, None, target)
