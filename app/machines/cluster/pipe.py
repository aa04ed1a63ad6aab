"""JSON over a pipe between the keeper's process and the machines process; received in a thread, handled in the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

Message = dict[str, Any]


FOREIGN_BYTES: Final = 1 << 20
"""The most bytes that another machine says at once: previews take 48 KB, a list of its models 100."""


def take_foreign(value: Any) -> Any:
    """Return what another machine said as JSON can hold it; None if it cannot, or is too much."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= FOREIGN_BYTES else None


class Listener(Protocol):
    """Who is told what happens: the keeper's process, or a pretended engine."""

    def tell(self, op: str, **values: Any) -> None: ...


class Pipe:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def tell(self, op: str, **values: Any) -> None:
        """Any thread may call. If the other side is gone, `listen` ends this process."""
        with self._sending, contextlib.suppress(OSError, ValueError):
            self._connection.send_bytes(json.dumps({"op": op, **values}).encode())

    def listen(self, loop: asyncio.AbstractEventLoop, hear: Callable[[Message], None]) -> None:
        def receive() -> None:
            while True:
                try:
                    message = json.loads(self._connection.recv_bytes())
                except (EOFError, OSError):
                    os._exit(0)  # the keeper is gone, and with it all that this process works for
                loop.call_soon_threadsafe(hear, message)

        threading.Thread(target=receive, name="machines-pipe", daemon=True).start()
