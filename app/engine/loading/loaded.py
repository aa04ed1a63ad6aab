"""What speech.load and picture.load return, and when it serves another plan as it lies. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from app.compat.planning.types import Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event
from app.sentence import Sentence

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam


class LoadedModel(Protocol):
    notes: tuple[Sentence, ...]
    """What was strange about its files."""

    def run(self, request: Any, control: Control, seam: Seam, job: Path) -> Iterator[Event]: ...

    def adapt(self, plan: Plan) -> bool:
        """Takes another plan on where its weights may stay as they lie; False: it has to be loaded again."""
        ...

    def close(self) -> None: ...


def same_placement(before: Plan, after: Plan) -> bool:
    """Whether weights that were loaded for one plan lie as the other has them."""
    return all(
        getattr(before, name) == getattr(after, name) for name in ("device", "precision", "offload", "quantised")
    )
