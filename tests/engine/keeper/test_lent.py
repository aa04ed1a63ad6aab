"""Work for another machine in this one's engine: after its own jobs, over crashes, stopped on request, and nothing of it on the shelf."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base.paths import home
from app.engine.jobs.events import Adjusted, Event, Finished, PartDone, Step, Stopped
from app.engine.jobs.parts import is_elsewhere
from app.engine.jobs.request import PictureRequest
from app.engine.keeper import worker
from app.engine.keeper.keeper import Keeper
from tests.support import light_painter
from tests.support.light_painter import pace, read_made
from tests.support.waiting import Idle

pytestmark = pytest.mark.long


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    monkeypatch.setattr(worker, "main", light_painter.main)
    pace(tmp_path, step_s=0.05)
    keeper = Keeper(home(tmp_path))
    yield keeper
    keeper.close()


def request(seed: int, batch: int = 1) -> PictureRequest:
    return PictureRequest("a ball", model="starter-painter", seed=seed, batch=batch)


@pytest.mark.slow
def test_it_comes_after_own_jobs_and_leaves_nothing(keeper: Keeper) -> None:
    first = keeper.submit(request(1))
    lent = keeper.run_lent("x", request(7))
    second = keeper.submit(request(2))
    end = list(keeper.follow(lent))[-1]
    assert isinstance(end, Finished)
    (file,) = map(Path, end.files)
    assert file.is_file() and file.parent == keeper.folder(lent)
    assert [seed for word, seed, _ in read_made(keeper.home.root) if word == "finished"] == [1, 2, 7]
    assert keeper.shelf.list_of_job(lent) == [] and keeper.journal.find(lent) is None
    assert {keeper.journal.get(each.id).state for each in (first, second)} == {"finished"}
    again = keeper.run_lent("x", request(7))
    assert isinstance(list(keeper.follow(again))[-1], Finished), "the same task may come again"


def end_stopped(keeper: Keeper, job: str) -> Event:
    """Stop it once it has taken a step; return its end."""
    for event in keeper.follow(job):
        if isinstance(event, Step):
            keeper.stop(job)
    return event


@pytest.mark.slow
def test_it_is_stopped_while_it_waits_and_while_it_runs(keeper: Keeper) -> None:
    pace(keeper.home.root, step_s=1.0)  # so that each Stop comes before the last step
    own = keeper.submit(request(1))
    waits = keeper.run_lent("waits", request(7))
    keeper.stop(waits)
    assert isinstance(list(keeper.follow(waits))[-1], Stopped)
    assert isinstance(end_stopped(keeper, own.id), Stopped)
    assert isinstance(end_stopped(keeper, keeper.run_lent("runs", request(8))), Stopped)
    assert {1, 8} <= {seed for word, seed, _ in read_made(keeper.home.root) if word == "stopped"}, "at a step of its own"
    assert 7 not in {seed for _, seed, _ in read_made(keeper.home.root)}


@pytest.mark.slow
def test_a_crash_is_tried_again(keeper: Keeper) -> None:
    lent, killed = keeper.run_lent("x", request(7, batch=2)), False
    events = []
    for event in keeper.follow(lent):
        events.append(event)
        if isinstance(event, Step) and event.part == 1 and not killed:
            killed = True
            engine = keeper.engine.child
            assert engine is not None and engine.pid is not None
            os.kill(engine.pid, signal.SIGTERM)
    assert isinstance(events[-1], Finished) and len(events[-1].files) == 2
    assert any(isinstance(event, Adjusted) for event in events)
    made = [seed for word, seed, _ in read_made(keeper.home.root) if word == "began"]
    assert made == [7, 8, 8], "the finished picture was made again"


def test_a_part_that_another_machine_made_is_marked_as_its(keeper: Keeper, tmp_path: Path) -> None:
    job = keeper.submit(request(1, batch=2)).id
    (tmp_path / "arrived.png").write_bytes(b"x")
    keeper.take_over(job, PartDone(1, 2, "", "a ball", 2), {"picture-1.png": tmp_path / "arrived.png"}, "Study")
    assert is_elsewhere(keeper.folder(job) / "picture-1.png") and not is_elsewhere(keeper.folder(job) / "picture-0.png")


def start_again(keeper: Keeper) -> Keeper:
    """As after a crash: what this keeper had queued is a dead process's."""
    keeper.database.write("UPDATE jobs SET runner='0:0'")
    keeper.close()
    return Idle(keeper.home)


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_another_machine_was_at_comes_back_by_itself_once(by_hand: bool, tmp_path: Path) -> None:
    keeper: Keeper = Idle(home(tmp_path))
    job = keeper.submit(request(1)).id
    assert keeper.lend_out(job, "starter-painter", lambda: None) is not None
    keeper = start_again(keeper)
    assert [each.id for each in keeper.interrupted] == [job]
    if by_hand:
        keeper.resume(job)
    else:
        keeper.resume_lent_out()
    assert keeper.interrupted == [] and keeper.journal.get(job).state == "queued"
    keeper.journal.take()
    keeper = start_again(keeper)  # while it ran here
    keeper.resume_lent_out()
    assert [each.id for each in keeper.interrupted] == [job], "what may have failed here waits for the person"
    keeper.close()


def test_what_comes_back_from_another_machine_runs_here(tmp_path: Path) -> None:
    keeper: Keeper = Idle(home(tmp_path))
    job = keeper.submit(request(1)).id
    keeper.lend_out(job, "starter-painter", lambda: None)
    keeper.give_up_lent_out(job)
    assert keeper.journal.get(job).state == "queued"
    keeper.journal.take()
    keeper = start_again(keeper)
    keeper.resume_lent_out()
    assert [each.id for each in keeper.interrupted] == [job]
    keeper.close()


@pytest.mark.parametrize("goes", ["out", "back"])
def test_a_stop_between_the_queue_and_another_machine_holds(goes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job neither waits nor runs in that moment."""
    keeper = Idle(home(tmp_path))
    job, stopped, journal = keeper.submit(request(1)).id, list[str](), keeper.journal
    step = {"out": "take_waiting", "back": "put_back"}[goes]
    move = getattr(journal, step)

    def move_and_stop(id_: str) -> object:
        if goes == "back":
            keeper.stop(id_)
        moved = move(id_)
        if goes == "out":
            keeper.stop(id_)
        return moved

    if goes == "back":
        keeper.lend_out(job, "starter-painter", lambda: stopped.append(job))
    monkeypatch.setattr(journal, step, move_and_stop)
    if goes == "out":
        assert keeper.lend_out(job, "starter-painter", lambda: stopped.append(job)) is None and stopped == [job]
    else:
        keeper.give_up_lent_out(job)
    assert journal.get(job).state == "stopped" and isinstance(keeper.get_progress(job).end, Stopped) and keeper.running == []
    keeper.close()
