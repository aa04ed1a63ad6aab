"""End a job: move its results to the shelf and close its row in the journal. Raises only where the disk is full, and
then it is tried again: a follower waits for this end."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from app.engine.jobs.events import Failed, Stopped
from app.engine.jobs.journal import Job, Journal, State
from app.engine.jobs.progress import Progress
from app.engine.jobs.shelf import Shelf
from app.engine.process.delivery import deliver
from app.engine.process.disk_room import is_disk_full
from app.engine.process.job_folder import STATES, End, attach_delivery, move_to_shelf
from app.engine.process.recovery import explain_keeper_fault
from app.paths import Home

_log = logging.getLogger("hearth.keeper")


@dataclass(frozen=True, slots=True)
class Stores:
    """Where jobs and their results are stored."""

    home: Home
    journal: Journal
    shelf: Shelf

    def job_folder(self, job: str) -> Path:
        return self.home.scratch / "jobs" / job


def end_job(stores: Stores, job: str, event: End, progress: Progress, died: bool) -> tuple[End, Job | None]:
    """Return the end to report, and the job if it can be resumed: given up after deaths (`died`), it stays
    interrupted."""
    folder = stores.job_folder(job)
    try:
        row = stores.journal.get(job)
        if isinstance(event, Failed) or (isinstance(event, Stopped) and not event.files):
            event = attach_delivery(event, deliver(stores.home, row.request, folder), folder, died)
        event = move_to_shelf(stores.shelf, row, event, progress, folder)
    except Exception as fault:
        if is_disk_full(fault):
            raise
        _log.exception("the end of a job")
        event = Failed(explain_keeper_fault(fault, stores.home.database).sentence, cure="report")
    with contextlib.suppress(sqlite3.Error):  # A row that cannot be closed stays open: the next start offers to resume.
        state: State = "interrupted" if died and isinstance(event, Failed) else STATES[type(event)]
        stores.journal.end(job, state, str(event.sentence) if isinstance(event, Failed) else "")
        if state == "interrupted":
            return event, stores.journal.get(job)
    return event, None
