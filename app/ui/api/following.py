"""Wait for jobs in asyncio, without a thread, and do the short work of other programs in threads of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from app.engine.jobs.events import Event
from app.engine.jobs.progress import Progress
from app.engine.process.keeper import Keeper

P = ParamSpec("P")
T = TypeVar("T")
WORKERS: Final = ThreadPoolExecutor(4, "programs")
"""The page's own threads stay free, however many programs call."""


async def work(run: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run something short that blocks, such as a write to the journal, in one of the programs' threads."""
    return await asyncio.get_running_loop().run_in_executor(WORKERS, lambda: run(*given, **named))


async def follow(keeper: Keeper, job: str) -> AsyncGenerator[Progress]:
    """Yield a job's progress now and at each change, the last one with its end. A slow reader misses what lies between,
    so nothing piles up for it."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(changed.set)

    with keeper.watch(job, wake):
        while True:
            changed.clear()
            progress = keeper.get_progress(job)
            yield progress
            if progress.end is not None:
                return
            await changed.wait()


def news(before: Progress, now: Progress) -> list[Event]:
    """Return what has happened between two states of one job."""
    known = {id(event) for event in before.replay()}
    return [event for event in now.replay() if id(event) not in known]
