"""The earlier takes of a script's parts, kept in the job's folder beside those that its result holds, and the script that it was before."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.bounded_json import Bounds, read_json
from app.base.stored_json import is_right
from app.engine.jobs.events import PartDone
from app.engine.jobs.parts import HEARD, TAKES, is_elsewhere, mark_elsewhere, name_take

TAKES_MOST: Final = 8
"""A part has at most so many takes; the oldest go first."""
_BOUNDS: Final = Bounds(most_bytes=8 << 20, values=200_000)


@dataclass(frozen=True, slots=True)
class Take:
    path: Path
    words: str
    """The words are as they stood in the script."""
    text: str
    """The words are as they were spoken, with the speaker's tag."""
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Takes:
    before: str = ""
    """This job had the script before."""
    parts: Mapping[int, tuple[Take, ...]] = field(default_factory=dict)
    """A part's place leads to its takes, the newest first."""


class StoredTake(TypedDict):
    words: Annotated[str, Field(max_length=1_000_000)]
    text: str
    seconds: Annotated[float, Field(ge=0, le=3600)]
    seed: Annotated[int, Field(ge=0)]


class StoredTakes(TypedDict):
    before: Annotated[str, Field(max_length=100, pattern=r"^[\w-]*$")]
    parts: dict[Annotated[str, Field(pattern=r"^\d{1,4}$")], Annotated[list[StoredTake], Field(max_length=TAKES_MOST)]]


STORED: Final = TypeAdapter(StoredTakes)
NONE: Final = Takes()


def read_takes(folder: Path) -> Takes:
    """Return what is kept of earlier takes; nothing where that cannot be read, for it only offers them."""
    try:
        values = read_json(folder / TAKES, _BOUNDS)
    except (OSError, ValueError, RecursionError):
        return NONE
    if not is_right(STORED, values):
        return NONE
    parts = dict[int, tuple[Take, ...]]()
    for place, stored in values["parts"].items():
        found = [Take(folder / name_take(int(place), number), **each) for number, each in enumerate(stored)]
        parts[int(place)] = tuple(each for each in found if each.path.is_file())
    return Takes(values["before"], parts)


def keep_takes(folder: Path, before: str, parts: Mapping[int, Sequence[Take]]) -> None:
    """Put these takes into a job's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    stored: StoredTakes = {"before": before, "parts": {}}
    for place, takes in sorted(parts.items()):
        rows = list[StoredTake]()
        for take in takes[:TAKES_MOST]:
            if take.path.is_file():
                _copy(take.path, folder / name_take(place, len(rows)))
                rows.append({"words": take.words, "text": take.text, "seconds": take.seconds, "seed": take.seed})
        if rows:
            stored["parts"][str(place)] = rows
    atomic_write.write_text(folder / TAKES, json.dumps(stored, ensure_ascii=False))


def _copy(source: Path, target: Path) -> None:
    """Copy a take with all that is known of it; as a second name of the same file where the disk can, as both are only ever replaced whole."""
    for suffix in (".wav", ".json", HEARD):
        if source.with_suffix(suffix).is_file():
            target.with_suffix(suffix).unlink(missing_ok=True)
            try:
                os.link(source.with_suffix(suffix), target.with_suffix(suffix))
            except OSError:
                shutil.copyfile(source.with_suffix(suffix), target.with_suffix(suffix))
    if is_elsewhere(source):
        mark_elsewhere(target)


def carry_takes(
    folder: Path, before: str, earlier: Takes, spoken: Sequence[tuple[PartDone, str]], keep: Sequence[str], fresh: set[int]
) -> None:
    """Keep, for a job that goes on from another one, that one's takes which its parts do not have. `spoken`: the parts of the one before, each with
    its words in the script; `keep`: what of them each part takes over; `fresh`: those that are spoken anew."""
    pairs = pair_parts([part for part, _ in spoken], keep, fresh)
    known = {part.index: Take(Path(part.path), words, part.text, part.seconds, part.seed) for part, words in spoken}
    parts = dict[int, list[Take]]()
    for place, index in pairs.items():
        left = [known[index], *earlier.parts.get(index, ())]
        has = keep[place] if place not in fresh and place < len(keep) else ""
        parts[place] = [each for each in left if str(each.path) != has]
    with contextlib.suppress(OSError):  # no room: they stay with the job before
        keep_takes(folder, before, parts)


def pair_parts(parts: Sequence[PartDone], keep: Sequence[str], fresh: set[int]) -> dict[int, int]:
    """Return which part of the script before each part was: the one it takes over, or stands in the place of."""
    by_path = {part.path: part.index for part in parts}
    there = set(by_path.values())
    pairs = {place: by_path.get(path, place) for place, path in enumerate(keep) if path and by_path.get(path, place) in there}
    taken = set(pairs.values())
    free = [part.index for part in parts if part.index not in taken]
    for place in range(len(keep)):
        if place in fresh and place not in pairs:
            floor = max((old for at, old in pairs.items() if at < place), default=-1)
            after = min((old for at, old in pairs.items() if at > place and old > floor), default=len(parts) + 1_000_000)
            old = next((each for each in free if floor < each < after), None)
            if old is not None:
                pairs[place] = old
                free.remove(old)
    return dict(sorted(pairs.items()))
