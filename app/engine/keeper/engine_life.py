"""Start one engine after another: decide when the next may start, when one hangs, and when to pause after repeated failures."""

from __future__ import annotations

import math
import threading
import time

from app.base.paths import Home
from app.engine.jobs.control import Dial
from app.engine.jobs.messages import Order
from app.engine.keeper.child import Child

STARTS = 3
"""After this many failed starts in a row, the waits between starts grow longer and longer."""
AGAIN_S, AGAIN_MOST_S = 30.0, 600.0
"""The next start waits so long, and twice as long each time up to the second figure."""
NO_BEAT_S = 20.0
"""The engine beats every second, even within a long kernel; after this long without a beat, it hangs."""


class EngineLife:
    """Hold at most one engine. Any thread may send; only the keeper's thread starts and loses engines."""

    def __init__(self, home: Home, pretended: str = "", no_beat_s: float = NO_BEAT_S) -> None:
        self._home, self._pretended, self.no_beat_s = home, pretended, no_beat_s
        self._lock = threading.RLock()
        self._failed_starts = 0
        self.start_at_s = 0.0
        """The next engine does not start before then."""
        self._asked_s, self._awake_s = math.inf, -math.inf
        """`has_hung` was asked last then; the computer woke last then."""
        self.child: Child | None = None
        self.dial = Dial()
        """This process has no other; it is sent to every engine that starts."""

    @property
    def gave_up(self) -> bool:
        return self._failed_starts >= STARTS

    def start_if_due(self) -> None:
        if self.child is None and time.monotonic() >= self.start_at_s:
            with self._lock:
                self.child = Child(self._home, self._pretended)
                self.send(self.dial)

    def send(self, order: Order) -> None:
        with self._lock:
            if self.child is not None:
                self.child.send(order)

    def mark_ready(self) -> None:
        self._failed_starts, self.start_at_s = 0, 0.0

    def note_beat(self) -> None:
        if self.child is not None:
            self.child.beat_s = time.monotonic()

    def has_hung(self) -> bool:
        """Tell whether the engine was silent for too long. Asked all the time: where nobody asked for half as long, the whole
        computer slept, and the engine has its time again."""
        now_s = time.monotonic()
        if now_s - self._asked_s > self.no_beat_s / 2:
            self._awake_s = now_s
        self._asked_s = now_s
        return self.child is not None and now_s - max(self.child.beat_s, self._awake_s) > self.no_beat_s

    def retry_now(self) -> None:
        self.start_at_s = 0.0

    def count_failed_start(self) -> None:
        """Restart at once the first times, then after ever longer waits."""
        self._failed_starts += 1
        more = self._failed_starts - STARTS
        self.start_at_s = time.monotonic() + min(AGAIN_MOST_S, AGAIN_S * 2**more) if more >= 0 else 0.0
