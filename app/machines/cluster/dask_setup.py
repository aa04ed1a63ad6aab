"""A machines process from within: dask set up and bounded, and its pickles guarded."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import sys
from collections import Counter
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

from app.machines.joining.certificates import Identity

SETTINGS: Final = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "30s",
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.scheduler.allowed-failures": 20,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.events-cleanup-delay": "10s",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.diagnostics.nvml": False,
    "distributed.diagnostics.computations.nframes": 0,
}
"""A machine that says nothing for `worker-ttl` sleeps or is unplugged. A task that met so many dying machines kills them.
Ticks and the system monitor, which nobody reads here, would wake every idle machine fifty times a second."""


TASKS_MOST: Final = 2
"""A helper has at most so many at once: one in its engine, and one that waits there or whose results travel."""
BLOCK_BYTES: Final = 1 << 20
"""So much of a file goes in one message."""


def serve(module: str, connection: Connection, arguments: dict[str, Any]) -> None:
    """Be a machines process until the keeper says `close` or is gone. `module` says what it serves, and which larger messages and which
    other names in pickles that takes."""
    set_up()
    served = import_module(module)
    set_bounds(getattr(served, "MESSAGE_BYTES", MESSAGE_BYTES))
    guard_pickles(getattr(served, "PICKLED", frozenset()))
    asyncio.run(served.serve(connection, arguments))


def set_up() -> None:
    """Keep the user's settings of dask out, and set Hearth's; before distributed is imported, which reads them."""
    for name in [each for each in os.environ if each.startswith("DASK_")]:
        del os.environ[name]
    import dask

    dask.config.refresh(paths=[], env={})
    dask.config.set(SETTINGS)
    import distributed

    logging.getLogger(distributed.__name__).setLevel(logging.WARNING)


def name_address(id_: str) -> str:
    """Return the address under which dask knows a machine: made of its id, in a range that leads nowhere. Nobody connects to a
    helper; all that it does goes over connections of its own."""
    return f"tls://[{ipaddress.IPv6Address(bytes([0xFD]) + bytes.fromhex(id_)[:15]).compressed}]:1"


def make_security(identity: Identity) -> Any:
    """Return dask's security settings with Hearth's own TLS contexts."""
    from distributed.security import Security

    class OwnContexts(Security):
        __slots__ = ()

        def get_connection_args(self, role: str) -> dict[str, Any]:
            return {"ssl_context": identity.client_context(), "require_encryption": True, "extra_conn_args": {}}

        def get_listen_args(self, role: str) -> dict[str, Any]:
            return {"ssl_context": identity.server_context(), "require_encryption": True}

    return OwnContexts(require_encryption=True)


MESSAGE_BYTES: Final = 64 << 20
"""Files travel in blocks of 1 MiB; a task's text is a script of a million letters at most."""
HANDSHAKE_S: Final = 10.0
HANDSHAKES_MOST: Final = 16
"""No address may have more at the same time: strangers would otherwise take up the connections that a process may have."""


def set_bounds(message_bytes: int) -> None:
    """Bound in this process what dask does not: it reads as much as the other side says that it will send, unpacks what is compressed before
    anybody looks at it, waits for ever for who says nothing, and tells whole traces."""
    from distributed import core
    from distributed.comm import tcp
    from distributed.protocol import compression

    allocate, prepare = tcp.host_array, tcp.TLSListener._prepare_stream

    def allocate_some(size: int) -> Any:
        if size > message_bytes:
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


ALLOWED: Final = frozenset(
    {
        ("app.machines.cluster.work", "run_task"),
        ("builtins", "bool"),
        ("dask._expr", "Expr._reconstruct"),
        ("dask._expr", "LLGExpr"),
        ("dask._task_spec", "Task"),
    }
)
"""Only these are unpickled: classes that only hold values, what puts them together again, and the one function that a helper runs, which
does nothing elsewhere. distributed unpickles what any connected machine sends, before it looks at it, and since 2025 it cannot be told not
to."""


def guard_pickles(more: frozenset[tuple[str, str]] = frozenset()) -> None:
    """Refuse all other names in every unpickler of this process, from now on: an audit hook cannot be taken out again. `more`: names that are
    allowed beside these."""
    allowed = ALLOWED | more

    def check(event: str, values: tuple[Any, ...]) -> None:
        if event == "pickle.find_class" and values not in allowed:
            raise PermissionError(f"a pickle names {values[0]}.{values[1]}, which no machine may send")

    sys.addaudithook(check)


FOREIGN_BYTES: Final = 1 << 20
"""Another machine may say so many bytes at once: previews take 48 KB, a list of its models 100."""


def take_foreign(value: Any) -> Any:
    """Return what another machine said as JSON can hold it; None if it cannot, or is too much."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= FOREIGN_BYTES else None


class Listener(Protocol):
    """Who is told what happens: the keeper's process, or a pretended engine."""

    def tell(self, op: str, **values: Any) -> None: ...
