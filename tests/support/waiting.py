"""Wait for a condition, for the turns of a loop, for whoever waits for a lock; a keeper whose jobs wait for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from app.base.paths import Home
from app.engine.keeper.engine_life import EngineLife
from app.engine.keeper.engine_loop import EngineLoop
from app.engine.keeper.keeper import Keeper

WAIT_S = 45
"""A thing that is there already, or comes at once, is waited for so long. Both cores of a small machine may be busy, which makes a second
of it ten."""
LOADING_S = 120
"""An engine may take so long for what it does first: it starts, imports torch and loads a model."""


class NoEngine(EngineLife):
    def start_if_due(self) -> None:
        pass


class Idle(Keeper):
    """Starts no engine: what is asked for waits, so that queue and limits hold still. Guards do not care what an engine makes."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, engine=NoEngine(home))


def until(condition: Callable[..., bool], seconds: float = WAIT_S) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(0.05)


def pass_turns(count: int = 3, of: object = EngineLoop, turn: str = "_take_turn") -> None:
    """Wait until a loop, a keeper's where none is named, has looked so many times more at what there is to do: what it has not done by then it
    leaves. `turn`: what it calls each time."""
    turns, real = list[object](), getattr(of, turn)

    def counted(*given: object) -> Any:
        try:
            return real(*given)
        finally:
            turns.append(given)

    with patch.object(of, turn, counted):
        until(lambda: len(turns) > count)  # the first may have begun before


class WatchedLock:
    """A lock in another one's place, which tells that somebody waits for it."""

    def __init__(self, lock: Any) -> None:
        self._lock, self.is_awaited = lock, threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.is_awaited.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def let_come_between(self, thread: threading.Thread) -> None:
        """Start a thread; return once it waits for the lock, or has ended because nothing holds it back."""
        thread.start()
        until(lambda: self.is_awaited.is_set() or not thread.is_alive())
