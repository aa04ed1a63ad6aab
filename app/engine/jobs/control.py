"""What a user may change during a run: stop it, and set the chunk size."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from app.compat.planning.types import AUTO, Chunk


@dataclass(slots=True)
class Control:
    """Shared between the listening thread and the running one."""

    stopping: threading.Event = field(default_factory=threading.Event)
    asked_s: float | None = None
    """Stop was pressed then; it is None before, and once the run has seen it: what it does from then on is to keep what it has."""

    def stop(self) -> None:
        if not self.stopping.is_set():
            self.asked_s = time.monotonic()
            self.stopping.set()

    @property
    def stopped(self) -> bool:
        if self.stopping.is_set():
            self.asked_s = None
        return self.stopping.is_set()


@dataclass(slots=True)
class Dial:
    """Hold the chunk size asked for. The window's process has one, sent to the engine as it changes; the engine's is read at every
    attention call."""

    chunk: Chunk = AUTO
