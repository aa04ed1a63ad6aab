"""End a job: move its results to the shelf, then close its row in the journal."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections import deque
from pathlib import Path

from app.base.disk_faults import is_disk_full
from app.base.trouble import DiskFull, NotStored
from app.engine.jobs.events import Failed, Stopped
from app.engine.jobs.journal import Job, State
from app.engine.jobs.parts import drop_passing
from app.engine.jobs.progress import Progress
from app.engine.jobs.tasks import is_journalled
from app.engine.keeper import kept_parts
from app.engine.keeper.deaths import DeathRecords
from app.engine.keeper.delivery import deliver
from app.engine.keeper.job_folder import STATES, End, attach_delivery, move_to_shelf
from app.engine.keeper.progress_board import ProgressBoard
from app.engine.keeper.recovery import explain_keeper_fault
from app.engine.keeper.stores import Stores

_log = logging.getLogger("hearth.keeper")


class JobEnds:
    """Stores the ends of jobs: each result once, however often it is tried. `patient`: there is room sooner or later, so that
    what finds none is raised."""

    def __init__(self, stores: Stores, board: ProgressBoard, patient: bool) -> None:
        self._interrupted = {job.id: job for job in stores.journal.mark_interrupted()}
        self.stopping: set[str] = set()
        """These jobs were asked to stop while running: if their engine dies, they are not started again."""
        self.deaths = DeathRecords()
        self._stores, self._board, self._patient = stores, board, patient
        self._folders = EndedFolders(stores)
        self._shelved: dict[str, End] = {}
        """The results of these ends are on the shelf, though their rows could not be closed yet."""

    @property
    def interrupted(self) -> list[Job]:
        """Jobs that a person may resume or discard."""
        return [*self._interrupted.values()]

    def end(self, job: str, event: End, died: bool = False) -> End:
        """Move the files to the shelf and close the row; return the end to report. `died`: given up after deaths, so it can be resumed
        if any part exists."""
        resumable = None
        if is_journalled(job):
            event, resumable = self._store(job, event, died)
        self._folders.add(job)
        self.stopping.discard(job)
        self.deaths.forget(job)
        if resumable is not None:
            self._interrupted[job] = resumable
        return event

    def find_lack(self, job: str, event: End) -> DiskFull | None:
        """Return the lack of room for which a job ended, if it is to wait for more."""
        trouble = event.trouble if isinstance(event, Failed) else None
        waits = self._patient and is_journalled(job) and job not in self.stopping
        return trouble if waits and isinstance(trouble, DiskFull) else None

    def settle(self, job: str) -> None:
        """Forget that a job was interrupted or asked to stop."""
        self._interrupted.pop(job, None)
        self.stopping.discard(job)

    def tidy_next(self, running: str) -> None:
        self._folders.tidy_next(running, {*self._interrupted})

    def _store(self, job: str, event: End, died: bool) -> tuple[End, Job | None]:
        event = self._shelve_once(job, event, self._board.get(job), died)
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
                return Failed.of(NotStored(explain_keeper_fault(fault, self._stores.home.database).sentence, cure="open-folder"))
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
        return Failed.of(NotStored(explain_keeper_fault(fault, stores.home.database).sentence, cure="report"))


def _close_row(stores: Stores, job: str, event: End, died: bool) -> Job | None:
    """Close the job's row; return the job if it can be resumed: given up after deaths (`died`), it stays interrupted."""
    state: State = "interrupted" if died and isinstance(event, Failed) else STATES[type(event)]
    stores.journal.end(job, state, str(event.sentence) if isinstance(event, Failed) else "")
    return stores.journal.find(job) if state == "interrupted" else None


LISTENED_S = 60.0
"""A page has so long to fetch the last pieces of sound and previews after its job ended."""


class EndedFolders:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._ended_at_s: deque[tuple[float, Path]] = deque()

    def add(self, job: str) -> None:
        self._ended_at_s.append((time.monotonic(), self._stores.job_folder(job)))

    def tidy_next(self, running: str, interrupted: set[str]) -> None:
        """Tidy after the job that ended longest ago, if its time is over. `running`: a job that may have been resumed meanwhile;
        `interrupted`: jobs that a person may resume."""
        if not self._ended_at_s or time.monotonic() - self._ended_at_s[0][0] <= LISTENED_S:
            return
        _, folder = self._ended_at_s.popleft()
        if folder.name != running:
            drop_passing(folder)
        kept_parts.tidy(self._stores, {*(each.id for each in self._stores.journal.list_live()), *interrupted})
