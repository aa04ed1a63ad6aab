"""Order waiting jobs: the owner's first, then one of each guest in turn, whoever used the engine least before the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Protocol, TypeVar

from app.engine.jobs.owners import OWNER, household_of

PLACED_BELOW: Final = 1e6
"""Positions below this were written when the owner moved a job up; those of moved jobs are negative. All others are times in seconds."""


class Waiting(Protocol):
    @property
    def owner(self) -> str: ...
    @property
    def position(self) -> float: ...
    @property
    def started_s(self) -> float | None: ...


T = TypeVar("T", bound=Waiting)


def order_fairly(waiting: Sequence[T], used_s: Mapping[str, float]) -> list[T]:
    """`waiting` is in the order of arrival. `used_s`: the engine time that each household had lately."""
    turns: Counter[str] = Counter()

    def rank(job: T) -> tuple[int, int, float]:
        if job.owner == OWNER:
            return 0, 0, 0.0
        if job.started_s is not None:
            return 1, 0, 0.0
        household = household_of(job.owner)
        turns[household] += 1
        return 2, turns[household], used_s.get(household, 0.0)

    placed = sorted(((job, rank(job)) for job in waiting), key=lambda each: abs(each[0].position))
    ranks = [(*own, place) for place, (_, own) in enumerate(placed)]
    for place, ((job, own), (behind, _)) in reversed([*enumerate(pairwise(placed))]):
        if job.position < 0 and abs(behind.position) < PLACED_BELOW:
            ranks[place] = min((*own, place), (*ranks[place + 1][:3], place))  # ahead of the one that it passed
    return [placed[place][0] for *_, place in sorted(ranks)]
