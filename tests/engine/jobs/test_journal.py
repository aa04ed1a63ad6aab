"""The order of the queue."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from app.compat.planning.types import Choice
from app.engine.jobs import journal as journals
from app.engine.jobs.database import Database
from app.engine.jobs.journal import HOUR_S, Journal, State
from app.engine.jobs.owners import household_of, new_guest
from app.engine.jobs.request import SpeechRequest
from tests.support.other_functions import set_in


def test_a_clock_that_is_set_back_does_not_put_a_new_job_before_the_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(Database(tmp_path / "hearth.sqlite3"))
    first = journal.queue(SpeechRequest("[S1] One."), Choice())
    now = time.time()
    set_in(monkeypatch, journals, "time", time=lambda: now - 3600)
    second = journal.queue(SpeechRequest("[S1] Two."), Choice())
    third = journal.queue(SpeechRequest("[S1] Three."), Choice())
    assert [job.id for job in journal.list_waiting()] == [first.id, second.id, third.id]


def test_a_guests_time_is_what_ran_and_not_what_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "hearth.sqlite3")
    journal, guest, now_s = Journal(database), new_guest("aa"), 2e9
    set_in(monkeypatch, journals, "time", time=lambda: now_s)

    def used_s() -> float:
        return journal.sum_guest_seconds(now_s - HOUR_S)[household_of(guest)]

    job = journal.queue(SpeechRequest("[S1] One."), Choice(), guest)
    journal.take()
    now_s += 10
    assert used_s() == 10
    journal.put_back(job.id)
    now_s += 500
    assert used_s() == 10, "it waits for another engine, or for room on the disk"
    journal.take()
    now_s += 5
    assert used_s() == 15
    journal.end(job.id, "failed")
    now_s += 100
    journal.resume(job.id)
    now_s += 100
    assert used_s() == 15
    journal.take()
    now_s += 1
    database.write("UPDATE jobs SET runner='0:0' WHERE id=?", job.id)  # its process is killed
    now_s += 1000
    journal.mark_interrupted()
    assert used_s() == 0, "nobody knows how long it ran"
    journal.resume(job.id)
    journal.take()
    now_s += 7
    journal.put_back(job.id)
    journal.withdraw(job.id)
    now_s += 50
    assert used_s() == 7
    again = journal.queue(SpeechRequest("[S1] Two."), Choice(), guest)
    journal.take()
    now_s += HOUR_S
    journal.put_back(again.id)
    now_s += HOUR_S - 60
    journal.take()
    assert used_s() == 60, "of the last hour"


def test_a_clock_that_is_set_interrupts_no_job_of_a_process_that_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Linux psutil counts a process's start from the start of the system, as the clock has it now."""
    set_back_s = 3600 if psutil.LINUX else 0
    born, boot = psutil.Process.create_time, psutil.boot_time
    database = Database(tmp_path / "hearth.sqlite3")
    window = Journal(database)
    queued = window.queue(SpeechRequest("[S1] One."), Choice())
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: born(process) - set_back_s)
    monkeypatch.setattr(psutil, "boot_time", lambda: boot() - set_back_s)
    for journal in (window, Journal(database)):  # the window itself, and a command that starts beside it
        assert journal.mark_interrupted() == []
    assert [job.id for job in window.list_waiting()] == [queued.id]


def test_the_waiting_are_read_again_after_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only then: the live answer asks for them several times a second."""
    database = Database(tmp_path / "hearth.sqlite3")
    journal = Journal(database)
    ids = [journal.queue(SpeechRequest(f"[S1] {number}."), Choice()).id for number in range(4)]
    asked: list[str] = []
    query = database.query
    monkeypatch.setattr(database, "query", lambda text, *values: asked.append(text) or query(text, *values))
    assert [[job.id for job in journal.list_waiting()] for _ in range(9)] == [ids] * 9 and len(asked) == 1
    journal.withdraw(ids[1])
    journal.move_up(ids[3])
    journal.move_up(ids[3])
    assert [job.id for job in journal.list_waiting()] == [ids[3], ids[0], ids[2]]
    with pytest.raises(RuntimeError), database.transaction():
        journal.withdraw(ids[0])
        assert [job.id for job in journal.list_waiting()] == [ids[3], ids[2]]
        raise RuntimeError
    assert [job.id for job in journal.list_waiting()] == [ids[3], ids[0], ids[2]]
    assert (taken := journal.take()) and taken.id == ids[3] and [job.id for job in journal.list_waiting()] == [ids[0], ids[2]]


@pytest.mark.parametrize("state", ["interrupted", "failed", "stopped", "finished"])
def test_what_ended_unfinished_can_be_queued_again(tmp_path: Path, state: State) -> None:
    journal = Journal(Database(tmp_path / "hearth.sqlite3"))
    job = journal.queue(SpeechRequest("[S1] One."), Choice())
    journal.take()
    journal.end(job.id, state)
    journal.resume(job.id)
    assert journal.get(job.id).state == ("finished" if state == "finished" else "queued")


def test_what_is_left_to_another_machine_is_passed_over(tmp_path: Path) -> None:
    journal = Journal(Database(tmp_path / "hearth.sqlite3"))
    first, second = (journal.queue(SpeechRequest(f"[S1] {word}."), Choice()).id for word in ("One", "Two"))
    taken = journal.take(lambda job: job.id == first)
    assert taken is not None and (taken.id, taken.state) == (second, "running")
    assert journal.take(lambda job: True) is None and [job.id for job in journal.list_waiting()] == [first]
