"""Errands tell how far they are and can be stopped; what the self-test asks is another file's business."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.base.paths import home
from app.base.sentence import Sentence, say
from app.compat.attention.seam import applied
from app.compat.machine.chunk_curve import Curve, Point, read_curve
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, load
from app.compat.planning.fallbacks import CHUNK_FALLBACK
from app.compat.planning.types import Plan
from app.compat.selftest import run
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, Step, Stopped
from app.engine.models import catalog
from app.engine.session import maintenance

ASKED = 3


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(_: Any, found: dict[Subject, Verdict], asked: Any) -> Iterator[tuple[int, int, Sentence]]:
        for done in range(ASKED):
            yield done, ASKED, say("selftest.asking", "Testing {subject} in {dtype}", subject="a", dtype="b")
            found[Subject("path", f"{done}")] = Verdict(Subject("path", f"{done}"), passed=done != 1)
        found[Subject("row", "defect")] = Verdict(Subject("row", "defect"), passed=False)
        yield ASKED, ASKED, say("selftest.done", "{passed} of {total} correct on this machine", passed=2, total=3)

    monkeypatch.setattr(run, "steps", steps)


def test_the_self_test_tells_each_question_and_keeps_its_verdicts(questions: None, tmp_path: Path) -> None:
    place, verdicts = home(tmp_path).create(), dict[Subject, Verdict]()
    events = list(maintenance.self_test(machine("cpu"), place, verdicts, Control()))
    assert [(each.done, each.total) for each in events if isinstance(each, Step)] == [(n, ASKED) for n in range(4)]
    assert isinstance(events[-2], Note) and str(events[-2].sentence).startswith("Self-test: 2 of 3 paths")
    assert isinstance(events[-1], Finished) and 0 < events[-1].elapsed_s < 60
    assert (
        load(place.verdicts, machine("cpu")).keys()
        == verdicts.keys()
        == {Subject("path", "0"), Subject("path", "1"), Subject("path", "2"), Subject("row", "defect")}
    )


def test_the_self_test_stops_between_two_questions(questions: None, tmp_path: Path) -> None:
    control, events = Control(), list[Event]()
    for event in maintenance.self_test(machine("cpu"), home(tmp_path).create(), {}, control):
        events.append(event)
        control.stop()
    step, end = events
    assert isinstance(step, Step) and isinstance(end, Stopped) and 0 <= end.elapsed_s < 60


def test_calls_shorter_than_the_clock_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows' monotonic clock goes by 15 ms, up to Python 3.12: several calls may pass while it stands still."""
    monkeypatch.setattr(maintenance, "time", SimpleNamespace(monotonic=lambda: 7.0, perf_counter=time.perf_counter))
    tuned = maintenance.tune(catalog.find("starter-voice"), machine("cpu"), home(tmp_path).create(), {}, Control())
    events = list(tuned)
    assert isinstance(events[0], Step) and events[0].rate > 0 and isinstance(events[-1], Finished)


class Clock:
    """A perf_counter by which each size takes its own time, and everything else none."""

    def __init__(self, took_s: dict[int, float]) -> None:
        self.now_s, self._took_s, self.plans = 0.0, took_s, list[Plan]()

    @contextmanager
    def applied(self, plan: Plan, read_chunk_q: Callable[[], Any]) -> Iterator[Any]:
        self.plans.append(plan)
        self._read_chunk_q = read_chunk_q
        with applied(plan, read_chunk_q) as seam:
            yield seam

    def synchronise(self, device: str) -> None:
        self.now_s += self._took_s[self._read_chunk_q()]


@pytest.mark.parametrize(
    ("took_s", "knee"),
    [({64: 1.0, 128: 1.0, 256: 1.0}, 64), ({64: 4.0, 128: 2.0, 256: 1.9375}, 128), ({64: 4.0, 128: 2.0, 256: 1.875}, 256)],
)
def test_the_knee_is_the_smallest_chunk_that_is_hardly_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_s: dict[int, float], knee: int
) -> None:
    """Each size below twice the call's 256 queries is measured three times, also those that memory once refused."""
    clock, model, place = Clock(took_s), catalog.find("starter-voice"), home(tmp_path).create()
    monkeypatch.setattr(maintenance, "time", SimpleNamespace(perf_counter=lambda: clock.now_s))
    monkeypatch.setattr(maintenance, "applied", clock.applied)
    monkeypatch.setattr(maintenance, "_synchronise", clock.synchronise)
    refused = Verdict(Subject.fallback(model.id, CHUNK_FALLBACK), False, seen=RunFailure("memory", 3, "float32", 64))
    events = list(maintenance.tune(model, machine("cpu"), place, {refused.subject: refused}, Control()))
    measured = [each for each in events if isinstance(each, Step)]
    assert [(each.done, each.total, each.eta_s) for each in measured[-2:]] == [(8, 9, pytest.approx(clock.now_s / 9, rel=0.5)), (9, 9, 0.0)]
    points = tuple(Point(size, each_s) for size, each_s in took_s.items())
    assert read_curve(place, model.id, "cpu") == Curve(model.id, points, knee)
    assert read_curve(place, model.id) is None, "a pretended machine's is not this computer's"
    assert [plan.chunk_most for plan in clock.plans] == [None]
