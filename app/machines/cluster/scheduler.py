"""Dask's scheduler as the main machine runs it: a helper is asked for its certificate at every step, and served only what a worker needs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from distributed import Scheduler
from distributed.comm import Comm
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.versions import get_versions

from app.machines.cluster.dask_setup import name_address
from app.machines.cluster.roles import ADDRESSED, CLIENT, OWN, find_machine, introduce, keep_own_words, list_operations
from app.machines.joining.certificates import MAIN_NAME
from app.machines.joining.register import Register

Handler = Callable[..., Any]
EVENT_TOPIC = "hearth"


class Desk(Protocol):
    """What the scheduler hands on: Hearth's own operations, and what becomes of tasks and machines."""

    async def answer(self, operation: str, machine: str, message: dict[str, Any]) -> dict[str, Any]: ...
    def hear(self, machine: str, message: dict[str, Any]) -> None: ...
    def note_machine(self, machine: str, online: bool) -> None: ...
    def note_task(self, task: str, state: str, machine: str) -> None: ...


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
        worker = (extra or {}).get("worker")
        await super().handle_stream(comm if worker is None else _OwnWords(comm, worker), extra)

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


class _OwnWords:
    """A worker's stream, without what a worker may not say."""

    def __init__(self, comm: Comm, address: str) -> None:
        self._comm, self._address = comm, address

    @property
    def peer_address(self) -> str:
        return str(self._comm.peer_address)

    async def read(self) -> list[dict[str, Any]]:
        return keep_own_words(await self._comm.read(), self._address)

    async def close(self) -> None:
        await self._comm.close()

    def closed(self) -> bool:
        return bool(self._comm.closed())


class _Reporter(SchedulerPlugin):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._scheduler: Any = None
        self._names: dict[str, str] = {}
        """Machines by address: when one is removed, dask has forgotten it already."""

    async def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        self._names[worker] = str(scheduler.workers[worker].name)
        self._desk.note_machine(self._names[worker], True)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:
        self._desk.note_machine(self._names.pop(worker, ""), False)

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        machine = self._scheduler.find_machine_of(key) if finish == "processing" else ""
        self._desk.note_task(str(key), finish, machine)
