"""Start a machines process beside the keeper's, talk JSON with it, and notice its end. Imports no dask itself."""

from __future__ import annotations

import contextlib
import json
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

MAIN: Final = "app.machines.cluster.main_process"
EXISTING: Final = "app.machines.cluster.existing_process"
HELPER: Final = "app.machines.cluster.helper_process"
LOG_BYTES: Final = 1 << 20
LOOKED_AT_LOG_S: Final = 10.0
Message = dict[str, Any]
_log = logging.getLogger("hearth.machines")


class SideProcess:
    """One machines process, from its start to its end. Its output is appended to a log."""

    def __init__(self, module: str, arguments: Message, log: Path, hear: Callable[[Message], None], ended: Callable[[], None]) -> None:
        """`hear` and `ended` are called in a thread of its own."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._sending = threading.Lock()
        self._process = context.Process(target=run, args=(theirs, module, arguments, log), name="hearth-machines", daemon=True)
        self._process.start()
        theirs.close()
        self._thread = threading.Thread(target=self._listen, args=(hear, ended), name="machines", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def tell(self, op: str, **values: Any) -> None:
        """Any thread may call. What a dying process misses, the next one is told."""
        with self._sending, contextlib.suppress(OSError, ValueError):
            self._pipe.send_bytes(json.dumps({"op": op, **values}).encode())

    def close(self, patience_s: float = 3.0) -> None:
        self.tell("close")
        self._process.join(patience_s)
        self._process.kill()
        self._process.join()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _listen(self, hear: Callable[[Message], None], ended: Callable[[], None]) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = json.loads(self._pipe.recv_bytes())
                try:
                    hear(message)
                except Exception:  # Whatever it is: the next message is heard all the same.
                    _log.exception("%s", message["op"])
        self._process.join()
        self._pipe.close()
        ended()


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
