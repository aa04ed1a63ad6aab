"""The pieces of a job that machines can make apart: its pictures, and the parts of a script that hang on no part before."""

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


@dataclass(frozen=True, slots=True)
class Pieces:
    """The engine takes one from the job's folder if it was made of what it would make it of itself."""

    parts: Parts
    seed: int
    places: tuple[int, ...]

    @property
    def request(self) -> Request:
        return self.parts.request

    @property
    def complete(self) -> bool:
        """Whether these are all parts of the job."""
        return len(self.places) == len(self.parts.planned)

    def name_files(self, place: int) -> tuple[str, ...]:
        """Return the files of a piece in the job's folder, the one to show first."""
        return self.parts.files.name_made(place)

    def name_begun(self, place: int) -> tuple[str, str]:
        """Return what the file from which a piece goes on is called, at the machine that makes it and in the job's folder."""
        files = self.parts.files
        return files.name_begun(self.parts.kind.place_alone(place)), files.name_begun(place)

    def ask_for(self, place: int) -> Request:
        """Return the request for one piece: the same seed and model as if this machine made it."""
        asked: Request = self.parts.kind.ask_alone(self.request, place, self.seed)
        return asked

    def accept(self, place: int, files: Mapping[str, Path]) -> dict[str, Path] | None:
        """Return what a machine made under the names that it has here; None if it is not what was asked for."""
        kind, names = self.parts.kind, self.parts.files.name_made(self.parts.kind.place_alone(place))
        if not set(names) <= files.keys():
            return None
        made = [files[name] for name in names]
        right = kind.is_part(made, self.parts.planned[place].words, seed_of_part(self.seed, place))
        return dict(zip(self.name_files(place), made, strict=True)) if right else None

    def tell(self, place: int, path: Path) -> PartDone:
        total, words = len(self.parts.planned), self.parts.planned[place].words
        made = self.parts.kind.read_part(self.request, path, place, total)
        return made or PartDone(place, total, str(path), words, seed_of_part(self.seed, place))


def find_pieces(home: Home, request: Request, folder: Path) -> Pieces | None:
    """Return what other machines can make of a job whose seed is drawn; None if nothing."""
    if request.stays_here:
        return None
    seed = draw_seed(request, folder)
    parts = parts_of(home, replace(request, seed=seed), folder)
    places = tuple(place for place, part in enumerate(parts.planned) if not part.chained)
    return Pieces(parts, seed, places) if places and (len(parts.planned) > 1 or request.is_piece) else None
