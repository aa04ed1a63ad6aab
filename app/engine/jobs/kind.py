"""A kind of job: what speech and pictures each do in their own way, beyond what a request itself answers. `app.engine.kinds` names both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.planning.attention_calls import Call
from app.compat.planning.types import Plan, Row
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import PartDone
from app.engine.jobs.owners import Allowance
from app.engine.jobs.request import KindName, PictureRequest, Request, SpeechRequest

MORE_ROOM = say("owner.more-room", "Choose another model or close other programs.")
Asks = TypeVar("Asks", SpeechRequest, PictureRequest)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a job as it is to be made."""

    words: str
    seconds: float = 0.0
    """So much sound is forecast."""
    chained: bool = False
    """It goes on with one before, so that it cannot be made apart."""


class Kind(Protocol[Asks]):
    name: KindName
    loads_with: str
    """The `load_found` of this module loads a model of this kind; only the engine imports it."""
    is_heard: bool
    """What it makes is a sound."""
    whole_parts: bool
    """Each part is a result of its own, whole even where the job was stopped."""

    def refuse(self, model: Any, others: tuple[str, ...]) -> Trouble:
        """Say that a request of another kind names this model, and which ones would do."""

    def complete(self, home: Home, request: Asks) -> Asks:
        """Return the owner's request with what the owner's files add to it: the LoRAs that its words name, the list of pronunciations. Raise Trouble for
        a file that is not there."""

    def check(self, home: Home, request: Asks, model: Any) -> None:
        """Raise Trouble for what the request's model, a row of the catalog, cannot do on any machine, before anything is loaded."""

    def plan_parts(self, home: Home, request: Asks) -> tuple[Part, ...]:
        """Return the parts of the whole job."""

    def list_models(self, home: Home, request: Asks, model: Any, folder: Path) -> tuple[str, ...]:
        """Return the models that make what is missing in the job's folder, in order; at least one, which makes the result."""

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

    def weigh_step(self, request: Asks, model: Any) -> float:
        """Weigh a step of the work, so that the speeds of different requests can be compared."""

    def estimate_seconds(self, request: Asks, model: Any, past: Sequence[Creation], plan: Plan | None, work: float) -> float | None:
        """Estimate the time of a request, whose work was measured, by what the model made like it; None if it was never measured."""

    def list_calls(self, model: Any, row: Row) -> tuple[Call, ...]:
        """List the attention calls of what a model's makers recommend."""

    def shrink(self, home: Home, request: Asks) -> tuple[Asks, Sentence]:
        """Return a smaller request in place of one that failed, and what was changed; raise Trouble if there is none."""

    def grant(self, request: Asks, most: Allowance, model: Any) -> Asks:
        """Return a guest's request as it may run; raise Trouble where it asks for too much."""

    def read_made_from(self, path: Path) -> Request:
        """Read from a result's file what it was made from; raise Trouble, OSError or ValueError if it does not say."""

    def name_result(self, request: Asks) -> str:
        """Give an example of a result's name."""

    def estimate_bytes(self, request: Asks) -> int:
        """Estimate the size of the result; low, so that only what cannot fit is refused."""

    def join(self, home: Home, request: Asks, folder: Path, places: Collection[int], target: Path) -> tuple[tuple[str, ...], float]:
        """Make the result of these parts; return its files, in `target`, and its seconds."""


AnyKind = Kind[Any]
