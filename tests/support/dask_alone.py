"""Dask alone as the one who decides, in real time: plain workers in this process, whose tasks only sleep. `python -m tests.support.dask_alone 50 dies`."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from functools import partial
from itertools import count

import dask
from distributed import Client, Scheduler, Worker, as_completed, get_worker

PIECE_S, PER_HELPER, SLOW, DIES_S = 0.5, 10, 0.1, 1.0
"""The times are a sixtieth of those of placing.py."""
SETTINGS = {
    "distributed.scheduler.allowed-failures": 20,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
}
SPEEDS: dict[object, float] = {}
"""Each worker has one, by its name."""
NAMES = count()


def work(place: int) -> int:
    time.sleep(PIECE_S / SPEEDS[get_worker().name])
    return place


class Trial:
    def __init__(self, scheduler: Scheduler, helpers: int) -> None:
        self.scheduler, self.helpers = scheduler, helpers
        self.workers: dict[int, Worker] = {}

    async def start(self, at: int) -> None:
        """The first is slow, and the first of each four has the model."""
        name = f"worker-{next(NAMES)}"
        SPEEDS[name] = SLOW if at == 0 else 1.0
        options = {"name": name, "resources": {"model": 1} if at < max(2, self.helpers // 4) else {}, "memory_limit": 0, "dashboard": False}
        self.workers[at] = await Worker(self.scheduler.address, nthreads=1, **options)

    def begin(self, at: int) -> None:
        self.starting = asyncio.ensure_future(self.start(at))

    async def kill_now_and_then(self) -> None:
        draw = random.Random(1)
        while True:
            await asyncio.sleep(DIES_S)
            at = draw.randrange(1, self.helpers)
            if (worker := self.workers.pop(at, None)) is not None:
                await self.scheduler.remove_worker(worker.address, stimulus_id=f"dead-{at}-{time.time()}", close=False)
                asyncio.get_running_loop().call_later(DIES_S / 2, partial(self.begin, at))

    async def run(self, client: Client, case: str) -> float:
        """Return the time that a case takes, divided by the least possible; results are fetched as they come."""
        pieces = {"few": self.helpers, "one": 1}.get(case, PER_HELPER * self.helpers)
        options = {"retries": 3, "pure": False}
        began_s = time.monotonic()
        futures = client.map(work, range(pieces), **options)
        if case == "model":
            able = PER_HELPER * max(2, self.helpers // 4)
            futures += client.map(work, range(pieces, pieces + able), resources={"model": 1}, **options)
        killing = asyncio.ensure_future(self.kill_now_and_then()) if case == "dies" else None
        async for future, _ in as_completed(futures, with_results=True, loop=client.loop):
            future.release()
        took_s = time.monotonic() - began_s
        if killing is not None:
            killing.cancel()
        return took_s / max(len(futures) * PIECE_S / (self.helpers - 1 + SLOW), PIECE_S)


async def measure(helpers: int, case: str) -> None:
    dask.config.set(SETTINGS)
    scheduler = await Scheduler(protocol="inproc", port=0, dashboard=False)
    trial = Trial(scheduler, helpers)
    await asyncio.gather(*(trial.start(at) for at in range(helpers)))
    client = await Client(scheduler.address, asynchronous=True)
    print(f"{case}, {helpers} helpers: {await trial.run(client, case):.2f}", flush=True)
    os._exit(0)  # closing hundreds of workers takes minutes


if __name__ == "__main__":
    from tests.support import dask_alone  # whose functions travel by name, and not as copies with what they know now

    asyncio.run(dask_alone.measure(int(sys.argv[1]), sys.argv[2]))
