"""The server's side of yamux, which carries many streams over one connection; as far as frpc uses it: only the client opens streams."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any

HEADER = struct.Struct(">BBHII")
"""Version, kind, flags, stream, length."""
DATA, WINDOW, PING, AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
WINDOW_BYTES = 256 << 10
"""So much may be under way in a stream before its reader makes room."""
PIECE_BYTES = 32 << 10


class Stream:
    def __init__(self, session: Session, id_: int) -> None:
        self._session, self._id = session, id_
        self._incoming = asyncio.StreamReader()
        self._room, self._changed = WINDOW_BYTES, asyncio.Event()
        self.over = False
        """The other side sends nothing more."""

    async def read(self) -> bytes:
        """What has come; nothing at the end."""
        return self._granted(await self._incoming.read(PIECE_BYTES))

    async def exactly(self, count: int) -> bytes:
        return self._granted(await self._incoming.readexactly(count))

    async def write(self, data: bytes) -> None:
        while data:
            while self._room == 0:
                self._changed.clear()
                await self._changed.wait()
            if self.over:
                raise ConnectionResetError("the client closed this stream")
            piece, data = data[: min(self._room, PIECE_BYTES)], data[min(self._room, PIECE_BYTES) :]
            self._room -= len(piece)
            await self._session.send(DATA, 0, self._id, len(piece), piece)

    async def close(self) -> None:
        self._session.put(WINDOW, FIN, self._id, 0)

    def come(self, data: bytes) -> None:
        self._incoming.feed_data(data)

    def make_room(self, count: int) -> None:
        self._room += count
        self._changed.set()

    def end(self) -> None:
        self.over = True
        self._incoming.feed_eof()
        self.make_room(1)  # Who waits for room learns that it is in vain.

    def _granted(self, data: bytes) -> bytes:
        if data and not self.over:
            self._session.put(WINDOW, 0, self._id, len(data))
        return data


class Session:
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        opened: Callable[[Stream], Coroutine[Any, Any, None]],
    ) -> None:
        self._reader, self._writer, self._opened = reader, writer, opened
        self._streams: dict[int, Stream] = {}

    async def run(self) -> None:
        """Until the connection ends; what was opened on it ends with it."""
        async with asyncio.TaskGroup() as tasks:
            try:
                while True:
                    await self._frame(tasks)
            except (OSError, asyncio.IncompleteReadError):
                for each in self._streams.values():
                    each.end()

    async def _frame(self, tasks: asyncio.TaskGroup) -> None:
        _, kind, flags, id_, length = HEADER.unpack(await self._reader.readexactly(HEADER.size))
        if kind == PING and flags & SYN:
            await self.send(PING, ACK, 0, length)
        if kind == AWAY:
            raise ConnectionResetError("the client goes away")
        if kind in (PING, AWAY):
            return
        data = await self._reader.readexactly(length) if kind == DATA else b""
        if flags & SYN:
            self._streams[id_] = Stream(self, id_)
            await self.send(WINDOW, ACK, id_, 0)
            tasks.create_task(self._opened(self._streams[id_]))
        stream = self._streams[id_]
        if data:
            stream.come(data)
        if kind == WINDOW:
            stream.make_room(length)
        if flags & (FIN | RST):
            stream.end()

    def put(self, kind: int, flags: int, id_: int, length: int, data: bytes = b"") -> None:
        self._writer.write(HEADER.pack(0, kind, flags, id_, length) + data)

    async def send(self, kind: int, flags: int, id_: int, length: int, data: bytes = b"") -> None:
        self.put(kind, flags, id_, length, data)
        await self._writer.drain()
