"""How much of a job is done, as the bar and the window's title show it."""

from __future__ import annotations

import pytest

from app.base.sentence import say
from app.compat.machine.meter import Reading
from app.engine.jobs.events import RESTART, Adjusted, Event, PartDone, Step
from app.engine.jobs.progress import Progress


def step(done: int, total: int, unit: str, part: int = 0, parts: int = 1, at_once: int = 1) -> Step:
    return Step(done, total, 1.0, unit, None, Reading(), part=part, parts=parts, at_once=at_once)


def part(index: int, total: int) -> PartDone:
    return PartDone(index, total, "", "", 1)


@pytest.mark.parametrize(
    ("events", "share"),
    [
        ((), 0.0),
        ((step(5, 20, "steps"),), 0.25),
        ((part(0, 4), step(10, 20, "steps", 1, 4)), 0.375),
        ((part(0, 4), step(20, 20, "steps", 1, 4), part(1, 4)), 0.5),
        ((part(0, 4), part(2, 4), step(10, 20, "steps", 1, 4)), 0.625),  # another machine made the third
        ((part(0, 8), step(10, 20, "steps", 1, 8, at_once=4)), 0.375),
        ((step(20, 20, "steps", 0, 8, at_once=4), part(0, 8), part(1, 8)), 0.5),
        ((part(0, 2), step(90, 120, "frames", 1, 2)), 0.75),
        ((step(130, 120, "frames"),), 1.0),
        ((part(0, 4), step(9, 20, "frames", 1, 4), Adjusted(RESTART, say("x", "It died."))), 0.25),
    ],
    ids=[
        "nothing",
        "one picture",
        "batch",
        "between two pictures",
        "out of order",
        "four at once",
        "four decoded",
        "script",
        "overdue",
        "after a crash",
    ],
)
def test_share(events: tuple[Event, ...], share: float) -> None:
    progress = Progress()
    for event in events:
        progress = progress.add(event)
    assert progress.share == pytest.approx(share)
