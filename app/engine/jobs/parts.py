"""What a job's folder holds: the files of each part, made or begun, and what goes with the run. No other file names them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from app.base import atomic_write
from app.base.paths import Home
from app.engine.jobs.events import PartDone
from app.engine.jobs.kind import AnyKind, Part
from app.engine.jobs.request import KindName, Request

DELIVERED: Final = "delivered"
"""This folder lies inside the job's; its files go to the shelf."""
MACHINES: Final = "machines.json"
"""It tells which machine made which file, where it was another one."""
LENT_OUT: Final = "lent-out"
"""Another machine was at the job. It goes on by itself after a restart, for nothing here failed."""
ELSEWHERE: Final = ".elsewhere"
"""A mark's name ends so: it lies beside a begun file in which another machine had a hand, also once this one goes on with it, and beside the file to
show of a part that another machine made."""
HEARD: Final = ".heard.json"
"""The name of what a recogniser heard in a sound ends so, in place of the sound's own ending."""
LESSONS: Final = "verdicts"
"""This folder is there once a part that another machine made has served this one as a voice: what breaks from then on is learned in it alone."""
GUIDE: Final = "guide.png"
"""This map, as it was made of what the person gave, guides a picture."""
TAKES: Final = "takes.json"
"""It lists the earlier takes of a script's parts that lie beside them, with their words."""
DIGITS_MOST: Final = 4
"""A part's place has at most so many digits."""


@dataclass(frozen=True, slots=True)
class PartFiles:
    """How the files of a kind's parts are called."""

    made: tuple[tuple[str, str], ...]
    """The names of a finished part's files begin and end so, the one to show first; it is there when all of them are."""
    begun: tuple[str, str]
    """The name of the file from which an unfinished part goes on begins and ends so."""
    passing: str
    """They are only for watching and hearing the run. They go a while after its end: a page may be fetching what it was told a moment ago."""
    digits: int

    def name_made(self, place: int) -> tuple[str, ...]:
        return tuple(self._name(each, place) for each in self.made)

    def name_begun(self, place: int) -> str:
        return self._name(self.begun, place)

    def name_passing(self, which: str) -> str:
        return self.passing.replace("*", which)

    def shown(self, folder: Path, place: int) -> Path:
        """Return where a part's file to show is, or will be."""
        return folder / self._name(self.made[0], place)

    def begun_path(self, folder: Path, place: int) -> Path:
        return folder / self.name_begun(place)

    def is_made(self, folder: Path, place: int) -> bool:
        return all((folder / name).is_file() for name in self.name_made(place))

    def list_made(self, folder: Path) -> dict[int, Path]:
        """Return the file to show of each part that is there, by its place."""
        return {place: self.shown(folder, place) for place in sorted(self._iterate_made(folder))}

    def has_made(self, folder: Path) -> bool:
        return next(self._iterate_made(folder), None) is not None

    def _iterate_made(self, folder: Path) -> Iterator[int]:
        begin, end = self.made[0]
        places = (self.find_place(path.name, self.made[0]) for path in folder.glob(f"{begin}*{end}"))
        return (place for place in places if place is not None and self.is_made(folder, place))

    def list_begun(self, folder: Path) -> list[Path]:
        begin, end = self.begun
        return sorted(folder.glob(f"{begin}*{end}"))

    def find_place(self, name: str, *patterns: tuple[str, str]) -> int | None:
        """Return the place of the part to which a file of this name belongs; None if it is no part's. `patterns`: the names looked at, if not all."""
        for begin, end in patterns or (*self.made, self.begun):
            number = name.removeprefix(begin).removesuffix(end)
            if name == f"{begin}{number}{end}" and self.digits <= len(number) <= DIGITS_MOST and number.isascii() and number.isdigit():
                return int(number)
        return None

    def _name(self, around: tuple[str, str], place: int) -> str:
        return f"{around[0]}{place:0{self.digits}d}{around[1]}"


SPOKEN: Final = PartFiles((("part-", ".wav"), ("part-", ".json")), ("unfinished-", ".json"), "sound-*.wav", 3)
PAINTED: Final = PartFiles((("picture-", ".png"),), ("latent-", ".safetensors"), "preview-*.jpg", 1)
FILES: Final[Mapping[KindName, PartFiles]] = {"speech": SPOKEN, "picture": PAINTED}


def name_take(place: int, number: int) -> str:
    """Name the sound of a part's earlier take."""
    return f"take-{place:03d}-{number}.wav"


def list_made(folder: Path) -> tuple[str, ...]:
    """List what a run leaves, of whichever kind it was; half-written files have other names."""
    return tuple(str(path) for files in FILES.values() for path in files.list_made(folder).values())


def drop_passing(folder: Path) -> None:
    for piece in [each for files in FILES.values() for each in folder.glob(files.passing)]:
        piece.unlink(missing_ok=True)


def mark_elsewhere(path: Path) -> None:
    name_mark(path).touch()


def name_mark(path: Path) -> Path:
    return path.with_name(path.name + ELSEWHERE)


def is_elsewhere(path: Path) -> bool:
    return name_mark(path).is_file()


def drop_begun(begun: Path) -> None:
    """Delete what a part was begun with, or begins with no more."""
    begun.unlink(missing_ok=True)
    name_mark(begun).unlink(missing_ok=True)


def drop_elsewhere(folder: Path) -> bool:
    """Delete what other machines had begun of a job; tell whether there was any and it is gone. What breaks meanwhile says nothing of this machine."""
    begun = [mark.with_suffix("") for files in FILES.values() for mark in folder.glob("*".join(files.begun) + ELSEWHERE)]
    there = any(each.is_file() for each in begun)
    for each in begun:
        with suppress(OSError):  # another program holds it
            drop_begun(each)
    return there and not any(each.is_file() for each in begun)


class Parts:
    """The parts of one job: what they are to be, and what of them lies in its folder."""

    def __init__(self, kind: AnyKind, home: Home, request: Request, folder: Path) -> None:
        self.kind, self.home, self.request, self.folder = kind, home, request, folder
        self.files = FILES[kind.name]

    @cached_property
    def planned(self) -> tuple[Part, ...]:
        return self.kind.plan_parts(self.home, self.request)

    def left(self) -> list[PartDone]:
        """Return what is there, each part with the words and the seed it was left with, even if its script has changed since; raise OSError
        for one that cannot be read now."""
        there = self.files.list_made(self.folder)
        total = max([len(self.planned), *(place + 1 for place in there)])
        return [part for place, path in there.items() if (part := self.kind.read_part(self.request, path, place, total)) is not None]

    def done(self) -> list[PartDone]:
        """Return what is there, whole, of the words that are to be."""
        return [part for part in self.left() if part.whole and self.fits(part)]

    def fits(self, part: PartDone) -> bool:
        """Tell whether a part has the words that are to be: an earlier Hearth may have split the script elsewhere."""
        return part.index < len(self.planned) and part.text == self.planned[part.index].words


def move_in(folder: Path, file: Path, name: str, machine: str) -> Path:
    """Put a file that another machine made into a job's folder, unless it is there by now; note whose it is."""
    path = folder / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.put_in_place(file, path)
        atomic_write.write_text(folder / MACHINES, json.dumps({**read_machines(folder), name: machine}, ensure_ascii=False))
    return path


def read_machines(folder: Path) -> dict[str, str]:
    """Return which files other machines made, and which."""
    try:
        values = json.loads((folder / MACHINES).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(machine) for name, machine in values.items()} if isinstance(values, dict) else {}
