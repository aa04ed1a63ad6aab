"""Stop reaches a task in somebody's Dask worker whenever Dask begins it there: before, in between, afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.base.paths import Home
from app.engine.jobs.request import PictureRequest, Request
from app.machines.cluster import existing_worker
from app.machines.cluster.existing_worker import STOPPED_MOST, Guest
from app.machines.lent_tasks import Attempt
from app.machines.tasks.portable import pack
from tests.support.waiting import Idle, until

BODY = pack(PictureRequest("a ball", model="starter-painter", seed=1)).body


class Waiting(Idle):
    """Its engine never starts, so nothing ends by itself."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.under_way = set[str]()

    def run_lent(self, task: str, request: Request) -> str:
        job = super().run_lent(task, request)
        self.under_way.add(job)
        return job

    def stop(self, job: str) -> None:
        super().stop(job)
        self.under_way.discard(job)


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guest]:
    monkeypatch.setattr(existing_worker, "Keeper", Waiting)
    guest = Guest(tmp_path)
    yield guest
    guest._keeper.close()


NOTHING: dict[str, object] = {"event": None, "files": {}}


def begin(guest: Guest, attempt: str) -> tuple[threading.Thread, list[object]]:
    ends = list[object]()
    thread = threading.Thread(target=lambda: ends.append(guest.carry_out("task", attempt, BODY, {}, lambda told: None)), daemon=True)
    thread.start()
    return thread, ends


def is_under_way(guest: Guest) -> bool:
    assert isinstance(guest._keeper, Waiting)
    return bool(guest._keeper.under_way)


def test_what_is_stopped_before_dask_begins_it_is_not_begun(guest: Guest) -> None:
    guest.stop("task", "first")
    thread, ends = begin(guest, "first")
    until(lambda: not thread.is_alive())
    assert ends == [NOTHING] and not is_under_way(guest)
    thread, ends = begin(guest, "second")
    until(lambda: is_under_way(guest))
    assert thread.is_alive(), "another attempt at it is none that was stopped"
    guest.stop("task", "second")
    until(lambda: not thread.is_alive() and not is_under_way(guest))
    assert ends == [NOTHING]


def test_what_was_stopped_long_ago_is_forgotten(guest: Guest) -> None:
    """A worker stays for weeks."""
    for number in range(STOPPED_MOST + 10):
        guest.stop("task", str(number))
    assert len(guest._stopped) == STOPPED_MOST and "0" not in guest._stopped


def test_what_is_stopped_while_it_begins_is_stopped(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    real = guest._tasks.take

    def taken_late(task: str, tell: Callable[..., None]) -> Attempt:
        guest.stop(task, "first")
        return real(task, tell)

    monkeypatch.setattr(guest._tasks, "take", taken_late)
    thread, ends = begin(guest, "first")
    until(lambda: not thread.is_alive() and not guest._tasks._latest)
    assert ends == [NOTHING] and not is_under_way(guest)
