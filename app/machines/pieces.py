"""The pieces of a job that machines can make apart: its pictures, and the parts of a script that hang on no part before; else all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from app.base.paths import Home
from app.engine.jobs.events import PartDone
from app.engine.jobs.parts import Parts
from app.engine.jobs.request import Request
from app.engine.jobs.seed import draw_seed, seed_of_part
from app.engine.kinds import parts_of
from app.engine.speech.sound.arrived import PART_MOST_S
from app.machines.tasks import begun


@dataclass(frozen=True, slots=True)
class Pieces:
    """The engine takes one from the job's folder if it was made of what it would make it of itself."""

    parts: Parts
    seed: int
    places: tuple[int, ...]
    whole: bool = False
    """All of it is one piece: a script whose parts carry the voice on."""

    @property
    def request(self) -> Request:
        return self.parts.request

    @property
    def complete(self) -> bool:
        """Whether these are all parts of the job."""
        return len(self.places) == len(self.parts.planned)

    def name(self, place: int) -> str:
        return "all" if self.whole else str(place)

    def is_made(self, folder: Path, place: int) -> bool:
        """Tell whether a piece is in the job's folder. A whole job leaves it with its end."""
        return not self.whole and self.parts.files.is_made(folder, place)

    def list_begun(self, folder: Path, place: int) -> dict[str, Path]:
        """Return the files from which a machine would go on with a piece, by their names there."""
        if self.whole:
            return {file.name: file for file in begun.list_begun(self.request, folder)}
        files = self.parts.files
        return {files.name_begun(self.parts.kind.place_alone(place)): folder / files.name_begun(place)}

    def find_begun(self, place: int, name: str) -> str:
        """Return what a file that a machine sends of an unfinished piece is called in the job's folder; "" if it is none."""
        if self.whole:
            return name if begun.is_name(name, len(self.parts.planned)) else ""
        files = self.parts.files
        return files.name_begun(place) if name == files.name_begun(self.parts.kind.place_alone(place)) else ""

    def ask_for(self, place: int) -> Request:
        """Return the request for one piece: the same seed and model as if this machine made it."""
        asked: Request = self.request if self.whole else self.parts.kind.ask_alone(self.request, place, self.seed)
        return asked

    def accept(self, place: int, files: Mapping[str, Path]) -> dict[str, Path] | None:
        """Return what a machine made under the names that it has here; None if it is not what was asked for."""
        kind, made = self.parts.kind, self.parts.files
        if self.whole:
            longest_s = sum(PART_MOST_S + part.seconds for part in self.parts.planned)
            return {**files} if kind.is_result(self.request, [*files.values()], longest_s) else None
        names = made.name_made(kind.place_alone(place))
        if not set(names) <= files.keys():
            return None
        paths = [files[name] for name in names]
        right = kind.is_part(paths, self.parts.planned[place].words, seed_of_part(self.seed, place))
        return dict(zip(made.name_made(place), paths, strict=True)) if right else None

    def tell(self, place: int, path: Path) -> PartDone:
        total, words = len(self.parts.planned), self.parts.planned[place].words
        made = self.parts.kind.read_part(self.request, path, place, total)
        return made or PartDone(place, total, str(path), words, seed_of_part(self.seed, place))


def find_pieces(home: Home, request: Request, folder: Path) -> Pieces | None:
    """Return what other machines can make of a job whose seed is drawn, apart; None if nothing."""
    if request.stays_here:
        return None
    found = all_of(home, request, folder)
    planned = found.parts.planned
    places = tuple(place for place, part in enumerate(planned) if not part.chained)
    return replace(found, places=places, whole=False) if places and (len(planned) > 1 or request.is_piece) else None


def all_of(home: Home, request: Request, folder: Path) -> Pieces:
    """Return all of such a job as one piece."""
    seed = draw_seed(request, folder)
    return Pieces(parts_of(home, replace(request, seed=seed), folder), seed, (0,), whole=True)
