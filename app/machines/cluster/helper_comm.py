"""What the main machine reads from helpers: plain values of bounded size over a few connections each, no pickles, nothing from strangers."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import msgpack
from distributed.comm import CommClosedError, tcp
from distributed.comm.registry import backends

from app.machines.cluster.dask_setup import HANDSHAKE_S
from app.machines.cluster.roles import REMOVED, find_machine
from app.machines.joining.certificates import MAIN_NAME

HELPER_BYTES: Final = 4 << 20
"""The most bytes of one message: a block of a file takes one MiB, what a helper says of itself at most another."""
CONTAINERS_MOST: Final = 20_000
LENGTH_MOST: Final = 4096
"""The most entries of one list or table. The parser sets memory aside for as many as are announced, at each of its 1,024 depths."""
FRAMES_MOST: Final = 256
UNREAD_BYTES: Final = 32 << 20
"""That wait to be sent to a machine; then it reads nothing, and dask would keep whatever it asks for."""
CONNECTIONS_MOST: Final = 32
"""The most connections of one machine; dask's worker with two tasks has a handful."""
_LENGTH: Final = struct.Struct("Q")


def parse_plain(content: memoryview) -> Any:
    """Parse dask's message without what is pickled or packed in it; raise an error for what is too much or no message. Takes at most some
    twenty times the memory of its bytes."""
    (count,) = _LENGTH.unpack_from(content)
    if not 0 < count <= FRAMES_MOST:
        raise ValueError(f"{count} frames")
    lengths = struct.unpack_from(f"{count}Q", content, _LENGTH.size)
    begins = _LENGTH.size * (1 + count)
    if begins + sum(lengths) != len(content):
        raise ValueError("frames of another length")
    seen = 0

    def count_container(value: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > CONTAINERS_MOST:
            raise ValueError("too many values")
        return value

    def read_table(table: dict[Any, Any]) -> Any:
        if "__Pickled__" in table or "__Enum__" in table:
            raise ValueError("a pickle or a name of Python's")
        if "__Serialized__" in table:  # the exception of a task that failed: nobody reads it
            return ""
        return count_container(set(table["as-list"]) if "__Set__" in table else table)

    return msgpack.loads(
        content[begins : begins + lengths[0]],
        object_hook=read_table,
        list_hook=count_container,
        use_list=False,
        strict_map_key=False,
        max_array_len=LENGTH_MOST,
        max_map_len=LENGTH_MOST,
        max_ext_len=0,
    )


def install(is_known: Callable[[str], bool]) -> None:
    """Listen like this in this process from now on. `is_known`: whether the machine with an id may come."""

    class HelperComm(tcp.TLS):
        @property
        def machine(self) -> str:
            return find_machine(self.extra_info.get("peercert"))

        async def write(self, msg: Any, serializers: Any = None, on_error: str = "message") -> Any:
            if self.machine != MAIN_NAME and not self.closed() and len(self.stream._write_buffer) > UNREAD_BYTES:
                self.abort()
                raise CommClosedError("it reads nothing")
            return await super().write(msg, serializers, on_error)

        async def read(self, deserializers: Any = None) -> Any:
            if self.machine == MAIN_NAME:  # this machine's own client
                return await super().read(deserializers)
            try:
                (length,) = _LENGTH.unpack(await self.stream.read_bytes(_LENGTH.size))
                if length > HELPER_BYTES:
                    raise ValueError(f"{length} bytes")
                content = await self.stream.read_bytes(length)
                if not is_known(self.machine):
                    raise PermissionError
                return parse_plain(memoryview(content))
            except Exception as fault:  # whatever it is, this machine reads nothing more of it
                self.abort()
                raise CommClosedError(f"{type(fault).__name__} in a helper's message") from None
            except BaseException:
                self.abort()
                raise

    opened: defaultdict[str, list[HelperComm]] = defaultdict(list)

    class Listener(tcp.TLSListener):
        comm_class = HelperComm

        async def on_connection(self, comm: HelperComm, handshake_overrides: dict[str, Any] | None = None) -> None:
            if comm.machine != MAIN_NAME and not is_known(comm.machine):
                await _send_away(comm)
                raise CommClosedError("not in the register")
            opened[comm.machine] = [each for each in opened[comm.machine] if not each.closed()]
            if comm.machine != MAIN_NAME and len(opened[comm.machine]) >= CONNECTIONS_MOST:
                comm.abort()
                raise CommClosedError("too many connections")
            opened[comm.machine].append(comm)
            await super().on_connection(comm, handshake_overrides)

    class Backend(tcp.TLSBackend):
        _listener_class = Listener

    backends["tls"] = Backend()


async def _send_away(comm: Any) -> None:
    """Tell a removed machine that it is one, in place of dask's greeting, and leave unread what it says."""
    try:
        with contextlib.suppress(OSError, TimeoutError):
            await comm.write({**comm.handshake_info(), **REMOVED})
            await asyncio.wait_for(comm.stream.read_bytes(1 << 16, partial=True), HANDSHAKE_S)
    finally:
        comm.abort()
