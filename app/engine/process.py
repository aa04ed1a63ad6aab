"""The keeper: holds one engine process, hands it one job after the other, and when it dies says why and starts it again."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from app.compat.plan import Choice
from app.engine.aftermath import died_twice, no_database, no_start, recalled, safer
from app.engine.board import Board
from app.engine.child import Child
from app.engine.database import Database
from app.engine.diagnosis import Death
from app.engine.errand import Errand
from app.engine.event import END, Adjusted, Event, Failed, Finished, Step, Stopped
from app.engine.jobfolder import STATES, drop_sounds, finished_parts, shelved, tidy, tidy_uploads
from app.engine.journal import OWNER, Job, Journal
from app.engine.ladder import BY_ID
from app.engine.message import Beat, Free, Order, Planned, Ready, Report, Run, SetChunk, Stop, Told
from app.engine.progress import Progress
from app.engine.refusal import refuse_at_once
from app.engine.request import Request, to_json
from app.engine.shelf import Made, Shelf
from app.engine.state import EngineState, Sample
from app.paths import Home

ATTEMPTS = 2
STARTS = 3
"""An engine that dies this often before it is ready is not started again."""
TICK_S = 0.2
NO_BEAT_S = 20.0
"""Beats come every second, also from within a long kernel; this long without one, nothing comes any more."""
QUIET_S = 600.0
"""A job that says nothing for this long hangs: the slowest step measured on the slowest machine takes a tenth of it."""
LISTENED_S = 60.0
"""A page that was listening when its job ended has fetched the last pieces of sound long before."""
HISTORY = 600


class Keeper:
    """All its state changes in one thread of its own; other threads ask through a lock and wake it up."""

    def __init__(
        self,
        home: Home,
        pretended: str = "",
        quiet_s: float = QUIET_S,
        no_beat_s: float = NO_BEAT_S,
        rest_s: float = 0.0,
    ) -> None:
        """`rest_s`: so long the engine is not started yet, unless something is asked for."""
        self.home = home.made()
        self.database = Database(home.database)
        self.journal = Journal(self.database)
        self.shelf = Shelf(self.database, home.creations)
        self.interrupted = self.journal.interrupted()
        self.state = EngineState()
        self.history: deque[Sample] = deque(maxlen=HISTORY)
        self._pretended = pretended
        self._quiet_s, self._no_beat_s, self._rest_s = quiet_s, no_beat_s, rest_s
        self._lock = threading.RLock()
        self._board = Board()
        self._errands: deque[tuple[str, Errand]] = deque()
        self._ended_at_s: deque[tuple[float, Path]] = deque()
        self._chunk: int | None = None
        self._child: Child | None = None
        self._run: Run | None = None
        self._failed_starts = 0
        self._woken, self._waker = multiprocessing.Pipe(duplex=False)
        self._closing = False
        tidy(self.home.scratch / "jobs", {job.id for job in self.interrupted})
        to_come = [to_json(job.request) for job in (*self.interrupted, *self.journal.waiting())]
        tidy_uploads(self.home.scratch / "uploads", json.dumps(to_come))
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._thread.start()

    # What others ask of it.

    def submit(self, request: Request, choice: Choice = Choice(), owner: str = OWNER) -> Job:  # noqa: B008 (frozen)
        refuse_at_once(request, self.home)
        job = self.journal.queue(request, choice, owner)
        self._board.open(job.id)
        self._wake()
        return job

    def errand(self, errand: Errand) -> str:
        """Ahead of the queue; its events are followed like a job's."""
        id_ = f"errand-{time.monotonic_ns()}"
        self._board.open(id_)
        with self._lock:
            self._errands.append((id_, errand))
        self._wake()
        return id_

    def follow(self, job: str) -> Iterator[Event]:
        """What happened so far, in short, then everything as it happens, until the end."""
        return self._board.follow(job, lambda: self._recalled(job))

    def progress(self, job: str) -> Progress:
        return self._board.known(job) or self._recalled(job)

    def _recalled(self, job: str) -> Progress:
        """Of a job that only journal and shelf still know."""
        return recalled(self.journal.job(job), tuple(str(each.path) for each in self.shelf.of_job(job)))

    def stop(self, job: str) -> None:
        """Within one step, keeping what is there. A job that still waits is taken out of the queue."""
        if self.journal.withdraw(job) or self._withdrawn(job):
            self._board.post(job, Stopped((), 0.0))
        else:
            self._send(Stop(job))

    def _withdrawn(self, errand: str) -> bool:
        """Whether it was an errand that waited, and waits no more."""
        with self._lock:
            waiting = len(self._errands)
            self._errands = deque(each for each in self._errands if each[0] != errand)
            return len(self._errands) < waiting

    def set_chunk(self, chunk: int | None) -> None:
        """Acts on a run in progress, and on those to come."""
        self._chunk = chunk
        self._send(SetChunk(chunk))

    def free(self) -> None:
        self._send(Free())

    def go_on(self, job: str) -> None:
        """With an interrupted job, from the last part that was finished."""
        self.interrupted = [each for each in self.interrupted if each.id != job]
        self._board.open(job)
        self.journal.go_on(job)
        self._wake()

    def let_go(self, job: str) -> None:
        """An interrupted job is given up; what was finished of it goes to the shelf."""
        self.interrupted = [each for each in self.interrupted if each.id != job]
        known = self.journal.job(job)
        self.shelf.keep(known, finished_parts(self.folder(job)), Made(model=known.request.model, whole=False))
        self.journal.end(job, "stopped")

    def folder(self, job: str) -> Path:
        return self.home.scratch / "jobs" / job

    def close(self) -> None:
        """Ends the engine, too; a job that runs is interrupted and can be gone on with."""
        if not self._closing:
            self._closing = True
            self._wake()
            self._thread.join(timeout=10)
            self.database.close()

    # What its thread does.

    def _keep(self) -> None:
        self._woken.poll(self._rest_s)
        while not self._closing:
            try:
                self._turn()
            except sqlite3.Error as fault:
                self._set(trouble=no_database(self.home.database, fault))
                time.sleep(TICK_S)
        if self._child is not None:
            self._child.end(patience_s=1 if self._run is None else 0)

    def _turn(self) -> None:
        if self._child is None and self._failed_starts < STARTS:
            self._spawn()
        if self._failed_starts >= STARTS:
            self._give_up()
        elif self._run is None and self.state.ready:
            self._hand_next()
        self._hear()
        self._watch()
        while self._ended_at_s and time.monotonic() - self._ended_at_s[0][0] > LISTENED_S:
            drop_sounds(self._ended_at_s.popleft()[1])

    def _spawn(self) -> None:
        self._child = Child(self.home, self._pretended)
        self._send(SetChunk(self._chunk))

    def _hand_next(self) -> None:
        with self._lock:
            id_, errand = self._errands.popleft() if self._errands else ("", None)
        if errand is not None:
            self._hand(Run(id_, errand, Choice(), str(self.folder(id_))))
        elif job := self.journal.take():
            self._hand(Run(job.id, job.request, job.choice, str(self.folder(job.id))))

    def _hand(self, run: Run) -> None:
        Path(run.folder).mkdir(parents=True, exist_ok=True)
        self._run = run
        self._set(job=run.job)
        self._send(run)

    def _hear(self) -> None:
        sources: list[Connection | int] = [self._woken]
        sources += self._child.sources if self._child is not None else ()
        for source in wait(sources, TICK_S):
            if source is self._woken:
                self._woken.recv()
            elif self._child is not None and source is self._child.sources[0]:
                self._drain(self._child)

    def _drain(self, child: Child) -> None:
        for report in child.said():
            self._take(report)
            if self._child is not child:
                return  # What it said was that it hangs, and it was ended for it.

    def _take(self, report: Report) -> None:
        match report:
            case Ready():
                self._failed_starts = 0
                self._set(ready=True, hardware=report.hardware)
            case Beat():
                if self._child is not None:
                    self._child.beat_s = time.monotonic()
                self._set(reading=report.reading, model=report.model)
                step = self._board.now(self._run.job).step if self._run is not None else None
                self.history.append(
                    Sample(time.time(), step.rate if step else 0.0, step.unit if step else "", report.reading)
                )
                if self._child is not None and report.quiet_s is not None and report.quiet_s > self._quiet_s:
                    self._bury(self._child, wedged=True)
            case Planned():
                self._set(plan=report.plan, model=report.model)
                self._board.planned(report.job, report.model, report.plan)
            case Told():
                self._told(report.job, report.event)

    def _told(self, job: str, event: Event) -> None:
        if isinstance(event, Step):
            self._set(reading=event.memory)
        if isinstance(event, END):
            event = self._ended(job, event)
            self._run = None
            self._set(job="", **({} if isinstance(event, Failed) else {"trouble": None}))
        self._board.post(job, event)

    def _ended(self, job: str, event: Finished | Stopped | Failed) -> Event:
        """Its files move to the shelf and its row is closed."""
        self._ended_at_s.append((time.monotonic(), self.folder(job)))
        if job.startswith("errand-"):
            return event
        event = shelved(self.shelf, self.journal.job(job), event, self._board.now(job), self.folder(job))
        with contextlib.suppress(
            sqlite3.Error
        ):  # A row that cannot be closed stays open: the next start offers to go on with it.
            self.journal.end(job, STATES[type(event)], str(event.sentence) if isinstance(event, Failed) else "")
        return event

    def _watch(self) -> None:
        if self._child is None:
            return
        if not self._child.alive:
            self._bury(self._child)
        elif time.monotonic() - self._child.beat_s > self._no_beat_s and self.state.ready:
            self._bury(self._child, wedged=True)

    def _bury(self, child: Child, wedged: bool = False) -> None:
        """The engine is dead or has to be: say why, and do its job once more on a safer plan."""
        if not wedged:
            self._drain(child)  # What it still said before it died counts.
        death = child.bury(wedged)
        self._child, run, self._run = None, self._run, None
        self._failed_starts += not self.state.ready
        self._set(ready=False, model="", job="", restarts=self.state.restarts + 1, trouble=death)
        if run is not None:
            self._again(run, death)

    def _again(self, run: Run, death: Death) -> None:
        errand = run.job.startswith("errand-")
        if errand or self.journal.job(run.job).attempts >= ATTEMPTS:
            failed = died_twice(death, self._board.now(run.job))
            self._board.post(run.job, self._ended(run.job, failed))
            return
        run = safer(run, death)
        self._board.post(run.job, Adjusted("restart", death.sentence, death.quirk))
        for rung in run.rungs:
            self._board.post(run.job, Adjusted(rung, BY_ID[rung].sentence))
        self.journal.begin(run.job)
        self._spawn()
        self._hand(run)

    def _give_up(self) -> None:
        """An engine that cannot even start fails what waits, instead of trying for ever."""
        self._set(gave_up=True)
        failed = no_start(self.home.logs / "engine.log", self.state.trouble)
        while self._errands:
            id_, _ = self._errands.popleft()
            self._board.post(id_, self._ended(id_, failed))
        while job := self.journal.take():
            self._board.post(job.id, self._ended(job.id, failed))

    # Small things both sides use.

    def _send(self, order: Order) -> None:
        with self._lock:
            if self._child is not None:
                self._child.send(order)

    def _wake(self) -> None:
        with self._lock:
            self._waker.send(None)

    def _set(self, **changes: object) -> None:
        with self._lock:
            self.state = dataclasses.replace(self.state, **changes)  # type: ignore[arg-type]
