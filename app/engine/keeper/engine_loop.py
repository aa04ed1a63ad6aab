"""The loop that keeps the engine at work, in one thread: hand over jobs, post reports, and restart the engine when it dies."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import sqlite3
import threading
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path

from app.base.disk_faults import is_disk_full
from app.base.sentence import Sentence
from app.engine.jobs.events import END, RESTART, Adjusted, Event, Failed, Step, Stopped
from app.engine.jobs.messages import Beat, JobEvent, Planned, Ready, Report, Run, Stop
from app.engine.jobs.parts import drop_elsewhere
from app.engine.jobs.tasks import is_lent, is_task
from app.engine.keeper.child import Child
from app.engine.keeper.disk_room import DiskRoom
from app.engine.keeper.engine_life import EngineLife
from app.engine.keeper.engine_status import EngineStatus
from app.engine.keeper.job_end import JobEnds
from app.engine.keeper.job_folder import End
from app.engine.keeper.progress_board import ProgressBoard
from app.engine.keeper.recovery import DEAF, Death, describe_death, end_measuring, explain_keeper_fault, fail_start, give_up_on_job
from app.engine.keeper.stores import Stores
from app.engine.keeper.work_queue import WorkQueue

STUMBLES = 5
"""After this many faults of the loop in a row, waiting commands are told to end."""
TICK_S = 0.2
QUIET_S = 600.0
"""A job that reports nothing for this long hangs: the slowest step measured on the slowest machine takes a tenth of
it."""
UNHEARD_S = 20.0
"""A job that has not seen Stop after this long, and a step of its own, never will: it loads or reads something that does not end."""
STORE_AGAIN_S = 1.0
"""The end of a job is stored again after this wait: joining a long script's sound takes a moment each time."""
_log = logging.getLogger("hearth.keeper")


def find_step_s(step: Step | None) -> float:
    """Return how long a step of a picture takes: Stop is seen between two."""
    return 1 / step.rate if step is not None and step.unit == "steps" and step.rate > 0 else 0.0


