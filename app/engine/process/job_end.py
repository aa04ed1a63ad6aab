"""End a job: move its results to the shelf, then close its row in the journal."""

from __future__ import annotations

import logging
import sqlite3
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


class JobEnds:
    """Stores the ends of jobs: each result once, however often it is tried. `patient`: there is room sooner or later, so that
    what finds none is raised."""

    def __init__(self, stores: Stores, patient: bool) -> None:
        self._stores, self._patient = stores, patient
        self._shelved: dict[str, End] = {}
        """Ends whose results are on the shelf while their rows could not be closed yet."""

    def store(self, job: str, event: End, progress: Progress, died: bool) -> tuple[End, Job | None]:
        """Move the files to the shelf and close the row. Return the end to report, and the job if it can be resumed."""
        event = self._shelve_once(job, event, progress, died)
        resumable = None
        try:
            resumable = _close_row(self._stores, job, event, died)
        except sqlite3.Error as fault:  # A row that stays open is offered to be resumed by the next start.
            if self._patient and is_disk_full(fault):
                raise
        self._shelved.pop(job, None)
        return event, resumable

    def forget(self, job: str) -> None:
        """Forget the end of a job that runs again."""
        self._shelved.pop(job, None)

    def _shelve_once(self, job: str, event: End, progress: Progress, died: bool) -> End:
        if job not in self._shelved:
            try:
                self._shelved[job] = _shelve(self._stores, job, event, progress, died)
            except (OSError, sqlite3.Error) as fault:
                if self._patient:
                    raise
                return Failed(explain_keeper_fault(fault, self._stores.home.database).sentence, cure="open-folder")
        return self._shelved[job]


def _shelve(stores: Stores, job: str, event: End, progress: Progress, died: bool) -> End:
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


def _close_row(stores: Stores, job: str, event: End, died: bool) -> Job | None:
    """Close the job's row; return the job if it can be resumed: given up after deaths (`died`), it stays interrupted."""
    state: State = "interrupted" if died and isinstance(event, Failed) else STATES[type(event)]
    stores.journal.end(job, state, str(event.sentence) if isinstance(event, Failed) else "")
    return stores.journal.find(job) if state == "interrupted" else None
