"""Run the engine's process: take orders, run one job at a time, report events. The window never imports torch."""

from __future__ import annotations

import contextlib
import os
import platform
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.base.fast_import import pausing_collector
from app.base.macos_version import read_macos_version
from app.base.paths import Home
from app.compat.machine.free_memory import read_available_bytes
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading, read, read_beside
from app.compat.planning.quirk_table import list_quirks
from app.engine.jobs.control import Control, Dial
from app.engine.jobs.events import END, Event, Step
from app.engine.jobs.messages import Beat, Free, JobEvent, Order, Planned, Quit, Ready, Report, Run, Stop
from app.engine.keeper import no_network
from app.engine.models.voice_families import FAMILIES
from app.launcher import slot_lock

if TYPE_CHECKING:
    from app.compat.planning.types import Plan
    from app.engine.session.session import Session

BEAT_S = 1.0
STEP_EVERY_S = 0.05
"""Steps come faster than anyone reads; skipped reports hold only progress."""
SLEPT_S: Final = 30.0
"""After this long between two beats the whole computer slept: a job's silence meanwhile does not count."""
ROOM_BYTES: Final = 1 << 30
"""The imports take a fifth of a GiB; with less than this free, they wait until needed."""
SPARE_BYTES: Final = 640 << 20
"""Idle work needs this much to begin: a child that checks the machine takes up to 0.6 GiB."""
SPARE_LEAST_BYTES: Final = 128 << 20
"""With less, it pauses once it has begun: what is free then no longer counts its own child."""


class Worker:
    """One thread listens, one beats, the main one runs and owns the device; painting threads borrow it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._orders: queue.Queue[Run | Free | Quit] = queue.Queue()
        self._control = Control()
        self.dial = Dial()
        self._job = ""
        self._withdrawn: set[str] = set()
        """These jobs were asked to stop, some before they began."""
        self._spoke_s: float | None = None
        """The job last reported something then; None while none runs."""
        self._session: Session | None = None
        self._reading = Reading()
        """It is the latest reading that asked the device; the beat must not ask it itself."""
        self._measured = True

    def report(self, report: Report) -> None:
        with self._sending:
            self._pipe.send(report)

    def listen(self) -> None:
        while True:
            try:
                order: Order = self._pipe.recv()
            except (EOFError, OSError):
                # The window is gone. Finished parts are on disk and nobody waits: end.
                os._exit(0)
            match order:
                case Stop():
                    self._withdrawn.add(order.job)
                    if order.job == self._job:
                        self._control.stop()
                case Dial():
                    self.dial.chunk = order.chunk
                case Run():
                    self._withdrawn.discard(order.job)  # a stop that was sent before belongs to an earlier run
                    self._orders.put(order)
                case _:
                    self._orders.put(order)

    def beat(self) -> None:
        reading = Reading()
        beaten_s = awake_s = time.monotonic()
        while True:
            with contextlib.suppress(Exception):  # If the meter fails, keep its last reading; the main thread logs the reason.
                reading = read_beside(self._reading)
            spoke_s = self._spoke_s
            session = self._session
            model, held, checked = (session.loaded, session.held_bytes, session.checked) if session is not None else ("", 0, (0, 0))
            now_s = time.monotonic()
            if now_s - beaten_s > SLEPT_S:
                awake_s = now_s
            beaten_s = now_s
            asked_s = self._control.asked_s
            quiet_s, unheard_s = (None if since_s is None else now_s - max(since_s, awake_s) for since_s in (spoke_s, asked_s))
            self.report(Beat(reading, model, quiet_s, held, checked, unheard_s))
            time.sleep(BEAT_S)

    def work(self, session: Session, ahead: Iterable[str] = ()) -> None:
        self._session = session
        self._import_ahead(ahead)
        while not isinstance(order := self._next(session), Quit):
            if isinstance(order, Free):
                session.free()
            else:
                self._run(session, order)

    def _import_ahead(self, libraries: Iterable[str]) -> None:
        """Import what the first job will need, until an order arrives; orders are checked between two libraries."""
        try:
            for library in libraries:
                if not self._orders.empty() or read_available_bytes() < ROOM_BYTES:
                    return
                with pausing_collector():
                    import_module(library)
        except Exception:  # Whatever it is, the job that needs this library will report it.
            traceback.print_exc()

    def _next(self, session: Session) -> Run | Free | Quit:
        """Return the next order; until it arrives, do idle work in short pieces, where there is memory for it."""
        idle_work: Iterator[None] | None = session.use_idle_time()
        least_bytes = SPARE_BYTES
        while True:
            self._ask_device()
            has_room = read_available_bytes() >= least_bytes
            with contextlib.suppress(queue.Empty):
                return self._orders.get(timeout=0 if idle_work is not None and has_room else BEAT_S)
            if idle_work is not None and has_room:
                least_bytes = SPARE_LEAST_BYTES
                if not self._do_piece(idle_work):
                    idle_work = None

    def _do_piece(self, idle_work: Iterator[None]) -> bool:
        """Do a piece of idle work; tell whether there is more."""
        try:
            next(idle_work)
        except StopIteration:
            return False
        except Exception:  # What cannot be measured is left to the rules.
            traceback.print_exc()
            return False
        return True

    def _ask_device(self) -> None:
        """Read the device's memory for the beat. If the meter fails, keep its last reading; never end a job for it."""
        try:
            self._reading, self._measured = read(), True
        except Exception:
            if self._measured:
                traceback.print_exc()
            self._measured = False

    def _run(self, session: Session, run: Run) -> None:
        self._control, self._job = Control(), run.job
        if run.job in self._withdrawn:
            self._control.stop()
        self._spoke_s = time.monotonic()
        last_step_s = 0.0

        def planned(model: str, plan: Plan) -> None:
            self.report(Planned(run.job, model, plan))

        held: Event | None = None
        for event in session.run(run.request, run.choice, self._control, Path(run.folder), planned, died=run.died, yields=run.yields):
            now = self._spoke_s = time.monotonic()
            if isinstance(event, Step):
                self._reading = event.memory
            if isinstance(event, Step) and event.done < event.total and now - last_step_s < STEP_EVERY_S:
                held = event
                continue
            if held is not None and isinstance(event, END):
                self.report(JobEvent(run.job, held))
            held, last_step_s = None, now if isinstance(event, Step) else last_step_s
            self.report(JobEvent(run.job, event))
        self._control, self._job, self._spoke_s = Control(), "", None


