"""The keeper: holds one engine process, hands it one job after the other, and when it dies says why and starts it again."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from app.compat.hardware import Hardware
from app.compat.meter import Reading
from app.compat.plan import Choice, Plan
from app.engine import worker
from app.engine.board import Board
from app.engine.database import Database
from app.engine.diagnosis import Death, diagnose
from app.engine.errand import Errand
from app.engine.event import END, Adjusted, Event, Failed, Finished, Step, Stopped
from app.engine.journal import OWNER, Job, Journal, State
from app.engine.ladder import BY_ID, RUNGS
from app.engine.message import Beat, Free, Order, Planned, Quit, Ready, Report, Run, SetChunk, Stop, Told
from app.engine.progress import Progress
from app.engine.request import Request
from app.engine.shelf import Made, Shelf
from app.paths import Home
from app.sentence import say

ATTEMPTS = 2
STARTS = 3
"""An engine that dies this often before it is ready is not started again."""
SAFER = 2
"""How many rungs at once a job takes after a death: it has one more attempt, so it does not creep."""
TICK_S = 0.2
NO_BEAT_S = 20.0
"""Beats come every second, also from within a long kernel; this long without one, nothing comes any more."""
QUIET_S = 600.0
"""A job that says nothing for this long hangs: the slowest step measured on the slowest machine takes a tenth of it."""
LOG_BYTES = 1 << 20
FOLDERS_KEPT = 30
"""Folders of ended jobs, so that a part can be done again."""
HISTORY = 600


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of the live charts."""

    time_s: float
    rate: float
    unit: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the strip shows. `job` is what runs now, "" when idle."""

    ready: bool = False
    hardware: Hardware | None = None
    model: str = ""
    plan: Plan | None = None
    job: str = ""
    reading: Reading = dataclasses.field(default_factory=Reading)
    restarts: int = 0
    trouble: Death | None = None
    """Why the last engine died; None once a job went well."""


class Keeper:
    """All its state changes in one thread of its own; other threads ask through a lock and wake it up."""

    def __init__(
        self,
        home: Home,
        pretended: str = "",
        quiet_s: float = QUIET_S,
        no_beat_s: float = NO_BEAT_S,
    ) -> None:
        self.home = home.made()
        self.database = Database(home.database)
        self.journal = Journal(self.database)
        self.shelf = Shelf(self.database, home.creations)
        self.interrupted = self.journal.interrupted()
        self.state = EngineState()
        self.history: deque[Sample] = deque(maxlen=HISTORY)
        self._pretended = pretended
        self._quiet_s, self._no_beat_s = quiet_s, no_beat_s
        self._lock = threading.RLock()
        self._board = Board()
        self._errands: deque[tuple[str, Errand]] = deque()
        self._chunk: int | None = None
        self._child: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._run: Run | None = None
        self._beat_s = 0.0
        self._log_start = 0
        self._failed_starts = 0
        context = multiprocessing.get_context("spawn")
        self._woken, self._waker = context.Pipe(duplex=False)
        self._context = context
        self._closing = False
        self._tidy()
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._thread.start()

    # What others ask of it.

    def submit(self, request: Request, choice: Choice = Choice(), owner: str = OWNER) -> Job:  # noqa: B008 (frozen)
        job = self.journal.queue(request, choice, owner)
        self._board.open(job.id)
        self._wake()
        return job

    def errand(self, errand: Errand) -> str:
        """Ahead of the queue; its events are followed like a job's."""
        id_ = f"errand-{time.monotonic_ns()}"
        self._board.open(id_)
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
        files = tuple(str(creation.path) for creation in self.shelf.of_job(job))
        known = self.journal.job(job)
        if known.state in ("queued", "running"):
            return Progress()
        if known.state == "finished":
            return Progress(end=Finished(files, 0.0, 0.0, "", 0))
        if known.state == "stopped":
            return Progress(end=Stopped(files, 0.0))
        return Progress(
            end=Failed(
                say("job.ended", "This job ended before: {words}", words=known.words or known.state), files=files
            )
        )

    def stop(self, job: str) -> None:
        """Within one step, keeping what is there. A job that still waits is taken out of the queue."""
        if self.journal.withdraw(job):
            self._board.post(job, Stopped((), 0.0))
        else:
            self._send(Stop(job))

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
        parts = sorted(self.folder(job).glob("part-*.wav")) + sorted(self.folder(job).glob("picture-*.png"))
        self.shelf.keep(self.journal.job(job), parts, Made(model=self.journal.job(job).request.model, whole=False))
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
        while not self._closing:
            if self._child is None and self._failed_starts < STARTS:
                self._spawn()
            if self._failed_starts >= STARTS:
                self._give_up()
            elif self._run is None and self.state.ready:
                self._hand_next()
            self._hear()
            self._watch()
        self._end_child()

    def _spawn(self) -> None:
        log = self.home.logs / "engine.log"
        if log.exists() and log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".1.log"))
        self._log_start = log.stat().st_size if log.exists() else 0
        self._pipe, theirs = self._context.Pipe()
        args = (theirs, self.home, self._pretended, log)
        self._child = self._context.Process(target=worker.main, args=args, name="hearth-engine", daemon=True)
        self._child.start()
        theirs.close()
        self._beat_s = time.monotonic()
        self._send(SetChunk(self._chunk))

    def _hand_next(self) -> None:
        if self._errands:
            id_, errand = self._errands.popleft()
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
        if self._child is not None and self._pipe is not None:
            sources += [self._pipe, self._child.sentinel]
        for source in wait(sources, TICK_S):
            if source is self._woken:
                self._woken.recv()
            elif source is self._pipe:
                self._drain()

    def _drain(self) -> None:
        """Everything that is said so far. A pipe that breaks belongs to an engine that is dying: its sentinel says so next."""
        with contextlib.suppress(EOFError, OSError):
            while self._pipe is not None and self._pipe.poll():
                self._take(self._pipe.recv())

    def _take(self, report: Report) -> None:
        match report:
            case Ready():
                self._failed_starts = 0
                self._set(ready=True, hardware=report.hardware)
            case Beat():
                self._beat_s = time.monotonic()
                self._set(reading=report.reading, model=report.model)
                step = self._board.now(self._run.job).step if self._run is not None else None
                self.history.append(
                    Sample(time.time(), step.rate if step else 0.0, step.unit if step else "", report.reading)
                )
                if report.quiet_s is not None and report.quiet_s > self._quiet_s:
                    self._bury(wedged=True)
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
        if job.startswith("errand-"):
            return event
        states: dict[type, State] = {Finished: "finished", Stopped: "stopped", Failed: "failed"}
        known, progress = self.journal.job(job), self._board.now(job)
        step = progress.step
        made = Made(
            model=progress.model, seconds=getattr(event, "seconds", 0.0), rate=step.rate if step else 0.0, unit=step.unit if step else "",
            elapsed_s=getattr(event, "elapsed_s", 0.0), highest_bytes=step.memory.highest_bytes if step else 0,
            whole=isinstance(event, Finished), plan=json.dumps(told_plan(progress.plan)),
        )  # fmt: skip
        try:
            kept = self.shelf.keep(known, [file for file in event.files if Path(file).is_file()], made)
        except OSError as fault:
            event = Failed(say("shelf.full", "The result is done, but it could not be moved to {folder}: {fault}. It lies in {where}.", folder=str(self.shelf.folder), fault=str(fault), where=str(self.folder(job))), cure="open-folder")  # fmt: skip
            kept = []
        self.journal.end(job, states[type(event)], str(event.sentence) if isinstance(event, Failed) else "")
        return dataclasses.replace(event, files=tuple(str(creation.path) for creation in kept))

    def _watch(self) -> None:
        if self._child is None:
            return
        if not self._child.is_alive():
            self._bury()
        elif time.monotonic() - self._beat_s > self._no_beat_s and self.state.ready:
            self._bury(wedged=True)

    def _bury(self, wedged: bool = False) -> None:
        """The engine is dead or has to be: say why, and do its job once more on a safer plan."""
        assert self._child is not None and self._pipe is not None
        if not wedged:
            self._drain()  # What it still said before it died counts.
        self._child.kill()
        self._child.join()
        death = diagnose(self._child.exitcode, self._last_words(), wedged)
        self._pipe.close()
        self._child, run, self._run = None, self._run, None
        self._failed_starts += not self.state.ready
        self._set(ready=False, model="", job="", restarts=self.state.restarts + 1, trouble=death)
        if run is not None:
            self._again(run, death)

    def _again(self, run: Run, death: Death) -> None:
        errand = run.job.startswith("errand-")
        if errand or self.journal.job(run.job).attempts >= ATTEMPTS:
            files = tuple(part.path for part in self._board.now(run.job).parts)
            failed = Failed(
                say("job.died-twice", "The engine died twice at this job, so it is not tried a third time. Parts that were finished are kept. Try smaller settings, or another model."),
                (death.sentence,), "report", files,
            )  # fmt: skip
            self._board.post(run.job, self._ended(run.job, failed))
            return
        rungs = (*run.rungs, *[rung.id for rung in RUNGS if death.fault in rung.faults][:SAFER])
        self._board.post(run.job, Adjusted("restart", death.sentence, death.quirk))
        for rung in rungs:
            self._board.post(run.job, Adjusted(rung, BY_ID[rung].sentence))
        self.journal.begin(run.job)
        self._spawn()
        self._hand(dataclasses.replace(run, rungs=rungs))

    def _give_up(self) -> None:
        """An engine that cannot even start fails what waits, instead of trying for ever."""
        while job := self.journal.take():
            failed = Failed(
                say(
                    "engine.no-start",
                    "The engine does not start on this machine. Its log is {log}; Repair sets it up anew.",
                    log=str(self.home.logs / "engine.log"),
                ),
                (self.state.trouble.sentence,) if self.state.trouble else (),
                "repair",
            )
            self._board.post(job.id, self._ended(job.id, failed))

    def _last_words(self) -> str:
        log = self.home.logs / "engine.log"
        if not log.exists():
            return ""
        with log.open("rb") as file:
            file.seek(max(self._log_start, log.stat().st_size - 8192))
            return file.read().decode("utf-8", errors="replace")

    def _end_child(self) -> None:
        if self._child is not None and self._pipe is not None:
            self._send(Quit())
            self._child.join(timeout=1 if self._run is None else 0)
            self._child.kill()
            self._child.join()
            self._pipe.close()

    # Small things both sides use.

    def _send(self, order: Order) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            # A pipe that breaks belongs to an engine that is dying; what matters is handed again.
            if self._pipe is not None:
                self._pipe.send(order)

    def _wake(self) -> None:
        with self._lock:
            self._waker.send(None)

    def _set(self, **changes: object) -> None:
        with self._lock:
            self.state = dataclasses.replace(self.state, **changes)  # type: ignore[arg-type]

    def _tidy(self) -> None:
        """Old folders of jobs that have ended go; those that can be gone on with stay."""
        jobs = self.home.scratch / "jobs"
        needed = {job.id for job in self.interrupted}
        folders = sorted(jobs.iterdir(), key=lambda path: path.stat().st_mtime) if jobs.is_dir() else []
        for folder in [each for each in folders if each.name not in needed][:-FOLDERS_KEPT]:
            shutil.rmtree(folder, ignore_errors=True)


def told_plan(plan: Plan | None) -> dict[str, object]:
    """What a row of the shelf says of how it was made; the reasons can be had again."""
    if plan is None:
        return {}
    left_out = {"because", "rejected", "warnings"}
    return {
        field.name: value
        for field in dataclasses.fields(plan)
        if field.name not in left_out and isinstance(value := getattr(plan, field.name), str | int | bool | None)
    }
