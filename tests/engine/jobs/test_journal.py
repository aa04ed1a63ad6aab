"""The order of the queue."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from app.compat.planning.types import Choice
from app.engine.jobs.database import Database
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import SpeechRequest


def test_a_clock_that_is_set_back_does_not_put_a_new_job_before_the_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(Database(tmp_path / "hearth.sqlite3"))
    first = journal.queue(SpeechRequest("[S1] One."), Choice())
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    second = journal.queue(SpeechRequest("[S1] Two."), Choice())
    third = journal.queue(SpeechRequest("[S1] Three."), Choice())
    assert [job.id for job in journal.list_waiting()] == [first.id, second.id, third.id]


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
    journal.move(ids[3], before=ids[0])
    assert [job.id for job in journal.list_waiting()] == [ids[3], ids[0], ids[2]]
    with pytest.raises(RuntimeError), database.transaction():
        journal.withdraw(ids[0])
        assert [job.id for job in journal.list_waiting()] == [ids[3], ids[2]]
        raise RuntimeError
    assert [job.id for job in journal.list_waiting()] == [ids[3], ids[0], ids[2]]
    assert (taken := journal.take()) and taken.id == ids[3] and [job.id for job in journal.list_waiting()] == [ids[0], ids[2]]
