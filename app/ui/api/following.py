"""Wait for jobs in asyncio, without a thread, and do the short work of other programs in threads of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

from starlette.requests import ClientDisconnect, Request

from app.engine.jobs.events import Event
from app.engine.jobs.progress import Progress
from app.engine.keeper.keeper import Keeper

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

    def wake(event: Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(changed.set)

    with keeper.board.watch(job, wake):
        while True:
            changed.clear()
            progress = keeper.get_progress(job)
            yield progress
            if progress.end is not None:
                return
            await changed.wait()


async def wait_for(keeper: Keeper, job: str, enough: Callable[[Progress], bool]) -> Progress:
    """Return a job's progress once there is enough of it, or its end."""
    async with contextlib.aclosing(follow(keeper, job)) as following:
        progress = await anext(following)
        while progress.end is None and not enough(progress):
            progress = await anext(following)
    return progress


async def stay(client: Request, wait: Coroutine[Any, Any, T]) -> T:
    """Wait for as long as the client of a request, whose body has been read, does; raise ClientDisconnect once it has gone."""

    async def leave() -> None:
        while (await client.receive())["type"] != "http.disconnect":
            pass

    waiting, leaving = asyncio.ensure_future(wait), asyncio.ensure_future(leave())
    try:
        await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise ClientDisconnect
        return waiting.result()
    finally:
        waiting.cancel()
        leaving.cancel()


def news(before: Progress, now: Progress) -> list[Event]:
    """Return what has happened between two states of one job."""
    known = {id(event) for event in before.replay()}
    return [event for event in now.replay() if id(event) not in known]
