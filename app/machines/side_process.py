"""A machines process beside the keeper's, started again whenever it ends. Imports no dask itself."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from app.engine.keeper.worker import redirect_output
from app.launcher import slot_lock
from app.machines.pipe import Message, Pipe

MAIN: Final = "app.machines.cluster.main_process"
EXISTING: Final = "app.machines.cluster.existing_process"
HELPER: Final = "app.machines.cluster.helper_process"
LOG_BYTES: Final = 1 << 20
LOOKED_AT_LOG_S: Final = 10.0
AGAIN_S: Final = 1.0
"""A machines process that ended is started again after this wait."""
_log = logging.getLogger("hearth.machines")


class SideProcess:
    """One machines process after another. Their output is appended to a log."""

    def __init__(
        self,
        module: str,
        arguments: Callable[[], Message],
        log: Path,
        hear: Callable[[Message], None],
        ended: Callable[[], float | None] = lambda: AGAIN_S,
        again: Callable[[SideProcess], None] = lambda side: None,
    ) -> None:
        """`arguments` are asked for at each start. The others are called in a thread of its own: `hear` with each message, `ended` when a
        process has, which says after what wait another one is started, or None for never; `again` when that was. Raise OSError if the system
        starts no process now; later that is tried again."""
        self._module, self._arguments, self._output = module, arguments, log
        self._starting, self._closing = threading.Lock(), threading.Event()
        self._start()
        self._thread = threading.Thread(target=self._run, args=(hear, ended, again), name="machines", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def tell(self, op: str, **values: Any) -> None:
        """Any thread may call."""
        self._pipe.tell(op, **values)

    def close(self, patience_s: float = 3.0) -> None:
        with self._starting:
            self._closing.set()
        self.tell("close")
        self._process.join(patience_s)
        self._process.kill()
        self._process.join()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        with theirs:
            given = (theirs, self._module, self._arguments(), self._output)
            process = context.Process(target=run, args=given, name="hearth-machines", daemon=True)
            process.start()
        self._pipe, self._process = Pipe(ours), process

    def _run(self, hear: Callable[[Message], None], ended: Callable[[], float | None], again: Callable[[SideProcess], None]) -> None:
        while not self._closing.is_set():
            for message in self._pipe.receive():
                try:
                    hear(message)
                except Exception:  # Whatever it is: the next message is heard all the same.
                    _log.exception("%s", message["op"])
            self._process.join()
            if self._start_again(ended()):
                again(self)

    def _start_again(self, wait_s: float | None) -> bool:
        while not self._closing.wait(wait_s):
            with self._starting, contextlib.suppress(OSError):  # the system starts no process now: tried again
                if not self._closing.is_set():
                    self._start()
                    return True
        return False


def bound_log(log: Path, wait_s: float = LOOKED_AT_LOG_S) -> None:
    """Empty the log whenever it is too long: any stranger in the network can have a line written by connecting."""
    while True:
        with contextlib.suppress(OSError):
            if log.stat().st_size > LOG_BYTES:
                os.truncate(log, 0)  # it is always appended to
        time.sleep(wait_s)


def run(connection: Connection, module: str, arguments: Message, log: Path) -> None:
    """Start the process, which alone imports dask."""
    slot_lock.hold()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    redirect_output(log)
    threading.Thread(target=bound_log, args=(log,), name="log", daemon=True).start()
    from app.machines.cluster import dask_setup

    dask_setup.serve(module, connection, arguments)
