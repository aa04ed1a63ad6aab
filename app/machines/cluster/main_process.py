"""The machines process of the main machine: dask's scheduler, its client, and the desk that hands tasks out and takes results in."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from distributed import Client

from app.engine.keeper.disk_room import ROOM_BYTES
from app.machines.cluster import dask_setup
from app.machines.cluster.dask_setup import take_foreign
from app.machines.cluster.scheduler import MainScheduler, guard_listeners
from app.machines.cluster.work import run_task
from app.machines.joining.certificates import identity_in
from app.machines.joining.register import Register
from app.machines.joining.versions import find_difference, parse_versions, read_versions
from app.machines.pipe import Pipe
from app.machines.tasks.begun import BYTES_MOST, is_name

RESULT_BYTES: Final = 1 << 30
"""All results of a task together may have so many bytes: hours of sound."""
RESULTS_MOST: Final = 64
WAITING_MOST: Final = 8
"""So many of a task's begun files wait until Hearth has looked at them."""
QUESTION_LETTERS: Final = 100
REFUSALS_MOST: Final = 3
"""A task's blocks may be refused so often; then it ends without a result."""
FILE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,60}\.[a-z0-9]{1,11}")
"""A result's file must be called so; no path in disguise passes."""


@dataclass(slots=True)
class Arriving:
    """Files on their way from a helper."""

    folder: Path
    most_bytes: int
    """All files that lie there at once may have so many bytes."""
    kept: set[str] = field(default_factory=set)
    """These have arrived whole."""
    writing: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Task:
    files: dict[str, str]
    """It needs these, by hash."""
    results: Arriving
    begun: Arriving
    """So much of it is made so far, from which another machine would go on."""
    future: Any = None
    refusals: int = 0


class TaskDesk:
    """Hearth's side of the scheduler; all in the event loop."""

    def __init__(self, pipe: Pipe, register: Register) -> None:
        self._pipe, self._register = pipe, register
        self._tasks: dict[str, Task] = {}
        self._offered: dict[tuple[str, str], dict[str, str]] = {}
        """A machine may fetch these files of models, each by its hash."""
        self.scheduler: MainScheduler
        self.client: Any = None

    def submit(self, id_: str, body: str, files: dict[str, str], machine: str, incoming: str) -> None:
        """Give a task to dask, for this machine alone; an id that is known runs only once."""
        if id_ not in self._tasks:
            folder = Path(incoming)
            task = self._tasks[id_] = Task(files, Arriving(folder, RESULT_BYTES), Arriving(folder / "begun", BYTES_MOST))
            task.begun.folder.mkdir(parents=True, exist_ok=True)
            task.future = self.client.submit(run_task, id_, body, key=id_, workers=[dask_setup.name_address(machine)], pure=False)

    def stop(self, id_: str) -> None:
        """Forget a task; the machine that runs it is told to stop."""
        if machine := self.scheduler.find_machine_of(id_):
            self._tell(machine, "hearth-stop", task=id_)
        if (task := self._tasks.get(id_)) is not None:
            shutil.rmtree(task.results.folder, ignore_errors=True)
        self._forget(id_)

    def drop(self, machine: str) -> None:
        self.client.loop.add_callback(self.scheduler.drop_machine, machine)

    def ask(self, machine: str, question: str, body: str) -> None:
        """Ask a machine about a request, if it is there."""
        self._tell(machine, "hearth-ask", question=question, body=body)

    def want(self, machine: str, model: str, body: str, files: dict[str, str]) -> None:
        """Ask a machine to fetch a model, and let it have these files."""
        if self._tell(machine, "hearth-want", body=body):
            self._offered[machine, model] = files

    def _tell(self, machine: str, op: str, **values: str) -> bool:
        """Tell a machine something, if it is there; return whether it is."""
        there = (address := dask_setup.name_address(machine)) in self.scheduler.workers
        if there:
            self.scheduler.worker_send(address, {"op": op, **values})
        return there

    def _forget(self, id_: str) -> None:
        task = self._tasks.pop(id_, None)
        if task is not None and task.future is not None:
            self.client.loop.add_callback(self.client.cancel, [task.future], force=True)

    # What the scheduler asks.

    async def answer(self, operation: str, machine: str, message: dict[str, Any]) -> dict[str, Any]:
        if operation == "hearth_hello":
            return self._greet(machine, message)
        if operation == "hearth_fetch" and "model" in message:
            return read_block(self._offered.get((machine, str(message["model"])), {}), message)
        id_ = str(message.get("task"))
        task = self._tasks.get(id_)
        if task is None or self.scheduler.find_machine_of(id_) != machine:
            return {"refused": "not-yours"}
        if operation == "hearth_begin":
            return {}
        if operation == "hearth_end":
            self._end(id_, message.get("event"), {name: str(task.results.folder / name) for name in task.results.kept})
            return {}
        answer = read_block(task.files, message) if operation == "hearth_fetch" else self._take(id_, task, message)
        task.refusals += "refused" in answer
        if task.refusals >= REFUSALS_MOST:  # it would compute the same again and again
            self._end(id_, None, {})
        return answer

    def _take(self, id_: str, task: Task, message: dict[str, Any]) -> dict[str, Any]:
        """Write a block of a file; hand on what is made so far of a task as soon as it is whole, out of the way of the next one."""
        if not message.get("begun"):
            return write_block(task.results, message)
        if not is_name(message.get("name")):
            return {"refused": "odd"}
        answer = write_block(task.begun, message)
        for name in [*task.begun.kept]:
            task.begun.kept.discard(name)
            del task.begun.writing[name]
            arrived, whole = task.begun.folder / name, task.begun.folder / "whole"
            whole.mkdir(exist_ok=True)
            if len({name, *(each.name for each in whole.iterdir())}) > WAITING_MOST:  # the next one may find room
                arrived.unlink()
                continue
            self._pipe.tell("begun", id=id_, name=name, path=str(arrived.replace(whole / name)))
        return answer

    def _end(self, id_: str, event: Any, files: dict[str, str]) -> None:
        """`event`: as it came; None for a task that ended without an end of its own."""
        self._forget(id_)
        self._pipe.tell("end", id=id_, event=take_foreign(event), files=files)

    def _greet(self, machine: str, message: dict[str, Any]) -> dict[str, Any]:
        own, known = read_versions(), self._register.find(machine)
        if known is not None and find_difference(own, parse_versions(message.get("versions"))):
            self._pipe.tell("versions", machine=machine, versions=parse_versions(message.get("versions")))
            return {"refused": "versions", "versions": own}
        return {"versions": own}

    def hear(self, machine: str, message: dict[str, Any]) -> None:
        id_ = str(message.get("task", ""))
        if "facts" in message:
            self._pipe.tell("facts", machine=machine, facts=take_foreign(message["facts"]))
        elif "question" in message:
            question, answer = str(message["question"])[:QUESTION_LETTERS], take_foreign(message.get("answer"))
            self._pipe.tell("answer", machine=machine, question=question, answer=answer)
        elif id_ in self._tasks and self.scheduler.find_machine_of(id_) == machine:
            self._pipe.tell("event", id=id_, event=take_foreign(message.get("event")))

    def note_machine(self, machine: str, online: bool) -> None:
        self._pipe.tell("machine", machine=machine, online=online)

    def note_task(self, task: str, state: str) -> None:
        if (known := self._tasks.get(task)) is None:
            return
        if state == "processing":  # begun, or begun anew
            known.results.kept.clear()
        elif state in ("erred", "memory"):  # it ended without its end: nothing of it can be used
            self._end(task, None, {})


