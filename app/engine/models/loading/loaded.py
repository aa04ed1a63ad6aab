"""Define the interface of a loaded model, and when its weights also fit another plan. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from app.base.sentence import Sentence
from app.compat.planning.types import Plan, Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam


class LoadedModel(Protocol):
    notes: tuple[Sentence, ...]
    """They tell what was unusual about its files."""

    def run(self, request: Any, control: Control, seam: Seam, job: Path) -> Iterator[Event]: ...

    def adapt(self, plan: Plan) -> bool:
        """Switch to another plan if the weights can stay where they are; False: the model has to be loaded again."""
        ...

    def close(self) -> None: ...


def same_placement(before: Plan, after: Plan) -> bool:
    """Tell whether both plans put the weights on the same devices in the same dtypes and order; how many layers stay there may differ."""
    if _without_kept(before) != _without_kept(after):
        return False
    return all(getattr(before, name) == getattr(after, name) for name in ("device", "offload", "quantised", "product", "channels_last"))


def _without_kept(plan: Plan) -> tuple[Precision, ...]:
    return tuple(replace(each, kept_bytes=0) for each in plan.precision)
