"""Start engines one after the other: when the next may start, when one has hung, when so many failed to start that starting is given up for a while."""

from __future__ import annotations

import threading
import time

from app.compat.planning.types import AUTO, Chunk
from app.engine.jobs.messages import Order, SetChunk
from app.engine.process.child import Child
from app.paths import Home

STARTS = 3
"""An engine that dies this often before it is ready is started again only now and then."""
AGAIN_S, AGAIN_MOST_S = 30.0, 600.0
"""Wait before the next start then; it doubles each time up to the second figure."""
NO_BEAT_S = 20.0
"""Beats come every second, also from within a long kernel; after this long without one, the engine hangs."""


class EngineLife:
    """At most one engine at a time. Any thread may send; the keeper's thread starts and loses engines."""

    def __init__(self, home: Home, pretended: str, no_beat_s: float) -> None:
        self._home, self._pretended, self.no_beat_s = home, pretended, no_beat_s
        self._lock = threading.RLock()
        self._failed_starts, self._start_at_s = 0, 0.0
        self.child: Child | None = None
        self.chunk: Chunk = AUTO
        """The chunk size in force: its one home in this process, handed to every engine that is started."""

    @property
    def gave_up(self) -> bool:
        return self._failed_starts >= STARTS

    def start_if_due(self) -> None:
        if self.child is None and time.monotonic() >= self._start_at_s:
            with self._lock:
                self.child = Child(self._home, self._pretended)
                self.send(SetChunk(self.chunk))

    def send(self, order: Order) -> None:
        with self._lock:
            if self.child is not None:
                self.child.send(order)

    def set_chunk(self, chunk: Chunk) -> None:
        """Apply to a run in progress, and to those to come."""
        with self._lock:
            self.chunk = chunk
            self.send(SetChunk(chunk))

    def mark_ready(self) -> None:
        self._failed_starts, self._start_at_s = 0, 0.0

    def note_beat(self) -> None:
        if self.child is not None:
            self.child.beat_s = time.monotonic()

    def has_hung(self) -> bool:
        return self.child is not None and time.monotonic() - self.child.beat_s > self.no_beat_s

    def retry_now(self) -> None:
        self._start_at_s = 0.0

    def count_failed_start(self) -> None:
        """Start again at once the first times, then after ever longer waits."""
        self._failed_starts += 1
        more = self._failed_starts - STARTS
        self._start_at_s = time.monotonic() + min(AGAIN_MOST_S, AGAIN_S * 2**more) if more >= 0 else 0.0
