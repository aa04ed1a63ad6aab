"""The order of the queue."""

from __future__ import annotations

import time
from pathlib import Path

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
