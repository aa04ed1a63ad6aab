"""Errands tell how far they are and can be stopped; what the self-test asks is another file's business."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import Subject, Verdict, load
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Note, Step, Stopped
from app.engine.models import catalog
from app.engine.session import maintenance
from app.paths import home
from app.sentence import Sentence, say

ASKED = 3


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(_: Any, found: dict[Subject, Verdict]) -> Iterator[tuple[int, int, Sentence]]:
        for done in range(ASKED):
            yield done, ASKED, say("selftest.asking", "Testing {subject} in {dtype}", subject="a", dtype="b")
            found[Subject("path", f"{done}")] = Verdict(Subject("path", f"{done}"), passed=done != 1)
        found[Subject("row", "defect")] = Verdict(Subject("row", "defect"), passed=False)
        yield ASKED, ASKED, say("selftest.done", "{passed} of {total} correct on this machine", passed=2, total=3)

    monkeypatch.setattr(maintenance.run, "steps", steps)


def test_the_self_test_tells_each_question_and_keeps_its_verdicts(questions: None, tmp_path: Path) -> None:
    place, verdicts = home(tmp_path).create(), {}
    events = list(maintenance.self_test(machine("cpu"), place, verdicts, Control()))
    assert [(each.done, each.total) for each in events if isinstance(each, Step)] == [(n, ASKED) for n in range(4)]
    assert isinstance(events[-2], Note) and str(events[-2].sentence).startswith("Self-test: 2 of 3 paths")
    assert isinstance(events[-1], Finished)
    assert (
        load(place.verdicts, machine("cpu")).keys()
        == verdicts.keys()
        == {Subject("path", "0"), Subject("path", "1"), Subject("path", "2"), Subject("row", "defect")}
    )


def test_the_self_test_stops_between_two_questions(questions: None, tmp_path: Path) -> None:
    control, events = Control(), []
    for event in maintenance.self_test(machine("cpu"), home(tmp_path).create(), {}, control):
        events.append(event)
        control.stop()
    assert [type(each) for each in events] == [Step, Stopped]


def test_calls_shorter_than_the_clock_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows' monotonic clock goes by 15 ms, up to Python 3.12: several calls may pass while it stands still."""
    monkeypatch.setattr(maintenance, "time", SimpleNamespace(monotonic=lambda: 7.0, perf_counter=time.perf_counter))
    tuned = maintenance.tune(catalog.find("starter-voice"), machine("cpu"), home(tmp_path).create(), {}, Control())
    events = list(tuned)
    assert isinstance(events[0], Step) and events[0].rate > 0 and isinstance(events[-1], Finished)
