"""Dask's scheduler as the main machine runs it: what it reads of a helper, plain values of bounded size; and what that may ask, by its
certificate, at every step."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgpack
from distributed import Scheduler
from distributed.comm import Comm, CommClosedError, tcp
from distributed.comm.registry import backends
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.versions import get_versions

from app.machines.cluster.dask_setup import HANDSHAKE_S, TASKS_MOST, name_address
from app.machines.joining.certificates import MAIN_NAME
from app.machines.joining.register import Register

HELLO: Final = "hearth_hello"
REMOVED: Final = {"refused": "removed"}
"""A machine that is not in the register is told this in place of a greeting."""
OWN: Final = frozenset({HELLO, "hearth_begin", "hearth_fetch", "hearth_keep", "hearth_end"})
"""Helpers call these operations, which are Hearth's own."""
ADDRESSED: Final = frozenset({"register-worker", "heartbeat_worker", "unregister"})
"""A worker needs these of dask's handlers and no others; each names the worker by its address."""
CLIENT: Final = frozenset({"register-client", "identity"})
"""The main machine's own client needs these of dask's handlers and no others."""
STREAMED: Final = frozenset(
    {"task-finished", "task-erred", "reschedule", "keep-alive", "log-event", "worker-status-change", "release-worker-data"}
)  # fmt: skip
"""A worker of Hearth's says these within its stream; the rest of dask's is about results of others and tasks that are stolen."""
KEY_LETTERS: Final = 200
"""A task's name may have so many letters."""
NO_METRICS: Final[Mapping[str, Any]] = {
    "bandwidth": {"total": 1, "workers": {}, "types": {}}, "digests_total_since_heartbeat": {}, "memory": 0, "managed_bytes": 0,
    "spilled_bytes": {"memory": 0, "disk": 0},
}  # fmt: skip
"""Dask adds up for ever whatever names stand in a worker's own."""


