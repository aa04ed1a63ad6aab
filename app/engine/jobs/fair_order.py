"""Order waiting jobs: the owner's first, then one of each guest in turn, whoever used the engine least before the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeVar

from app.engine.jobs.owners import OWNER, household_of

MOVED_BELOW: Final = 1e6
"""Positions below this were set by the owner, who moved a job; all others are times in seconds."""


class Waiting(Protocol):
    @property
    def owner(self) -> str: ...
    @property
    def position(self) -> float: ...
    @property
    def started_s(self) -> float | None: ...


T = TypeVar("T", bound=Waiting)


def order_fairly(waiting: Sequence[T], used_s: Mapping[str, float]) -> list[T]:
    """`waiting` is in the order of positions. `used_s`: the engine time that each household had lately."""
    turns: Counter[str] = Counter()

    def rank(place: int, job: T) -> tuple[int, int, float, int]:
        if job.owner == OWNER:
            return 0, 0, 0.0, place
        if job.started_s is not None or job.position < MOVED_BELOW:
            return 1, 0, 0.0, place  # already begun, or placed by the owner
        household = household_of(job.owner)
        turns[household] += 1
        return 2, turns[household], used_s.get(household, 0.0), place

    ranks = [rank(place, job) for place, job in enumerate(waiting)]
    return [waiting[place] for *_, place in sorted(ranks)]
