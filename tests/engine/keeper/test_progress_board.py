"""What is posted about a job, in whatever order its threads come."""

from __future__ import annotations

import threading

import pytest

from app.compat.machine.meter import Reading
from app.engine.jobs.events import Event, Step, Stopped
from app.engine.jobs.progress import Progress
from app.engine.keeper.progress_board import ProgressBoard
from tests.support.waiting import WatchedLock


def test_an_end_that_comes_before_the_job_is_opened_stays() -> None:
    """Stop may be faster than the thread that queued the job; who follows it must not wait for ever."""
    board = ProgressBoard()
    board.post("job", end := Stopped((), 0.0))
    board.open("job")
    assert list(board.follow("job", Progress)) == [end]
    board.reopen("job")
    assert board.get("job").end is None, "one that runs again has not ended"


def test_who_joins_while_an_event_is_posted_hears_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    board, heard = ProgressBoard(), list[Event]()
    board.open("job")
    step, end = Step(1, 2, 1.0, "steps", None, Reading()), Stopped((), 0.0)
    joining = threading.Thread(target=lambda: heard.extend(board.follow("job", Progress)))
    update, lock = board._update, WatchedLock(board._lock)

    def join_between(*given: object) -> None:
        update(*given)  # type: ignore[arg-type]
        if not joining.ident:
            lock.let_come_between(joining)

    monkeypatch.setattr(board, "_lock", lock)
    monkeypatch.setattr(board, "_update", join_between)
    board.post("job", step)
    board.post("job", end)
    joining.join()
    assert heard.count(step) == 1 and heard[-1] == end
    assert not board.watchers
