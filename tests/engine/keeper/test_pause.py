"""A pause gives the device back by ending the engine's process, a real one: the job waits in its place and goes on with what it has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.base.paths import home
from app.base.sentence import say
from app.engine.jobs.events import Event, Finished, PartDone
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.tasks import SelfTest
from app.engine.keeper.keeper import Keeper
from tests.support import light_engine
from tests.support.waiting import until

pytestmark = pytest.mark.long

WHY = say("test.pause", "paused")
SCRIPT = " (pause 0.2s) ".join(["[S1] The water is warm today, my friend."] * 3)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An engine that waits after its first part until a file is there."""
    light_engine.replace_engines(monkeypatch)
    place = home(tmp_path / "home").create()
    (place.root / light_engine.LIVES).write_text('[{"waits": 1}]')
    yield tmp_path / "home"


def has_part(keeper: Keeper, job: str) -> bool:
    return any(isinstance(each, PartDone) for each in keeper.get_progress(job).parts)


def test_the_engine_ends_and_the_job_goes_on_where_it_was(slow: Path) -> None:
    keeper = Keeper(home(slow))
    try:
        first, second = (keeper.submit(SpeechRequest(SCRIPT, seed=5)) for _ in range(2))
        events: list[Event] = []
        following = threading.Thread(target=lambda: events.extend(keeper.follow(first.id)), daemon=True)
        following.start()
        until(lambda: has_part(keeper, first.id))
        assert keeper.engine.child is not None and keeper.engine.child.pid is not None
        process = psutil.Process(keeper.engine.child.pid)
        keeper.pause(WHY)
        until(lambda: not process.is_running() and keeper.state.paused == WHY and not keeper.state.job)
        until(lambda: [each.id for each in keeper.journal.list_waiting()] == [first.id, second.id])
        assert keeper.engine.child is None and not keeper.interrupted
        part = next(keeper.folder(first.id).glob("*.wav"))
        made_ns = part.stat().st_mtime_ns
        keeper.pause(None)
        following.join(45)
        assert isinstance(events[-1], Finished), keeper.state
        assert part.stat().st_mtime_ns == made_ns, "what was done is not done again"
    finally:
        keeper.close()


def test_a_pause_holds_from_the_first_moment_but_for_what_is_asked_at_once(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(home(slow), paused=WHY)
    try:
        job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
        until(lambda: keeper.state.hardware is not None and keeper.engine.child is None)
        assert keeper.journal.get(job.id).state == "queued"
        task = keeper.start_task(SelfTest())
        until(lambda: keeper.get_progress(task).end is not None or keeper.state.job == task)
        assert keeper.journal.get(job.id).state == "queued"
        keeper.stop(job.id)
        until(lambda: keeper.journal.get(job.id).state != "queued")
    finally:
        keeper.close()