def read_block(files: Mapping[str, str], message: dict[str, Any]) -> dict[str, Any]:
    """Return a block of a file that a task or a model needs. `files`: those that the machine may have."""
    path, offset = files.get(str(message.get("sha256"))), message.get("offset")
    if path is None or not isinstance(offset, int) or offset < 0:
        return {"refused": "not-yours"}
    try:
        with Path(path).open("rb") as file:
            file.seek(offset)
            return {"data": file.read(dask_setup.BLOCK_BYTES)}
    except OSError:  # it was deleted since
        return {"refused": "gone"}


def write_block(arriving: Arriving, message: dict[str, Any]) -> dict[str, Any]:
    """Append a block to a file; the last one is checked against its hash."""
    name, offset, data = str(message.get("name")), message.get("offset"), message.get("data")
    if not FILE_NAME.fullmatch(name) or not isinstance(data, bytes) or not isinstance(offset, int):
        return {"refused": "odd"}
    path = arriving.folder / name
    if offset == 0 and (name in arriving.writing or len(arriving.writing) < RESULTS_MOST):
        arriving.kept.discard(name)
        arriving.writing[name] = hashlib.sha256()
        path.unlink(missing_ok=True)
    if name not in arriving.writing or offset != (path.stat().st_size if path.exists() else 0):
        return {"refused": "odd"}
    there = sum(each.stat().st_size for each in arriving.folder.iterdir() if each.is_file())
    if there + len(data) > arriving.most_bytes or shutil.disk_usage(arriving.folder).free < len(data) + ROOM_BYTES:
        return {"refused": "no-room"}
    with path.open("ab") as file:
        file.write(data)
    arriving.writing[name].update(data)
    if message.get("last"):
        if arriving.writing[name].hexdigest() != message.get("sha256"):
            path.unlink()
            return {"refused": "broken"}
        arriving.kept.add(name)
    return {}


async def serve(connection: Any, arguments: dict[str, Any]) -> None:
    """Run until the keeper says `close` or is gone."""
    folder, pipe, closing = Path(arguments["folder"]), Pipe(connection), asyncio.Event()
    register, security = Register(folder), dask_setup.make_security(identity_in(folder))
    guard_listeners(lambda id_: register.find(id_) is not None)
    desk = TaskDesk(pipe, register)
    options = {"host": arguments["host"] or None, "port": arguments["port"], "protocol": "tls", "security": security}
    desk.scheduler = MainScheduler(register, desk, **options)
    try:
        await desk.scheduler
    except RuntimeError as fault:  # dask's, around what kept it from starting
        if isinstance(fault.__cause__, OSError) and fault.__cause__.errno == errno.EADDRINUSE:
            pipe.tell("busy")
        raise
    async with desk.scheduler:
        own = f"tls://{arguments['host'] or '127.0.0.1'}:{desk.scheduler.port}"
        async with Client(own, security=security, asynchronous=True, set_as_default=False, name="hearth") as desk.client:
            named = (desk.submit, desk.ask, desk.want, desk.stop, desk.drop)
            hears: dict[str, Any] = {**{each.__name__: each for each in named}, "close": closing.set}
            pipe.listen(lambda message: hears[message.pop("op")](**message))
            pipe.tell("listening", port=desk.scheduler.port)
            await closing.wait()