class EngineLoop:
    """What the engine does changes in its thread only. Other threads read, call `wake`, `withdraw`, `stop` and `pause`, and `end` and `settle` of its
    `ends`; these change single entries of a set, list or dict, each in one step."""

    def __init__(
        self,
        stores: Stores,
        engine: EngineLife,
        queue: WorkQueue,
        board: ProgressBoard,
        status: EngineStatus,
        *,
        quiet_s: float,
        rest_s: float,
        patient: bool,
    ) -> None:
        self._stores, self._engine, self._queue, self._board, self._status = stores, engine, queue, board, status
        self._quiet_s, self._rest_s, self._patient = quiet_s, rest_s, patient
        self._waking = threading.Lock()
        self._run: Run | None = None
        self._orphan: tuple[Run, Death] | None = None
        """This job's engine died; the job stays here until it is queued again or given up."""
        self._ending: tuple[str, End] | None = None
        """This job's end could not be stored for lack of room; no other begins before."""
        self._ending_again_s = 0.0
        self.ends = JobEnds(stores, board, patient)
        self._room = DiskRoom(stores.home, waits=patient)
        self._stumbles = 0
        self._pause: Sentence | None = None
        self._woken, self._waker = multiprocessing.Pipe(duplex=False)
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="keeper", daemon=True)

    # Called by other threads.

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        with self._waking:
            self._waker.send(None)

    def withdraw(self, job: str) -> bool:
        """Take a waiting job out of the queue; return False if it does not wait."""
        waited = self._queue.withdraw(job)
        if waited:
            self._room.reset()  # it may have been the one that filled the disk
            self._finish(job, Stopped((), 0.0))
        return waited

    def stop(self, job: str) -> None:
        """Stop a running job within one step; take a waiting one out of the queue."""
        self.ends.stopping.add(job)
        if not self.withdraw(job):
            self._engine.send(Stop(job))

    def pause(self, reason: Sentence | None) -> None:
        """Begin no job any more and give the device and its memory back, with the running job back in its place; None: go on."""
        if reason != self._pause:
            self._pause = reason
            self.wake()

    def close(self) -> None:
        self._closing = True
        self.wake()
        self._thread.join(timeout=10)

    # Called by its own thread.

    def _loop(self) -> None:
        self._woken.poll(self._rest_s)
        while not self._closing:
            try:
                self._take_turn()
                self._stumbles = 0
                lack = self._room.find_obstacle()
                if lack != self._status.state.obstacle:
                    self._status.set(obstacle=lack)
            except Exception as fault:  # Whatever it is: jobs wait for this thread, so report the fault and continue.
                with contextlib.suppress(Exception):  # what could not be reported now is reported the next time
                    self._recover(fault)
                time.sleep(TICK_S)
        if self._engine.child is not None:
            self._engine.child.end(patience_s=1 if self._run is None else 0)

    def _take_turn(self) -> None:
        self._queue.take_back()
        if self._orphan is not None:
            self._retry(*self._orphan)
            self._orphan = None
        pause = self._pause
        if pause != self._status.state.paused:
            self._status.set(paused=pause)
        if pause is not None and not self._works_for_task():
            self._rest()
        else:
            self._engine.start_if_due()
        if self._engine.gave_up:
            self._give_up()
        elif self._ending is not None:
            if time.monotonic() >= self._ending_again_s:
                self._store_end(*self._ending)
        elif self._run is None and self._status.state.ready:
            self._hand_next_if_room()
        self._listen()
        self._watch()
        running = self._run.job if self._run is not None else ""
        self.ends.tidy_next(running)

    def _works_for_task(self) -> bool:
        """Tell whether the engine is needed during a pause: for what somebody asked for at once, to store an end, and to find out what machine
        this is."""
        running = self._run is not None and is_task(self._run.job)
        return running or self._queue.has_tasks or self._ending is not None or self._status.state.hardware is None

    def _rest(self) -> None:
        """End the engine. Its job goes back to its place in the queue, and on from what is stored: the last step, the last second of speech."""
        child, run = self._engine.child, self._run
        if child is None:
            return
        self._drain(child)  # what was said before still counts, an end above all
        if self._run is not run or self._engine.child is not child or self._ending is not None:
            return
        child.end(patience_s=0 if run is not None else 1)
        self._engine.child = self._run = None
        self._status.set(ready=False, model="", job="")
        if run is not None and run.job in self.ends.stopping:
            self._finish(run.job, Stopped((), 0.0))
        elif run is not None:
            self._queue.hold(run)

    def _recover(self, fault: Exception) -> None:
        """Report a fault of the keeper and rebuild its state from journal and folders. The engine's messages meanwhile
        are lost, so a busy engine is ended, and its job is retried as after a death."""
        death = explain_keeper_fault(fault, self._stores.home.database)
        self._stumbles += 1
        child = self._engine.child
        if child is not None and (self._run is not None or not self._status.state.ready or not child.alive):
            self._drop_engine(death)
            with contextlib.suppress(Exception):
                child.reap(wedged=True, last=self._status.state.reading)
            self._note_death(death)
        if death.sentence != self._status.state.obstacle:
            _log.error("%s", death.sentence, exc_info=fault)
        self._status.set(obstacle=death.sentence, trouble=death)
        if not self._patient and self._stumbles >= STUMBLES:
            self._fail_all(Failed(death.sentence))
        self._queue.take_back()

    def _hand_next_if_room(self) -> None:
        """Jobs wait while the disk is full; nobody waits for a command's job, so it ends."""
        lack = self._room.find_lack()
        if lack is None:
            self._hand_next()
        elif not self._patient:
            self._fail_all(Failed(lack))

    def _hand_next(self) -> None:
        self._stores.jobs_folder.mkdir(parents=True, exist_ok=True)  # what is in its way is told before a job is taken
        run = self._queue.take(self.ends.deaths.find_avoided)
        if run is not None:
            Path(run.folder).mkdir(parents=True, exist_ok=True)
            self.ends.forget(run.job)
            self._status.set(job=run.job)
            self._engine.send(run)
            if run.job in self.ends.stopping:  # asked between the queue and here; the engine forgets what came before its run
                self._engine.send(Stop(run.job))
            self._run = run
            self._queue.release()

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
                self._status.set(ready=True, gave_up=False, hardware=report.hardware)
            case Beat():
                self._handle_beat(report)
            case Planned():
                self._status.set(plan=report.plan, model=report.model)
                self._board.set_plan(report.job, report.model, report.plan)
            case JobEvent():
                self._handle_event(report.job, report.event)

    def _handle_beat(self, beat: Beat) -> None:
        self._engine.note_beat()
        step = self._board.get(self._run.job).step if self._run is not None else None
        self._status.note_beat(beat)
        self._status.charts.add(step, beat.reading, self._engine.dial.chunk)
        if self._engine.child is None:
            return
        if beat.quiet_s is not None and beat.quiet_s > self._quiet_s:
            self._reap(self._engine.child, wedged=True)
        elif beat.unheard_s is not None and beat.unheard_s > UNHEARD_S + find_step_s(step):
            self._reap(self._engine.child, deaf=True)

    def _handle_event(self, job: str, event: Event) -> None:
        if isinstance(event, Step):
            self._status.set(reading=event.memory)
        if isinstance(event, Adjusted):
            self._status.charts.mark(event.sentence)
        if not isinstance(event, END):
            self._board.post(job, event)
        elif (full := self.ends.find_lack(job, event)) is not None and self._run is not None:
            self._room.note_full(full)
            self._queue.hold(self._run)
            self._run = None
            self._status.set(job="")
        else:
            self._store_end(job, event)

    def _store_end(self, job: str, event: End) -> None:
        """Store the end of a job; on a full disk, with the next turn that finds room."""
        try:
            stored = self.ends.end(job, event)
        except (OSError, sqlite3.Error) as fault:
            if not is_disk_full(fault) or not self._patient:
                raise
            self._room.note_fault(fault)
            self._ending, self._ending_again_s = (job, event), time.monotonic() + STORE_AGAIN_S
            return
        self._ending = self._run = None
        self._room.reset()
        self._status.set(job="", **({} if isinstance(stored, Failed) else {"trouble": None}))
        self._board.post(job, stored)

    def _watch(self) -> None:
        child = self._engine.child
        if child is None:
            return
        if not child.alive:
            self._reap(child)
        elif self._status.state.ready and self._engine.has_hung():
            self._reap(child, wedged=True)

    def _reap(self, child: Child, wedged: bool = False, deaf: bool = False) -> None:
        """End the engine, dead or not; say why. `deaf`: to the Stop of its job."""
        if not wedged and not deaf:
            self._drain(child)  # Messages sent before it died still count.
        death = child.reap(wedged or deaf, self._status.state.reading)
        death = DEAF if deaf else death
        self._drop_engine(death)
        self._note_death(death)

    def _drop_engine(self, death: Death) -> None:
        """Forget a dead engine; the next turn handles the job it ran, unless that had ended and its end waits to be stored."""
        if self._run is not None and self._ending is None:
            self._orphan = self._run, death
        self._engine.child = self._run = None

    def _note_death(self, death: Death) -> None:
        if not self._status.state.ready:
            self._engine.count_failed_start()
        self._status.set(ready=False, model="", job="", restarts=self._status.state.restarts + 1, trouble=death)

    def _retry(self, run: Run, death: Death) -> None:
        """Queue the job for the next engine on a safer plan; give it up if engines keep dying without progress. One that was asked to
        stop has stopped."""
        if run.job in self.ends.stopping:
            self._board.post(run.job, Adjusted(RESTART, death.sentence, death.quirk))
            self._finish(run.job, Stopped((), 0.0))
            return
        if is_task(run.job):
            self._finish(run.job, end_measuring(death))
            return
        folder = self._stores.job_folder(run.job)
        died = None if drop_elsewhere(folder) else describe_death(death, self._board.get(run.job))
        record = self.ends.deaths.count(run.job, folder, died)
        if record.over:
            self._finish(run.job, give_up_on_job(death, record), any(record.reached.values()))
            return
        if is_lent(run.job):
            self._queue.add_lent(run)
        else:
            self._stores.journal.put_back(run.job)
        self.ends.deaths.keep(run.job, record)
        self._board.post(run.job, Adjusted(RESTART, death.sentence, death.quirk))
        self._status.charts.mark(death.sentence)

    def _give_up(self) -> None:
        """Handle an engine that cannot start: jobs wait until it does, or fail if nobody can repair it meanwhile."""
        self._status.set(gave_up=True)
        failed = fail_start(self._stores.home.logs / "engine.log", self._status.state.trouble)
        for id_ in self._queue.drop_tasks():
            self._finish(id_, failed)
        if not self._patient:
            self._fail_all(failed)

    def _fail_all(self, failed: Failed) -> None:
        self._orphan = None
        for job in self._board.list_open():
            self._finish(job, failed)

    def _finish(self, job: str, event: End, died: bool = False) -> None:
        self._board.post(job, self.ends.end(job, event, died))
