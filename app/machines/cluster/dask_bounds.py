"""Bounds that dask lacks: how large a message may be, that none is compressed, how long a stranger may take to show a certificate, and
what an error tells."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

MESSAGE_BYTES: Final = 64 << 20
"""Files travel in blocks of 1 MiB; a task's text is a script of a million letters at most."""
HANDSHAKE_S: Final = 10.0
HANDSHAKES_MOST: Final = 16
"""At the same time, with one address: strangers would otherwise take up the connections that a process may have."""


def set_bounds() -> None:
    """Set them in this process, once distributed is imported: it reads as much as the other side says that it will send, unpacks what is
    compressed before anybody looks at it, and waits for ever for who says nothing."""
    from distributed import core
    from distributed.comm import tcp
    from distributed.protocol import compression

    allocate, prepare = tcp.host_array, tcp.TLSListener._prepare_stream

    def allocate_some(size: int) -> Any:
        if size > MESSAGE_BYTES:
            raise ConnectionError(f"a message of {size} bytes")
        return allocate(size)

    under_way = Counter[str]()

    async def prepare_in_time(listener: Any, stream: Any, address: Any) -> Any:
        host = str(address).rpartition(":")[0]
        if under_way[host] >= HANDSHAKES_MOST:
            stream.close()
            return None
        under_way[host] += 1
        try:
            return await asyncio.wait_for(prepare(listener, stream, address), HANDSHAKE_S)
        except TimeoutError:
            stream.close()
            return None
        finally:
            under_way.subtract([host])
            if not under_way[host]:
                del under_way[host]

    core.error_message = name_error
    tcp.host_array, tcp.TLSListener._prepare_stream = allocate_some, prepare_in_time
    for name in [each for each in compression.compressions if each]:
        del compression.compressions[name]


def name_error(fault: BaseException, status: str = "error") -> dict[str, Any]:
    """Answer with an error's kind alone: dask sends the whole trace, with paths that hold the name of an account."""
    name = type(fault).__name__
    return {"status": status, "exception": name, "traceback": None, "exception_text": name, "traceback_text": ""}