def list_ahead(home: Home) -> Iterator[str]:
    """List the slowest imports of a first sound or picture, shared ones first: 3.1 and 6.0 s after the click without, 0.5 and 1.4 with it. Of the
    families of voices only that of the voice that speaks where none is named."""
    yield "transformers.modeling_utils"
    yield "app.engine.speech.run.loader"
    from app.engine.models.chosen import find_usual_voice  # brings huggingface_hub, which reads the environment once

    yield FAMILIES[find_usual_voice(home).family].loads_with
    yield "diffusers.pipelines.pipeline_utils"
    yield "app.engine.pictures.run.painter"


def choose_environment() -> dict[str, str]:
    """Set what this system's quirks need before torch is imported; torch's version comes from importlib, without
    importing torch."""
    system = {"Darwin": "macos", "Windows": "windows"}.get(platform.system(), "linux")
    facts = Hardware(
        kind="mps" if system == "macos" else "cpu",
        system=system,  # type: ignore[arg-type]
        system_version=read_macos_version() if system == "macos" else "",
        torch=version("torch"),
    )
    wanted = dict(pair for quirk in list_quirks(facts, {}) for pair in quirk.sets)
    return {name: value for name, value in wanted.items() if name not in os.environ}


def redirect_output(log: Path) -> None:
    """Redirect all output of this process, its libraries' included. On Windows Python's console streams cannot write to
    a file: both are replaced."""
    last_words = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(last_words, stream)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def exit_when_done(needed: Callable[[], None]) -> None:
    """Exit when listening or beating ends, with the reason in the log; the keeper then starts another engine."""
    try:
        needed()
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def main(pipe: Connection, home: Home, pretended: str, log: Path) -> None:
    """Start the process. What torch and huggingface_hub read from the environment is set before they are imported."""
    slot_lock.hold()
    no_network.leave_network()
    os.environ.update(choose_environment())
    # Ctrl+C reaches every process of a terminal; the keeper decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    redirect_output(log)
    # The lock of progress bars would be a semaphore of the system, which nobody gives back where this process is killed.
    import_module("tqdm").tqdm.set_lock(threading.RLock())
    worker = Worker(pipe)
    for needed in (worker.listen, worker.beat):
        threading.Thread(target=exit_when_done, args=(needed,), name=needed.__name__, daemon=True).start()
    with pausing_collector():
        from app.engine.session.no_pickles import refuse_pickles
        from app.engine.session.session import Session

    refuse_pickles()
    session = Session(home, pretended, worker.dial)
    worker.report(Ready(session.hardware))
    worker.work(session, list_ahead(home))
    session.free()
