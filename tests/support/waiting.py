"""Wait for a condition; a keeper whose jobs wait for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.engine.process.keeper import Keeper


class Idle(Keeper):
    """Starts no engine: what is asked for waits, so that queue and limits hold still. Guards do not care what an engine makes."""

    def _spawn(self) -> None:
        pass


def until(condition: Callable[[], bool], seconds: float = 180) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(0.05)
