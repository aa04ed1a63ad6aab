"""The keeper: holds one engine process, hands it one job after the other, and when it dies says why and starts it again.

Over 300 lines: all of it changes one state in one thread, and what could be told apart lies in aftermath, lives, delivery and jobfolder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import multiprocessing
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from app.compat.machine.hardware import with_room
from app.compat.planning.types import AUTO, Choice, Chunk
from app.engine.jobs.database import Database
from app.engine.jobs.events import END, Adjusted, Event, Failed, Step, Stopped
from app.engine.jobs.journal import OWNER, Job, Journal, State
from app.engine.jobs.messages import Beat, Died, Free, JobEvent, Order, Planned, Ready, Report, Run, SetChunk, Stop
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Request, to_json
from app.engine.jobs.shelf import Shelf
from app.engine.jobs.tasks import MaintenanceTask, SelfTest, Tune
from app.engine.models.precheck import reject_early
from app.engine.process.child import Child
from app.engine.process.deaths import DeathRecord, measure_progress
from app.engine.process.delivery import deliver
from app.engine.process.diagnosis import Death
from app.engine.process.job_folder import (
    STATES,
    End,
    attach_delivery,
    drop_sounds,
    move_to_shelf,
    tidy_folders,
    tidy_uploads,
)
from app.engine.process.progress_board import ProgressBoard
from app.engine.process.recovery import end_measuring, explain_keeper_fault, fail_start, give_up_on_job, recall_progress
from app.engine.process.state import EngineState, Sample
from app.paths import Home

STARTS = 3
"""An engine that dies this often before it is ready is started again only now and then."""
AGAIN_S, AGAIN_MOST_S = 30.0, 600.0
"""After so long, then after twice as long, and so on."""
STUMBLES = 5
"""So often in a row the keeper itself fails before a command that waits for it is told to end."""
TICK_S = 0.2
NO_BEAT_S = 20.0
"""Beats come every second, also from within a long kernel; this long without one, nothing comes any more."""
QUIET_S = 600.0
"""A job that says nothing for this long hangs: the slowest step measured on the slowest machine takes a tenth of it."""
LISTENED_S = 60.0
"""A page that was listening when its job ended has fetched the last pieces of sound long before."""
HISTORY = 600
_log = logging.getLogger("hearth.keeper")


class Keeper:
    """All its state changes in one thread of its own; other threads ask through a lock and wake it up."""

    def __init__(
        self,
        home: Home,
        pretended: str = "",
        quiet_s: float = QUIET_S,
        no_beat_s: float = NO_BEAT_S,
        rest_s: float = 0.0,
        patient: bool = True,
    ) -> None:
        """`rest_s`: so long the engine is not started yet, unless something is asked for. `patient`: where the engine does not start, jobs
        wait until it does; a command has nobody to repair it meanwhile, and its job fails."""
        self.home = home.create()
        self.database = Database(home.database)
        self.journal = Journal(self.database)
        self.shelf = Shelf(self.database, home.creations)
        self.interrupted = self.journal.mark_interrupted()
        self.state = EngineState()
        self.history: deque[Sample] = deque(maxlen=HISTORY)
        self._pretended = pretended
        self._quiet_s, self._no_beat_s, self._rest_s, self._patient = quiet_s, no_beat_s, rest_s, patient
        self._lock = threading.RLock()
        self._board = ProgressBoard()
        self._errands: deque[tuple[str, MaintenanceTask]] = deque()
        self._ended_at_s: deque[tuple[float, Path]] = deque()
        self.chunk: Chunk = AUTO
        """The chunk size that is asked for: its one home in this process, handed to every engine that is started."""
        self._child: Child | None = None
        self._run: Run | None = None
        self._held: Run | None = None
        """Taken from the queue, but not given to an engine: it goes back."""
        self._fallen: tuple[Run, Death] | None = None
        """What ran when its engine died, until it waits again or is given up."""
        self._lives: dict[str, DeathRecord] = {}
        self._stopping: set[str] = set()
        """Jobs that ran when their stop was asked for: an engine that dies meanwhile does not begin them again."""
        self._failed_starts, self._start_at_s, self._stumbles = 0, 0.0, 0
        self._woken, self._waker = multiprocessing.Pipe(duplex=False)
        self._closing = False
        live = self.journal.list_live()
        tidy_folders(self.home.scratch / "jobs", {job.id for job in live}, {job.id for job in self.interrupted})
        to_come = [to_json(job.request) for job in (*live, *self.interrupted)]
        tidy_uploads(self.home.scratch / "uploads", json.dumps(to_come))
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._thread.start()

    # What others ask of it.

    def submit(self, request: Request, choice: Choice = Choice(), owner: str = OWNER) -> Job:  # noqa: B008 (frozen)
        """The chunk is not a job's own: all run with what is asked for while they run (`set_chunk`)."""
        reject_early(request, self.home)
        job = self.journal.queue(request, dataclasses.replace(choice, chunk=AUTO), owner)
        self._board.open(job.id)
        self._wake()
        return job

    def start_task(self, errand: MaintenanceTask) -> str:
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

    def get_progress(self, job: str) -> Progress:
        return self._board.find(job) or self._recalled(job)

    def _recalled(self, job: str) -> Progress:
        """Of a job that only journal and shelf still know."""
        return recall_progress(self.journal.get(job), tuple(str(each.path) for each in self.shelf.list_of_job(job)))

    def stop(self, job: str) -> None:
        """Within one step, keeping what is there. A job that still waits is taken out of the queue."""
        self._stopping.add(job)
        if self.journal.withdraw(job) or self._withdrawn(job):
            self._board.post(job, self._ended(job, Stopped((), 0.0)))
        else:
            self._send(Stop(job))

    def _withdrawn(self, errand: str) -> bool:
        """Whether it was an errand that waited, and waits no more."""
        with self._lock:
            waiting = len(self._errands)
            self._errands = deque(each for each in self._errands if each[0] != errand)
            return len(self._errands) < waiting

    def set_chunk(self, chunk: Chunk) -> None:
        """Acts on a run in progress, and on those to come."""
        with self._lock:
            self.chunk = chunk
            self._send(SetChunk(chunk))

    def free(self) -> None:
        self._send(Free())

    def resume(self, job: str) -> None:
        """With a job that was interrupted or failed, from the last part that was finished."""
        self.interrupted = [each for each in self.interrupted if each.id != job]
        self._stopping.discard(job)
        if self.journal.get(job).state in ("interrupted", "failed"):
            self._board.open(job)
            self.journal.resume(job)
            self._wake()

    def find_unfinished(self, request: Request, choice: Choice) -> Job | None:
        """The owner's latest job that asked for exactly this, did not come to its end, and left something to go on from."""
        return next((job for job in self.journal.list_unfinished(request, choice) if measure_progress(self.folder(job.id))), None)

    def retry_start(self) -> None:
        """Now, an engine that does not start."""
        self._start_at_s = 0.0
        self._wake()

    def discard(self, job: str) -> None:
        """An interrupted job is given up; what was finished of it goes to the shelf."""
        self.interrupted = [each for each in self.interrupted if each.id != job]
        self._ended(job, Stopped((), 0.0))

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
                self._stumbles = 0
                if self.state.obstacle is not None:
                    self._set(obstacle=None)
            except Exception as fault:  # Whatever it is: jobs wait for this thread, so it tells and goes on.
                with contextlib.suppress(Exception):  # what it could not tell this time, it tells the next
                    self._stumbled(fault)
                time.sleep(TICK_S)
        if self._child is not None:
            self._child.end(patience_s=1 if self._run is None else 0)

    def _turn(self) -> None:
        self._take_back()
        if self._fallen is not None:
            self._again(*self._fallen)
            self._fallen = None
        if self._child is None and time.monotonic() >= self._start_at_s:
            self._spawn()
        if self._failed_starts >= STARTS:
            self._give_up()
        elif self._run is None and self.state.ready:
            self._hand_next()
        self._hear()
        self._watch()
        while self._ended_at_s and time.monotonic() - self._ended_at_s[0][0] > LISTENED_S:
            drop_sounds(self._ended_at_s.popleft()[1])

    def _stumbled(self, fault: Exception) -> None:
        """The keeper itself failed: told, and begun anew from what journal and folders say. What an engine may have said meanwhile is lost, so
        one that works is ended, and its job goes on like after a death."""
        death = explain_keeper_fault(fault, self.home.database)
        self._stumbles += 1
        child = self._child
        if child is not None and (self._run is not None or not self.state.ready or not child.alive):
            self._let_fall(death)
            with contextlib.suppress(Exception):
                child.reap(wedged=True, last=self.state.reading)
            self._lost(death)
        if death.sentence != self.state.obstacle:
            _log.error("%s", death.sentence, exc_info=fault)
        self._set(obstacle=death.sentence, trouble=death)
        if not self._patient and self._stumbles >= STUMBLES:
            self._fail_all(Failed(death.sentence))
        self._take_back()

    def _spawn(self) -> None:
        with self._lock:
            self._child = Child(self.home, self._pretended)
            self._send(SetChunk(self.chunk))

    def _hand_next(self) -> None:
        with self._lock:
            id_, errand = self._errands.popleft() if self._errands else ("", None)
        if errand is not None:
            self._held = Run(id_, errand, Choice(), str(self.folder(id_)))
        elif job := self.journal.take():
            died = self._lives.get(job.id, DeathRecord()).climb
            self._held = Run(job.id, job.request, job.choice, str(self.folder(job.id)), died, yields=job.owner != OWNER)
        if self._held is not None:
            self._hand(self._held)
            self._held = None

    def _hand(self, run: Run) -> None:
        Path(run.folder).mkdir(parents=True, exist_ok=True)
        self._set(job=run.job)
        self._send(run)
        self._run = run

    def _take_back(self) -> None:
        """What could not be handed waits where it waited before."""
        if self._held is None:
            return
        if isinstance(self._held.request, SelfTest | Tune):
            with self._lock:
                self._errands.appendleft((self._held.job, self._held.request))
        else:
            self.journal.put_back(self._held.job)
        self._held = None

    def _hear(self) -> None:
        sources: list[Connection | int] = [self._woken]
        sources += self._child.sources if self._child is not None else ()
        for source in wait(sources, TICK_S):
            if source is self._woken:
                self._woken.recv()
            elif self._child is not None and source is self._child.sources[0]:
                self._drain(self._child)

    def _drain(self, child: Child) -> None:
        for report in child.receive():
            self._take(report)
            if self._child is not child:
                return  # What it said was that it hangs, and it was ended for it.

    def _take(self, report: Report) -> None:
        match report:
            case Ready():
                self._failed_starts, self._start_at_s = 0, 0.0
                self._set(ready=True, gave_up=False, hardware=report.hardware)
            case Beat():
                if self._child is not None:
                    self._child.beat_s = time.monotonic()
                known = self.state.hardware
                now = with_room(known, report.reading, report.held_bytes) if known is not None else None
                self._set(reading=report.reading, model=report.model, hardware=now)
                step = self._board.get(self._run.job).step if self._run is not None else None
                self.history.append(
                    Sample(time.time(), step.rate if step else 0.0, step.unit if step else "", report.reading)
                )
                if self._child is not None and report.quiet_s is not None and report.quiet_s > self._quiet_s:
                    self._bury(self._child, wedged=True)
            case Planned():
                self._set(plan=report.plan, model=report.model)
                self._board.set_plan(report.job, report.model, report.plan)
            case JobEvent():
                self._told(report.job, report.event)

    def _told(self, job: str, event: Event) -> None:
        if isinstance(event, Step):
            self._set(reading=event.memory)
        if isinstance(event, END):
            event = self._ended(job, event)
            self._run = None
            self._set(job="", **({} if isinstance(event, Failed) else {"trouble": None}))
        self._board.post(job, event)

    def _ended(self, job: str, event: End, died: bool = False) -> End:
        """Its files move to the shelf and its row is closed. Never raises: somebody waits for this end. `died`: given up after deaths, so it
        can be gone on with where anything of it is there."""
        folder = self.folder(job)
        self._ended_at_s.append((time.monotonic(), folder))
        self._stopping.discard(job)
        self._lives.pop(job, None)
        if job.startswith("errand-"):
            return event
        try:
            known = self.journal.get(job)
            if isinstance(event, Failed) or (isinstance(event, Stopped) and not event.files):
                event = attach_delivery(event, deliver(self.home, known.request, folder), folder, died)
            event = move_to_shelf(self.shelf, known, event, self._board.get(job), folder)
        except Exception as fault:
            _log.exception("the end of a job")
            event = Failed(explain_keeper_fault(fault, self.home.database).sentence, cure="report")
        with contextlib.suppress(
            sqlite3.Error
        ):  # A row that cannot be closed stays open: the next start offers to go on with it.
            state: State = "interrupted" if died and isinstance(event, Failed) else STATES[type(event)]
            self.journal.end(job, state, str(event.sentence) if isinstance(event, Failed) else "")
            if state == "interrupted":
                self.interrupted = [*self.interrupted, self.journal.get(job)]
        return event

    def _watch(self) -> None:
        if self._child is None:
            return
        if not self._child.alive:
            self._bury(self._child)
        elif time.monotonic() - self._child.beat_s > self._no_beat_s and self.state.ready:
            self._bury(self._child, wedged=True)

    def _bury(self, child: Child, wedged: bool = False) -> None:
        """The engine is dead or has to be: say why."""
        if not wedged:
            self._drain(child)  # What it still said before it died counts.
        death = child.reap(wedged, self.state.reading)
        self._let_fall(death)
        self._lost(death)

    def _let_fall(self, death: Death) -> None:
        """There is no engine any more; what it ran is seen to in the next turn."""
        if self._run is not None:
            self._fallen = self._run, death
        self._child = self._run = None

    def _lost(self, death: Death) -> None:
        if not self.state.ready:
            self._failed_starts += 1
            often = self._failed_starts - STARTS
            self._start_at_s = time.monotonic() + min(AGAIN_MOST_S, AGAIN_S * 2**often) if often >= 0 else 0.0
        self._set(ready=False, model="", job="", restarts=self.state.restarts + 1, trouble=death)

    def _again(self, run: Run, death: Death) -> None:
        """It waits for the next engine, on a safer plan; unless engines only die at it, and it gets nowhere."""
        if run.job.startswith("errand-"):
            self._board.post(run.job, self._ended(run.job, end_measuring(death)))
            return
        before = self._lives.get(run.job, DeathRecord())
        progress = self._board.get(run.job)
        at = progress.step.done + 1 if progress.step is not None else None
        loading = progress.loading is not None
        died = None if death.fault is None else Died(death.fault, at, str(death.sentence), loading)
        lives = before.add_death(measure_progress(self.folder(run.job)), died)
        if lives.over:
            self._board.post(run.job, self._ended(run.job, give_up_on_job(death, lives), died=any(lives.reached.values())))
            return
        self.journal.put_back(run.job)
        self._lives[run.job] = lives
        self._board.post(run.job, Adjusted("restart", death.sentence, death.quirk))
        if run.job in self._stopping:
            self.stop(run.job)

    def _give_up(self) -> None:
        """The engine cannot even start. Jobs wait until it does, or fail where nobody could repair it meanwhile."""
        self._set(gave_up=True)
        failed = fail_start(self.home.logs / "engine.log", self.state.trouble)
        while self._errands:
            id_, _ = self._errands.popleft()
            self._board.post(id_, self._ended(id_, failed))
        if not self._patient:
            self._fail_all(failed)

    def _fail_all(self, failed: Failed) -> None:
        self._fallen = None
        for job in self._board.list_open():
            self._board.post(job, self._ended(job, failed))

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
