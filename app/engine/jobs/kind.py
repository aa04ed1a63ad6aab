"""A kind of job: what speech and pictures each do in their own way, beyond what a request itself answers. `app.engine.kinds` names both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from app.base.paths import Home
from app.engine.jobs.events import PartDone
from app.engine.jobs.request import KindName, PictureRequest, SpeechRequest

Asks = TypeVar("Asks", SpeechRequest, PictureRequest)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a job as it is to be made."""

    words: str
    seconds: float = 0.0
    """Of sound, as forecast."""
    chained: bool = False
    """It goes on with one before, so that it cannot be made apart."""


class Kind(Protocol[Asks]):
    name: KindName
    loads_with: str
    """The module whose `load_found` loads a model of this kind; only the engine imports it."""

    def check(self, home: Home, request: Asks, model: Any) -> None:
        """Raise Trouble for what the request's model, a row of the catalog, cannot do on any machine, before anything is loaded."""

    def plan_parts(self, home: Home, request: Asks) -> tuple[Part, ...]:
        """Return the parts of the whole job."""

    def read_part(self, request: Asks, path: Path, place: int, total: int) -> PartDone | None:
        """Return what is known of a finished part, by its file to show; None if it was never finished. Raise OSError if it cannot be
        read now."""

    def ask_alone(self, request: Asks, place: int, seed: int) -> Asks:
        """Return the request for one part, made as it would be in the whole job, whose seed this is."""

    def place_alone(self, place: int) -> int:
        """Return the place that a part has in the folder of such a request."""

    def measure_begun(self, path: Path, foreign: bool = False) -> int:
        """Return how far an unfinished part is, in steps or rows; 0 if its file is not what its name says. `foreign`: it is another
        machine's, which must leave something to be made here: nobody goes on with what would come out unseen."""

    def is_part(self, files: Sequence[Path], words: str, seed: int) -> bool:
        """Tell whether files from elsewhere, the one to show first, are this part."""

    def is_result(self, request: Asks, files: Sequence[Path], longest_s: float) -> bool:
        """Tell whether files from elsewhere are the whole of what was asked for."""

    def measure_work(self, home: Home, request: Asks) -> float:
        """Return the request's steps, or its frames of sound."""

    def join(self, home: Home, request: Asks, folder: Path, places: Collection[int], target: Path) -> tuple[tuple[str, ...], float]:
        """Make the result of these parts; return its files, in `target`, and its seconds."""


AnyKind = Kind[Any]
