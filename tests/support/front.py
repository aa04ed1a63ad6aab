"""The side of a share server that the world sees: finds by the Host what is shared, and hands requests and answers on as Go's reverse proxy does in frps.
The Host stays as it came, where it came from is added, connections to what is shared are used again, by whoever comes next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import h11

HOP = {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection"}
"""Headers that are for the next machine alone."""
NOT_FOUND = b"<h1>The page you requested was not found.</h1>"


@dataclass(frozen=True, slots=True)
class Line:
    """One connection to what is shared."""

    read: Callable[[], Awaitable[bytes]]
    write: Callable[[bytes], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    over: Callable[[], bool]


class Front:
    def __init__(self, route: Callable[[str], Awaitable[Line | None]]) -> None:
        self._route = route
        self._idle: dict[str, list[Line]] = {}

    async def visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitor = h11.Connection(h11.SERVER)

        async def read() -> bytes:
            return await reader.read(64 << 10)

        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            while isinstance(request := await event(visitor, read), h11.Request):
                if not await self._handed_on(request, visitor, read, write, writer.get_extra_info("peername")[0]):
                    break
                visitor.start_next_cycle()
        except (OSError, asyncio.IncompleteReadError, h11.ProtocolError):
            pass  # Whoever it was is gone; nobody is left who could be told.
        finally:
            writer.close()

    async def _handed_on(self, request: h11.Request, visitor: h11.Connection, read: Any, write: Any, source: str) -> bool:  # fmt: skip
        """Whether the connections are whole, so that another request may follow."""
        host = next(value for name, value in request.headers if name == b"host").decode().partition(":")[0]
        line = await self._line(host)
        if line is None:
            await write(visitor.send(h11.Response(status_code=404, headers=[("Content-Length", str(len(NOT_FOUND)))])))
            await write((visitor.send(h11.Data(NOT_FOUND)) or b"") + (visitor.send(h11.EndOfMessage()) or b""))
            return False
        shared = h11.Connection(h11.CLIENT)
        added = [*request.headers, (b"X-Forwarded-For", source.encode()), (b"X-Forwarded-Proto", b"https")]
        asked = h11.Request(method=request.method, target=request.target, headers=passed(added))
        await line.write(shared.send(asked) or b"")
        body = asyncio.create_task(pumped(visitor, read, shared, line.write))
        try:
            answer = await event(shared, line.read)
            if not isinstance(answer, h11.Response):
                return False
            await write(visitor.send(h11.Response(status_code=answer.status_code, headers=passed(answer.headers), reason=answer.reason)) or b"")  # fmt: skip
            await pumped(shared, line.read, visitor, write)
        finally:
            if not body.done():
                body.cancel()
            await asyncio.gather(body, return_exceptions=True)
            if {shared.our_state, shared.their_state} == {h11.DONE}:
                self._idle.setdefault(host, []).append(line)
            else:
                await line.close()
        return {visitor.our_state, visitor.their_state} == {h11.DONE}

    async def _line(self, host: str) -> Line | None:
        idle = self._idle.get(host, [])
        while idle:
            if not (line := idle.pop()).over():
                return line
        return await self._route(host)


def passed(headers: Any) -> list[tuple[bytes, bytes]]:
    """A body without a length goes on in chunks, which h11 says by itself."""
    kept = [(name, value) for name, value in headers if name.lower() not in HOP]
    chunked = any(name.lower() == b"transfer-encoding" for name, _ in headers)
    return [*kept, (b"Transfer-Encoding", b"chunked")] if chunked else kept


async def event(connection: h11.Connection, read: Callable[[], Awaitable[bytes]]) -> Any:
    """The next one, but for what is only information."""
    while True:
        found = connection.next_event()
        if found is h11.NEED_DATA:
            connection.receive_data(await read())
        elif not isinstance(found, h11.InformationalResponse):
            return found


async def pumped(source: h11.Connection, read: Any, target: h11.Connection, write: Any) -> None:
    """A whole body, each piece as soon as it is there."""
    while isinstance(found := await event(source, read), h11.Data):
        await write(target.send(h11.Data(found.data)) or b"")
    if not isinstance(found, h11.EndOfMessage):
        raise ConnectionResetError("it broke off")
    await write(target.send(h11.EndOfMessage()) or b"")
