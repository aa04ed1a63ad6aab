"""The order of the queue."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.compat.planning.types import Choice
from app.engine.jobs.database import Database
from app.engine.jobs.journal import HOUR_S, Journal
from app.engine.jobs.owners import household_of, new_guest
from app.engine.jobs.request import SpeechRequest


def test_a_clock_that_is_set_back_does_not_put_a_new_job_before_the_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(Database(tmp_path / "hearth.sqlite3"))
    first = journal.queue(SpeechRequest("[S1] One."), Choice())
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    second = journal.queue(SpeechRequest("[S1] Two."), Choice())
    third = journal.queue(SpeechRequest("[S1] Three."), Choice())
    assert [job.id for job in journal.list_waiting()] == [first.id, second.id, third.id]


def test_a_guests_time_is_what_ran_and_not_what_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(tmp_path / "hearth.sqlite3")
    journal, guest, now_s = Journal(database), new_guest("aa"), 2e9
    monkeypatch.setattr(time, "time", lambda: now_s)

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
