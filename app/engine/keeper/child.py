"""Start the engine's process with a pipe and a log, send it orders, read its reports, and find out why it died."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from app.base.paths import Home
from app.compat.machine.meter import Reading
from app.engine.jobs.messages import Order, Quit, Report
from app.engine.keeper import worker
from app.engine.keeper.recovery import Death, diagnose
from app.engine.models import hub_token

LOG_BYTES = 1 << 20
"""A log that is larger is put aside at the next start."""
LAST_WORDS_BYTES = 8192
"""Why an engine died is looked for in so much of its log's end."""


class Child:
    """One engine process. Its output is appended to engine.log."""

    def __init__(self, home: Home, pretended: str) -> None:
        self._log = home.logs / "engine.log"
        if self._log.exists() and self._log.stat().st_size > LOG_BYTES:
            with contextlib.suppress(OSError):  # Windows: another Hearth's engine has it open. It grows until the next start.
                self._log.replace(self._log.with_suffix(".1.log"))
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        hub_token.take_from_environment()
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=worker.main, args=(theirs, home, pretended, self._log), name="hearth-engine", daemon=True)
        self._process.start()
        theirs.close()
        self.beat_s = time.monotonic()
        """It was last known to be alive then."""

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def sources(self) -> tuple[Connection | int, Connection | int]:
        """Return what to wait for: a message, or the end of the process."""
        return self._pipe, self._process.sentinel

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def send(self, order: Order) -> None:
        """Send a message. A broken pipe means a dying engine; important messages are sent again to the next one."""
        with contextlib.suppress(OSError, ValueError):
            self._pipe.send(order)

    def receive(self) -> Iterator[Report]:
        """Return all messages so far. A broken pipe means a dying engine, which its sentinel reports next."""
        with contextlib.suppress(EOFError, OSError):
            while self._pipe.poll():
                yield self._pipe.recv()

    def reap(self, wedged: bool, last: Reading) -> Death:
        """End the process, dead or not; explain why it died."""
        self._process.kill()
        self._process.join()
        self._pipe.close()
        return diagnose(self._process.exitcode, self._read_log_end(), wedged, last)

    def end(self, patience_s: float) -> None:
        self.send(Quit())
        self._process.join(timeout=patience_s)
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _read_log_end(self) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(max(self._log_start, self._log.stat().st_size - LAST_WORDS_BYTES))
                return file.read().decode("utf-8", errors="replace")
        except OSError:  # It wrote nothing, or the log was deleted.
            return ""
