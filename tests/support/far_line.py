"""A line to a port of this computer as if it were far: every piece of it is late, some are lost and sent again, and it can be cut."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

AGAIN_S = 0.3
"""TCP sends again after it what was lost; what follows waits for it."""


class FarLine:
    def __init__(self, target: int, delay_s: float, lost: float) -> None:
        """`delay_s`: of each way. `lost`: the share of pieces that are sent twice."""
        self._target, self._delay_s, self._lost = target, delay_s, lost
        self._draw = random.Random(1)
        self._loop = asyncio.new_event_loop()
        self._whole, self._pumps = True, set[asyncio.Task[None]]()
        self.port, self._ready = 0, threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        self._ready.wait()

    def cut(self) -> None:
        """End what is open, and let nothing more through."""
        self._whole = False
        self._loop.call_soon_threadsafe(self._drop)

    def mend(self) -> None:
        self._whole = True

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._closing = asyncio.Event()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._closing.wait()
        server.close()
        pumps = [*self._pumps]
        self._drop()
        await asyncio.gather(*pumps, return_exceptions=True)

    def _drop(self) -> None:
        for each in [*self._pumps]:
            each.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.close()
            return
        there = await asyncio.open_connection("127.0.0.1", self._target)
        for source, target in ((reader, there[1]), (there[0], writer)):
            pump = asyncio.ensure_future(self._pump(source, target))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        on_way = asyncio.Queue[tuple[float, bytes]]()

        async def arrive() -> None:
            while True:
                due_s, content = await on_way.get()
                await asyncio.sleep(max(0.0, due_s - self._loop.time()))
                if not content:
                    return
                target.write(content)
                await target.drain()

        arriving = asyncio.ensure_future(arrive())
        try:
            with suppress(OSError):
                while True:
                    content = await source.read(1 << 16)
                    late_s = self._delay_s + (AGAIN_S if self._draw.random() < self._lost else 0.0)
                    on_way.put_nowait((self._loop.time() + late_s, content))
                    if not content:
                        await arriving
                        break
        finally:
            arriving.cancel()
            target.close()


@contextmanager
def far_line(target: int, delay_s: float = 0.1, lost: float = 0.02) -> Iterator[FarLine]:
    line = FarLine(target, delay_s, lost)
    try:
        yield line
    finally:
        line.close()
