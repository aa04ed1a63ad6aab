"""End a job: move its results to the shelf, then close its row in the journal."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from app.disk_faults import is_disk_full
from app.engine.jobs.events import Failed, Stopped
from app.engine.jobs.journal import Job, Journal, State
from app.engine.jobs.progress import Progress
from app.engine.jobs.shelf import Shelf
from app.engine.process.delivery import deliver
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


def shelve(stores: Stores, job: str, event: End, progress: Progress, died: bool) -> End:
    """Move the results to the shelf and return the end to report."""
    folder = stores.job_folder(job)
    try:
        row = stores.journal.get(job)
        if isinstance(event, Failed) or (isinstance(event, Stopped) and not event.files):
            event = attach_delivery(event, deliver(stores.home, row.request, folder), folder, died)
        return move_to_shelf(stores.shelf, row, event, progress, folder)
    except Exception as fault:
        if is_disk_full(fault):
            raise
        _log.exception("the end of a job")
        return Failed(explain_keeper_fault(fault, stores.home.database).sentence, cure="report")


def close_row(stores: Stores, job: str, event: End, died: bool) -> Job | None:
    """Close the job's row; return the job if it can be resumed: given up after deaths (`died`), it stays interrupted."""
    state: State = "interrupted" if died and isinstance(event, Failed) else STATES[type(event)]
    stores.journal.end(job, state, str(event.sentence) if isinstance(event, Failed) else "")
    return stores.journal.find(job) if state == "interrupted" else None
