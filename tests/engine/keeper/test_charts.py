"""The points of the live charts: each change is marked once, at the point after it."""

from __future__ import annotations

from app.base.sentence import say
from app.compat.machine.meter import Reading
from app.engine.jobs.events import Step
from app.engine.keeper import engine_status
from app.engine.keeper.engine_status import Charts


def add(to: Charts, *chunks: int, step: Step | None = None) -> list[list[str]]:
    for chunk in chunks:
        to.add(step, Reading(), chunk)
    return [[str(mark) for mark in point.marks] for point in to.points]


def test_a_move_of_the_slider_is_marked_once() -> None:
    assert add(Charts(), 64, 128, 128, 64) == [[], ["chunk size 128"], [], ["chunk size 64"]]


def test_what_is_in_force_at_the_first_point_is_no_change() -> None:
    assert add(Charts(), 128, 128) == [[], []]


def test_a_fallback_stands_before_the_move_of_the_slider_at_the_next_point() -> None:
    drawn = Charts()
    add(drawn, 64)
    drawn.mark(say("x", "it fell back"))
    assert add(drawn, 128, 128)[1:] == [["it fell back", "chunk size 128"], []]


def test_a_point_without_a_step_has_no_speed_and_only_the_last_ones_are_kept() -> None:
    drawn = Charts()
    add(drawn, 64, step=Step(1, 2, 4.0, "frames", None, Reading()))
    add(drawn, 64)
    assert [(point.rate, point.unit) for point in drawn.points] == [(4.0, "frames"), (0.0, "")]
    assert len(add(drawn, *[64] * engine_status.HISTORY)) == engine_status.HISTORY
