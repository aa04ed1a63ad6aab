"""What a person may change while a request runs: Stop, and the chunk size."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from app.compat.planning.types import AUTO, Chunk


@dataclass(slots=True)
class Control:
    """Shared between the thread that listens and the one that runs."""

    stopping: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        self.stopping.set()

    @property
    def stopped(self) -> bool:
        return self.stopping.is_set()


@dataclass(slots=True)
class Dial:
    """The chunk size that is asked for now: its one home in the engine's process, read at every call of attention."""

    chunk: Chunk = AUTO
