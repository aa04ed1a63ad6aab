"""What a person may change while a request runs: Stop, and the chunk size. The engine looks at it at every step."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Control:
    """Shared between the thread that listens and the one that runs. `chunk` is a number of queries, None is automatic."""

    stopping: threading.Event = field(default_factory=threading.Event)
    chunk: int | None = None

    def stop(self) -> None:
        self.stopping.set()

    @property
    def stopped(self) -> bool:
        return self.stopping.is_set()