def find_machine(peer: Mapping[str, Any] | None) -> str:
    """Return the id in a connection's certificate, as Python's ssl gives it; "" without one."""
    names = [value for part in (peer or {}).get("subject", ()) for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""


def list_operations(id_: str, known: bool) -> frozenset[str]:
    """`known`: whether the machine is in the register."""
    if id_ == MAIN_NAME:
        return CLIENT
    return (OWN | ADDRESSED) if known else frozenset()


def introduce(operation: str, id_: str, address: str, message: Mapping[str, Any], versions: Mapping[str, Any]) -> dict[str, Any]:
    """Return what dask is told in place of what a worker says of itself, which it would keep, and show to the others. `versions`: dask's
    of this machine; Hearth's own are compared before."""
    said = {"address": address, "resolve_address": False, "now": 0.0, "metrics": NO_METRICS}
    match operation:
        case "register-worker":
            status = "paused" if message.get("status") == "paused" else "running"
            nothing = {"resources": {}, "services": {}, "extra": {}, "memory_limit": 0, "local_directory": "", "nanny": None}
            said |= {"name": id_, "server_id": id_, "nthreads": TASKS_MOST, "status": status, "stimulus_id": "hearth-join"}
            return {**said, **nothing, "versions": versions}
        case "unregister":
            return {"address": address, "stimulus_id": "hearth-leave"}
        case _:
            return said


def keep_own_words(messages: Any, address: str) -> list[dict[str, Any]]:
    """Leave of a worker's stream what a worker may say, always under its own address. What dask's client would unpickle is left out, the
    type of a result and what went wrong; and what dask would keep or repeat, in whatever length."""
    found = messages if isinstance(messages, list | tuple) else (messages,)
    said = [
        each for each in found if isinstance(each, dict) and each.get("op") in (*STREAMED, "close-stream") and _is_key(each.get("key", ""))
    ]
    ours: dict[str, Any] = {
        "worker": address,
        "type": None,
        "exception": "",
        "traceback": None,
        "stimulus_id": "helper",
        "typename": "",
        "metadata": {},
    }
    return [{key: ours.get(key, value) for key, value in each.items()} for each in said]


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and len(key) <= KEY_LETTERS


HELPER_BYTES: Final = 4 << 20
"""One message may have so many bytes: a block of a file takes one MiB, what a helper says of itself at most another."""
CONTAINERS_MOST: Final = 20_000
LENGTH_MOST: Final = 4096
"""One list or table may have so many entries. The parser sets memory aside for as many as are announced, at each of its 1,024 depths."""
FRAMES_MOST: Final = 256
UNREAD_BYTES: Final = 32 << 20
"""If more bytes than this wait to be sent to a machine, it reads nothing, and dask would keep whatever it asks for."""
CONNECTIONS_MOST: Final = 32
"""One machine may have so many connections; dask's worker with two tasks has a handful."""
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


def guard_listeners(is_known: Callable[[str], bool]) -> None:
    """Read no pickles of helpers in this process, from now on, nothing of strangers, and over a few connections each. `is_known`: whether
    the machine with an id may come."""

    class HelperComm(tcp.TLS):
        worker = ""
        """This is the stream of the worker with that address, which says only what it may."""

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
                message = parse_plain(memoryview(content))
                return keep_own_words(message, self.worker) if self.worker else message
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


Handler = Callable[..., Any]
EVENT_TOPIC = "hearth"


class Desk(Protocol):
    """What the scheduler hands on: Hearth's own operations, and what becomes of tasks and machines."""

    async def answer(self, operation: str, machine: str, message: dict[str, Any]) -> dict[str, Any]: ...
    def hear(self, machine: str, message: dict[str, Any]) -> None: ...
    def note_machine(self, machine: str, online: bool) -> None: ...
    def note_task(self, task: str, state: str) -> None: ...


class MainScheduler(Scheduler):
    handlers: dict[str, Handler]

    def __init__(self, register: Register, desk: Desk, **options: Any) -> None:
        super().__init__(dashboard=False, extensions={}, **options)
        self._register, self._desk, self._versions = register, desk, get_versions()
        served = {op: handler for op, handler in self.handlers.items() if op in CLIENT | ADDRESSED}
        own: dict[str, Handler] = {op: self._ask_desk(op) for op in OWN}
        self.handlers = {op: self._guard(op, handler) for op, handler in (served | own).items()}
        self.stream_handlers["log-event"] = self._hear
        self.add_plugin(_Reporter(desk), name="hearth")

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none: dask's own listens on all interfaces, dashboard or not."""

    def handle_comm(self, comm: Comm) -> Any:
        if not self._identify(comm):
            comm.abort()
        return super().handle_comm(comm)

    async def handle_stream(self, comm: Comm, extra: dict[str, Any] | None = None) -> None:
        if worker := (extra or {}).get("worker"):
            comm.worker = worker
        await super().handle_stream(comm, extra)

    async def drop_machine(self, id_: str) -> None:
        """End a machine's connections now; the register no longer lets it in."""
        await self.remove_worker(name_address(id_), stimulus_id=f"hearth-drop-{time.time()}", close=False)
        for comm in [each for each in self._comms if self._identify(each) == id_]:
            comm.abort()

    def find_machine_of(self, task: str) -> str:
        """Return the machine that a task runs on; "" if on none."""
        state = self.tasks.get(task)
        return str(state.processing_on.name) if state is not None and state.processing_on is not None else ""

    @staticmethod
    def _identify(comm: Comm) -> str:
        return find_machine(comm.extra_info.get("peercert"))

    def _guard(self, operation: str, handler: Handler) -> Callable[..., Awaitable[Any]]:
        """`comm` comes first, as dask looks for that name."""
        wants_comm = operation in ("register-worker", "register-client")

        async def guarded(comm: Comm, **message: Any) -> Any:
            id_ = self._identify(comm)
            known = id_ == MAIN_NAME or self._register.find(id_) is not None
            if operation not in list_operations(id_, known):
                raise PermissionError(operation)
            if operation in ADDRESSED:
                message = introduce(operation, id_, name_address(id_), message, self._versions)
            if operation == "register-worker":
                await self.remove_worker(name_address(id_), stimulus_id=f"hearth-again-{time.time()}", close=False)
            if operation in OWN:
                message["machine"] = id_
            result = handler(comm, **message) if wants_comm else handler(**message)
            return await result if isinstance(result, Awaitable) else result

        return guarded

    def _ask_desk(self, operation: str) -> Handler:
        async def ask(machine: str, **message: Any) -> dict[str, Any]:
            return await self._desk.answer(operation, machine, message)

        return ask

    def _hear(self, worker: str, topic: Any, msg: Any) -> None:
        if topic == EVENT_TOPIC and isinstance(msg, dict) and worker in self.workers:
            self._desk.hear(str(self.workers[worker].name), msg)


class _Reporter(SchedulerPlugin):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._names: dict[str, str] = {}
        """The machines go by address: when one is removed, dask has forgotten it already."""

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        self._names[worker] = str(scheduler.workers[worker].name)
        self._desk.note_machine(self._names[worker], True)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:
        self._desk.note_machine(self._names.pop(worker, ""), False)

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        self._desk.note_task(str(key), finish)
