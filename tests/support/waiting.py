"""Wait for a condition; a keeper whose jobs wait for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
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


def pass_turns(count: int = 3) -> None:
    """Wait until a keeper has looked so many times more at what there is to do: what it has not done by then it leaves."""
    turns, real = list[EngineLoop](), EngineLoop._take_turn

    def counted(loop: EngineLoop) -> None:
        try:
            real(loop)
        finally:
            turns.append(loop)

    with patch.object(EngineLoop, "_take_turn", counted):
        until(lambda: len(turns) > count)  # the first may have begun before
