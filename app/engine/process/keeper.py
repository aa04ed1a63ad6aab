"""The keeper holds the engine's process: it hands over one job after the other, posts what happens, and restarts the engine when it dies."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, wait
from pathlib import Path

from app.compat.machine.hardware import with_room
from app.compat.planning.types import AUTO, Choice, Chunk
from app.engine.jobs.database import Database
from app.engine.jobs.events import END, Adjusted, Event, Failed, Step, Stopped
from app.engine.jobs.journal import Job, Journal
from app.engine.jobs.messages import Beat, Died, Free, JobEvent, Planned, Ready, Report, Run, Stop
from app.engine.jobs.owners import OWNER
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Request, to_json
from app.engine.jobs.shelf import Shelf
from app.engine.jobs.tasks import MaintenanceTask, is_task, new_task_id
from app.engine.models.precheck import reject_early
from app.engine.process.child import Child
from app.engine.process.deaths import DeathRecord, measure_progress
from app.engine.process.engine_life import NO_BEAT_S, EngineLife
from app.engine.process.job_end import Stores, end_job
from app.engine.process.job_folder import End, drop_sounds, tidy_folders, tidy_uploads
from app.engine.process.progress_board import ProgressBoard
from app.engine.process.recovery import (
    Death,
    end_measuring,
    explain_keeper_fault,
    fail_start,
    give_up_on_job,
    recall_progress,
)
from app.engine.process.state import EngineState, Sample
from app.engine.process.work_queue import WorkQueue
from app.paths import Home

STUMBLES = 5
"""After this many faults of the keeper in a row, waiting commands are told to end."""
TICK_S = 0.2
QUIET_S = 600.0
"""A job that reports nothing for this long hangs: the slowest step measured on the slowest machine takes a tenth of
it."""
LISTENED_S = 60.0
"""Time for a listening page to fetch the last pieces of sound after its job ended."""
HISTORY = 600
_log = logging.getLogger("hearth.keeper")


class Keeper:
    """Run jobs on the engine. All state changes in one thread; other threads use a lock and wake it."""

    def __init__(
        self,
        home: Home,
        pretended: str = "",
        quiet_s: float = QUIET_S,
        no_beat_s: float = NO_BEAT_S,
        rest_s: float = 0.0,
        patient: bool = True,
    ) -> None:
        """`rest_s`: delay of the engine's start, unless something is asked for. `patient`: jobs wait while the engine
        cannot start; a command cannot be repaired meanwhile, so its job fails."""
        self.home = home.create()
        self.database = Database(home.database)
        self.journal = Journal(self.database)
        self.shelf = Shelf(self.database, home.creations)
        self.interrupted = self.journal.mark_interrupted()
        self.state = EngineState()
        self.history: deque[Sample] = deque(maxlen=HISTORY)
        self._stores = Stores(home, self.journal, self.shelf)
        self._engine = EngineLife(home, pretended, no_beat_s)
        self._queue = WorkQueue(self.journal, self.folder)
        self._board = ProgressBoard()
        self._quiet_s, self._rest_s, self._patient = quiet_s, rest_s, patient
        self._lock = threading.RLock()
        self._ended_at_s: deque[tuple[float, Path]] = deque()
        self._run: Run | None = None
        self._fallen: tuple[Run, Death] | None = None
        """The job whose engine died, until it is queued again or given up."""
        self._deaths: dict[str, DeathRecord] = {}
        self._stopping: set[str] = set()
        """Jobs that were asked to stop while running: if their engine dies, they are not started again."""
        self._stumbles = 0
        self._woken, self._waker = multiprocessing.Pipe(duplex=False)
        self._closing = False
        live = self.journal.list_live()
        tidy_folders(self.home.scratch / "jobs", {job.id for job in live}, {job.id for job in self.interrupted})
        to_come = [to_json(job.request) for job in (*live, *self.interrupted)]
        tidy_uploads(self.home.scratch / "uploads", json.dumps(to_come))
        self._thread = threading.Thread(target=self._loop, name="keeper", daemon=True)
        self._thread.start()

    # Called by other threads.

    @property
    def chunk(self) -> Chunk:
        """The chunk size in force, for every job."""
        return self._engine.chunk

    def submit(self, request: Request, choice: Choice = Choice(), owner: str = OWNER) -> Job:  # noqa: B008 (frozen)
        """Queue a job. The chunk is not part of it: all jobs use the one in force (`set_chunk`)."""
        reject_early(request, self.home)
        job = self.journal.queue(request, dataclasses.replace(choice, chunk=AUTO), owner)
        self._board.open(job.id)
        self._wake()
        return job

    def start_task(self, task: MaintenanceTask) -> str:
        """Queue a maintenance task ahead of the jobs; its events are followed like a job's."""
        id_ = new_task_id()
        self._board.open(id_)
        self._queue.add_task(id_, task)
        self._wake()
        return id_

    def follow(self, job: str) -> Iterator[Event]:
        """Yield what happened so far, in short, then every event as it happens, until the end."""
        return self._board.follow(job, lambda: self._recall(job))

    def watch(self, job: str, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `wake` after every event of a job, from another thread; `get_progress` then tells how far it is."""
        return self._board.watch(job, wake)

    def get_progress(self, job: str) -> Progress:
        return self._board.find(job) or self._recall(job)

    def _recall(self, job: str) -> Progress:
        """Rebuild the progress of a job that only journal and shelf still know."""
        return recall_progress(self.journal.get(job), tuple(str(each.path) for each in self.shelf.list_of_job(job)))

    def stop(self, job: str) -> None:
        """Stop within one step and keep what is finished. A waiting job leaves the queue."""
        self._stopping.add(job)
        if self._queue.withdraw(job):
            self._board.post(job, self._end(job, Stopped((), 0.0)))
        else:
            self._engine.send(Stop(job))

    def set_chunk(self, chunk: Chunk) -> None:
        """Apply to a running job and to all later ones."""
        self._engine.set_chunk(chunk)

    def free(self) -> None:
        self._engine.send(Free())

    def resume(self, job: str) -> None:
        """Resume an interrupted or failed job after the last finished part."""
        self.interrupted = [each for each in self.interrupted if each.id != job]
        self._stopping.discard(job)
        if self.journal.get(job).state in ("interrupted", "failed"):
            self._board.open(job)
            self.journal.resume(job)
            self._wake()

    def find_unfinished(self, request: Request, choice: Choice) -> Job | None:
        """Find the owner's latest unfinished job with exactly this request that left something to resume from."""
        unfinished = self.journal.list_unfinished(request, choice)
        return next((job for job in unfinished if measure_progress(self.folder(job.id))), None)

    def retry_start(self) -> None:
        """Start the engine again now, after failed starts."""
        self._engine.retry_now()
        self._wake()

    def discard(self, job: str) -> None:
        """Give up an interrupted job; move its finished parts to the shelf."""
        self.interrupted = [each for each in self.interrupted if each.id != job]
        self._end(job, Stopped((), 0.0))

    def folder(self, job: str) -> Path:
        return self._stores.job_folder(job)

    def close(self) -> None:
        """End the engine as well; a running job is interrupted and can be resumed."""
        if not self._closing:
            self._closing = True
            self._wake()
            self._thread.join(timeout=10)
            self.database.close()

    # Called by the keeper's own thread.

    def _loop(self) -> None:
        self._woken.poll(self._rest_s)
        while not self._closing:
            try:
                self._take_turn()
                self._stumbles = 0
                if self.state.obstacle is not None:
                    self._set(obstacle=None)
            except Exception as fault:  # Whatever it is: jobs wait for this thread, so report the fault and continue.
                with contextlib.suppress(Exception):  # what could not be reported now is reported the next time
                    self._recover(fault)
                time.sleep(TICK_S)
        if self._engine.child is not None:
            self._engine.child.end(patience_s=1 if self._run is None else 0)

    def _take_turn(self) -> None:
        self._queue.take_back()
        if self._fallen is not None:
            self._retry(*self._fallen)
            self._fallen = None
        self._spawn()
        if self._engine.gave_up:
            self._give_up()
        elif self._run is None and self.state.ready:
            self._hand_next()
        self._listen()
        self._watch()
        while self._ended_at_s and time.monotonic() - self._ended_at_s[0][0] > LISTENED_S:
            drop_sounds(self._ended_at_s.popleft()[1])

    def _recover(self, fault: Exception) -> None:
        """Report a fault of the keeper and rebuild its state from journal and folders. The engine's messages meanwhile
        are lost, so a busy engine is ended, and its job is retried as after a death."""
        death = explain_keeper_fault(fault, self.home.database)
        self._stumbles += 1
        child = self._engine.child
        if child is not None and (self._run is not None or not self.state.ready or not child.alive):
            self._drop_engine(death)
            with contextlib.suppress(Exception):
                child.reap(wedged=True, last=self.state.reading)
            self._note_death(death)
        if death.sentence != self.state.obstacle:
            _log.error("%s", death.sentence, exc_info=fault)
        self._set(obstacle=death.sentence, trouble=death)
        if not self._patient and self._stumbles >= STUMBLES:
            self._fail_all(Failed(death.sentence))
        self._queue.take_back()

    def _spawn(self) -> None:
        self._engine.start_if_due()

    def _hand_next(self) -> None:
        run = self._queue.take(lambda job: self._deaths.get(job, DeathRecord()).climb)
        if run is not None:
            self._hand(run)
            self._queue.release()

    def _hand(self, run: Run) -> None:
        Path(run.folder).mkdir(parents=True, exist_ok=True)
        self._set(job=run.job)
        self._engine.send(run)
        self._run = run

    def _listen(self) -> None:
        child = self._engine.child
        sources: list[Connection | int] = [self._woken]
        sources += child.sources if child is not None else ()
        for source in wait(sources, TICK_S):
            if source is self._woken:
                self._woken.recv()
            elif child is not None and source is child.sources[0]:
                self._drain(child)

    def _drain(self, child: Child) -> None:
        for report in child.receive():
            self._handle(report)
            if self._engine.child is not child:
                return  # Its message was that it hangs, and it was ended for that.

    def _handle(self, report: Report) -> None:
        match report:
            case Ready():
                self._engine.mark_ready()
                self._set(ready=True, gave_up=False, hardware=report.hardware)
            case Beat():
                self._handle_beat(report)
            case Planned():
                self._set(plan=report.plan, model=report.model)
                self._board.set_plan(report.job, report.model, report.plan)
            case JobEvent():
                self._handle_event(report.job, report.event)

    def _handle_beat(self, beat: Beat) -> None:
        self._engine.note_beat()
        known = self.state.hardware
        now = with_room(known, beat.reading, beat.held_bytes) if known is not None else None
        self._set(reading=beat.reading, model=beat.model, hardware=now)
        step = self._board.get(self._run.job).step if self._run is not None else None
        self.history.append(Sample(time.time(), step.rate if step else 0.0, step.unit if step else "", beat.reading))
        if self._engine.child is not None and beat.quiet_s is not None and beat.quiet_s > self._quiet_s:
            self._reap(self._engine.child, wedged=True)

    def _handle_event(self, job: str, event: Event) -> None:
        if isinstance(event, Step):
            self._set(reading=event.memory)
        if isinstance(event, END):
            event = self._end(job, event)
            self._run = None
            self._set(job="", **({} if isinstance(event, Failed) else {"trouble": None}))
        self._board.post(job, event)

    def _end(self, job: str, event: End, died: bool = False) -> End:
        """Move the files to the shelf and close the row. `died`: given up after deaths, so it can be resumed if any
        part exists."""
        self._ended_at_s.append((time.monotonic(), self.folder(job)))
        self._stopping.discard(job)
        self._deaths.pop(job, None)
        if is_task(job):
            return event
        event, resumable = end_job(self._stores, job, event, self._board.get(job), died)
        if resumable is not None:
            self.interrupted = [*self.interrupted, resumable]
        return event

    def _watch(self) -> None:
        child = self._engine.child
        if child is None:
            return
        if not child.alive:
            self._reap(child)
        elif self.state.ready and self._engine.has_hung():
            self._reap(child, wedged=True)

    def _reap(self, child: Child, wedged: bool = False) -> None:
        """End the engine, dead or not; say why."""
        if not wedged:
            self._drain(child)  # Messages sent before it died still count.
        death = child.reap(wedged, self.state.reading)
        self._drop_engine(death)
        self._note_death(death)

    def _drop_engine(self, death: Death) -> None:
        """Forget a dead engine; the next turn handles the job it ran."""
        if self._run is not None:
            self._fallen = self._run, death
        self._engine.child = self._run = None

    def _note_death(self, death: Death) -> None:
        if not self.state.ready:
            self._engine.count_failed_start()
        self._set(ready=False, model="", job="", restarts=self.state.restarts + 1, trouble=death)

    def _retry(self, run: Run, death: Death) -> None:
        """Queue the job for the next engine on a safer plan; give it up if engines keep dying without progress."""
        if is_task(run.job):
            self._board.post(run.job, self._end(run.job, end_measuring(death)))
            return
        before = self._deaths.get(run.job, DeathRecord())
        progress = self._board.get(run.job)
        at = progress.step.done + 1 if progress.step is not None else None
        loading = progress.loading is not None
        died = None if death.fault is None else Died(death.fault, at, str(death.sentence), loading)
        record = before.add_death(measure_progress(self.folder(run.job)), died)
        if record.over:
            self._board.post(run.job, self._end(run.job, give_up_on_job(death, record), any(record.reached.values())))
            return
        self.journal.put_back(run.job)
        self._deaths[run.job] = record
        self._board.post(run.job, Adjusted("restart", death.sentence, death.quirk))
        if run.job in self._stopping:
            self.stop(run.job)

    def _give_up(self) -> None:
        """Handle an engine that cannot start: jobs wait until it does, or fail if nobody can repair it meanwhile."""
        self._set(gave_up=True)
        failed = fail_start(self.home.logs / "engine.log", self.state.trouble)
        for id_ in self._queue.drop_tasks():
            self._board.post(id_, self._end(id_, failed))
        if not self._patient:
            self._fail_all(failed)

    def _fail_all(self, failed: Failed) -> None:
        self._fallen = None
        for job in self._board.list_open():
            self._board.post(job, self._end(job, failed))

    # Used by both sides.

    def _wake(self) -> None:
        with self._lock:
            self._waker.send(None)

    def _set(self, **changes: object) -> None:
        with self._lock:
            self.state = dataclasses.replace(self.state, **changes)  # type: ignore[arg-type]
