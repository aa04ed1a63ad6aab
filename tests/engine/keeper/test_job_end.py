"""The ends of jobs, which the loop stores while a person resumes and discards others."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.base.paths import home
from app.base.sentence import say
from app.compat.planning.types import Choice
from app.engine.jobs.database import Database
from app.engine.jobs.events import Failed
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.shelf import Shelf
from app.engine.keeper.job_end import JobEnds
from app.engine.keeper.progress_board import ProgressBoard
from app.engine.keeper.stores import Stores


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    place = home(tmp_path).create()
    database = Database(place.database)
    return Stores(place, Journal(database), Shelf(database, place.creations))


def test_no_interrupted_job_is_lost_while_others_are_resumed(stores: Stores) -> None:
    jobs = [stores.journal.queue(PictureRequest(f"{place} boats"), Choice()).id for place in range(40)]
    ends, done = JobEnds(stores, ProgressBoard(), patient=False), threading.Event()

    def resume_others() -> None:
        while not done.is_set():
            ends.settle("another")

    person = threading.Thread(target=resume_others)
    person.start()
    try:
        for job in jobs:
            ends.end(job, Failed(say("test.died", "It died.")), died=True)
    finally:
        done.set()
        person.join()
    assert [job.id for job in ends.interrupted] == jobs
