"""What the keeper's process and a machines process say to each other: JSON over a pipe, each message with its `op`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

Message = dict[str, Any]


class Pipe:
    """One end of it."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._sending = connection, threading.Lock()

    def tell(self, op: str, **values: Any) -> None:
        """Any thread may call. What a dying process misses, the next one is told."""
        with self._sending, contextlib.suppress(OSError, ValueError):
            self._connection.send_bytes(json.dumps({"op": op, **values}).encode())

    def receive(self) -> Iterator[Message]:
        """Yield what the other side says until it is gone."""
        with contextlib.suppress(EOFError, OSError), self._connection:
            while True:
                yield json.loads(self._connection.recv_bytes())

    def listen(self, hear: Callable[[Message], None]) -> None:
        """Have the running event loop hear what the keeper says. When that is gone, so is all that this process works for."""
        loop = asyncio.get_running_loop()

        def receive() -> None:
            for message in self.receive():
                loop.call_soon_threadsafe(hear, message)
            os._exit(0)

        threading.Thread(target=receive, name="machines-pipe", daemon=True).start()
