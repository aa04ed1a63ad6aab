"""Spread the pictures of the running batch over the machines that help. Their files come into the job's folder, where the engine finds them done."""

from __future__ import annotations

import logging
import sqlite3
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.engine.jobs.events import Event, Finished, PartDone
from app.engine.jobs.journal import Job
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.seed import draw_seed
from app.engine.models import catalog, on_disk
from app.engine.process.keeper import Keeper
from app.machines.hub import Hub, TaskEnd
from app.machines.job_lender import JobLender, is_able
from app.machines.results import is_picture
from app.machines.spread import choose_pictures, one_picture
from app.machines.tasks.portable import pack

TICK_S: Final = 0.2
FAILURES_MOST: Final = 3
"""Of one job's pictures; then this machine paints the rest itself, and says what is wrong."""


_log = logging.getLogger("hearth.machines")


@dataclass(frozen=True, slots=True)
class _Away:
    """One picture at one of these machines."""

    place: int
    machines: frozenset[str]


@dataclass(slots=True)
class _Batch:
    job: Job
    request: PictureRequest
    model: str
    seed: int
    away: dict[str, _Away] = field(default_factory=dict)
    """What other machines paint, by task."""
    given: int = 0
    """Tasks so far; each has a number of its own."""
    failures: int = 0


class Spreader:
    def __init__(self, keeper: Keeper, hub: Hub) -> None:
        self._keeper, self._hub, self._jobs = keeper, hub, JobLender(keeper, hub)
        self._batch: _Batch | None = None
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spreader", daemon=True)
        self._thread.start()

    def close(self, goes_on: bool = False) -> None:
        """`goes_on`: this process ends, and the next one goes on with what other machines do."""
        self._closing.set()
        self._thread.join()
        with self._lock:
            self._drop()
            self._jobs.close(goes_on)

    def _watch(self) -> None:
        while not self._closing.wait(TICK_S):
            try:
                with self._lock:
                    self._follow_queue()
                    for joins in (False, True):
                        if self._batch is not None:
                            self._give_away(self._batch, joins)
                        if self._jobs.offer():
                            break
            except (OSError, sqlite3.Error):  # a full disk or a locked database: the keeper tells it, and this goes on
                _log.exception("spreading")

    def _follow_queue(self) -> None:
        """Begin with the batch that the engine runs now; leave the one that it no longer runs."""
        running = self._keeper.state.job
        if self._batch is not None and self._batch.job.id != running:
            self._drop()
        if self._batch is None and running:
            job = self._keeper.journal.find(running)
            if job is not None and isinstance(job.request, PictureRequest) and job.request.batch > 1:
                self._batch = self._begin(job, job.request)

    def _begin(self, job: Job, request: PictureRequest) -> _Batch | None:
        folder = self._keeper.folder(job.id)
        model = request.model or on_disk.find_best(self._keeper.home, "picture").id
        drawn = request.seed is not None or (folder / "seed").is_file()  # by the engine, so that both do not draw at once
        if model not in catalog.BY_ID or not drawn:
            return None
        return _Batch(job, request, model, draw_seed(request, folder))

    def _drop(self) -> None:
        if self._batch is not None:
            for task in [*self._batch.away]:
                self._take_back(self._batch, task)
            self._batch = None

    def _give_away(self, batch: _Batch, joins: bool) -> None:
        """`joins`: let idle machines paint what somebody is at, as no job waits for them."""
        there = [place for place in range(batch.request.batch) if self._path(batch, place).is_file()]
        able = [each for each in self._hub.list_machines() if is_able(each, batch.model)]
        idle = [each.id for each in able if not each.tasks]
        for task, away in [*batch.away.items()]:
            lost = away.machines.isdisjoint(each.id for each in able)
            if away.place in there or lost:
                self._take_back(batch, task)
        unplaced = len(batch.away) - sum(task in batch.away for each in able for task in each.tasks)
        if batch.failures < FAILURES_MOST:
            away_places = [each.place for each in batch.away.values()]
            for place in choose_pictures(batch.request.batch, there, away_places, len(idle) - unplaced, joins):
                self._send(batch, place, idle)

    def _send(self, batch: _Batch, place: int, machines: list[str]) -> None:
        try:
            portable = pack(one_picture(batch.request, place, batch.seed, batch.model))
        except OSError:  # a picture to start from is gone; the engine says so
            batch.failures = FAILURES_MOST
            return
        batch.given += 1
        task = f"{batch.job.id}-{place}-{batch.given}"
        batch.away[task] = _Away(place, frozenset(machines))
        self._hub.submit(task, portable, machines, self._hear, self._take)

    def _take_back(self, batch: _Batch, task: str) -> None:
        del batch.away[task]
        self._hub.stop(task)

    def _hear(self, machine: str, event: Event) -> None:
        """What a helper says on its way is shown by the window's list of machines, not as the job's own progress."""

    def _take(self, end: TaskEnd) -> None:
        """Put a picture into the job's folder, unless the engine was faster."""
        with self._lock:
            batch = self._batch
            away = batch.away.pop(end.id, None) if batch is not None else None
            if batch is None or away is None:
                return
            file = next(iter(end.files.values()), None)
            if not isinstance(end.event, Finished) or file is None or not is_picture(file):
                batch.failures += 1
                return
            seed = one_picture(batch.request, away.place, batch.seed, batch.model).seed or 0
            part = PartDone(away.place, batch.request.batch, str(file), batch.request.prompt, seed)
            try:
                self._keeper.take_over(batch.job.id, part, self._name(end.machine))
            except OSError:  # the disk is full, or the job has just ended; the engine says so
                batch.failures += 1

    def _name(self, machine: str) -> str:
        known = self._hub.register.find(machine)
        return known.name if known is not None else ""

    def _path(self, batch: _Batch, place: int) -> Path:
        return self._keeper.folder(batch.job.id) / f"picture-{place}.png"
