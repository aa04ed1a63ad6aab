"""The machines process for a Dask cluster that Hearth did not start: a client, for which each worker is a machine that helps."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
import secrets
import shutil
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from distributed import Client

from app.machines.cluster import dask_setup, existing_worker
from app.machines.cluster.dask_setup import take_foreign
from app.machines.cluster.main_process import RESULT_BYTES, Arriving, write_block
from app.machines.joining.certificates import identity_in
from app.machines.joining.versions import find_difference, parse_versions, read_versions
from app.machines.pipe import Pipe

MESSAGE_BYTES: Final = RESULT_BYTES + (1 << 20)
"""Results come whole; this cluster is its owner's, who lets Hearth in."""
PICKLED: Final = frozenset({("builtins", "bytes")})
"""Results name this beside dask's own: the content of files."""
LOOK_S: Final = 1.0
"""It looks so often who is there."""
FACTS_S: Final = 5.0
ANSWER_S: Final = 30.0
"""One worker's answer is waited for so long."""
_log = logging.getLogger("hearth.machines")


@dataclass(slots=True)
class Worker:
    address: str
    name: str
    looked_s: float = -math.inf
    looking: bool = False
    greeted: bool = False
    fits: bool = False
    """True: its versions are the main machine's."""
    heard: bool = False
    """True: it has said what is there."""


@dataclass(slots=True)
class Task:
    machine: str
    folder: Path
    attempt: str = field(default_factory=lambda: secrets.token_hex(8))
    """Dask may begin it on its worker after Hearth there was told to stop it."""
    held: list[Any] = field(default_factory=list)
    """These futures of its files and of itself are held here, as Dask forgets what nobody holds."""


class Workers:
    """All in the event loop."""

    def __init__(self, pipe: Pipe, client: Any) -> None:
        self._pipe, self._client, self._topic = pipe, client, f"hearth-{secrets.token_hex(8)}"
        self._workers: dict[str, Worker] = {}
        self._tasks: dict[str, Task] = {}
        self._under_way = set[asyncio.Task[None]]()
        client.subscribe_topic(self._topic, self._hear_event)

    async def watch(self) -> None:
        """Follow who comes and goes; raise OSError when the scheduler is gone."""
        while True:
            found = (await self._client.scheduler.identity())["workers"]
            there = {name_machine(str(about.get("name"))): (address, str(about.get("name"))) for address, about in found.items()}
            for id_ in [id_ for id_, known in self._workers.items() if there.get(id_, ("",))[0] != known.address]:
                gone = self._workers.pop(id_)
                self._pipe.tell("machine", machine=id_, name=gone.name, online=False)
            for id_, (address, name) in there.items():
                known = self._workers.setdefault(id_, Worker(address, name))
                if not known.looking and time.monotonic() - known.looked_s > FACTS_S:
                    known.looking = True
                    self._begin(self._look(id_, known))
            await asyncio.sleep(LOOK_S)

    def _begin(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(what)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _call(self, address: str, function: Any, *arguments: Any) -> Any:
        """Have one worker call a function; None where it cannot. Raise TimeoutError where it does not answer in time."""
        try:
            found = await asyncio.wait_for(self._client.run(function, *arguments, workers=[address]), ANSWER_S)
            return found.get(address)
        except TimeoutError:
            raise
        except Exception:  # it is gone, has no Hearth, or is none that may be believed
            return None

    async def _look(self, id_: str, worker: Worker) -> None:
        """Tell what is at a worker; why nothing is used there, or that it has not answered yet."""
        try:
            op, said = await self._find_facts(worker)
        except TimeoutError:
            op, said = "late", {}
        worker.looking, worker.looked_s = False, time.monotonic()
        if self._workers.get(id_) is not worker:
            return
        if not worker.greeted:
            worker.greeted = True
            self._pipe.tell("machine", machine=id_, name=worker.name, online=True)
        worker.heard |= op == "facts"
        if op != "late" or not worker.heard:
            self._pipe.tell(op, machine=id_, **said)

    async def _find_facts(self, worker: Worker) -> tuple[str, dict[str, Any]]:
        """Ask a worker what is there only where its versions fit, as that starts an engine."""
        if not worker.fits:
            said = await self._call(worker.address, read_versions)
            versions = parse_versions(said) if isinstance(said, Mapping) else {}
            if not versions or find_difference(read_versions(), versions):
                return "versions", {"versions": versions}
            worker.fits = True
        facts = take_foreign(await self._call(worker.address, existing_worker.look))
        return ("facts", {"facts": facts}) if isinstance(facts, dict) else ("versions", {"versions": {}})

    def ask(self, machine: str, question: str, body: str) -> None:
        if (worker := self._workers.get(machine)) is not None:
            self._begin(self._ask(worker.address, machine, question, body))

    async def _ask(self, address: str, machine: str, question: str, body: str) -> None:
        said = None
        with contextlib.suppress(TimeoutError):
            said = await self._call(address, existing_worker.answer, body)
        self._pipe.tell("answer", machine=machine, question=question, answer=take_foreign(said))

    def submit(self, id_: str, body: str, files: dict[str, str], machine: str, incoming: str) -> None:
        if id_ not in self._tasks and (worker := self._workers.get(machine)) is not None:
            self._tasks[id_] = Task(machine, Path(incoming))
            self._begin(self._carry_out(id_, worker.address, body, files))

    async def _carry_out(self, id_: str, address: str, body: str, files: dict[str, str]) -> None:
        """Dask does the task on this worker alone: whoever gave it takes it back from one that is gone."""
        task, event, kept = self._tasks[id_], None, dict[str, str]()
        try:
            for path in files.values():
                content = await asyncio.to_thread(Path(path).read_bytes)
                task.held.append(await self._client.scatter(content, workers=[address], direct=False, hash=False))
            if self._tasks.get(id_) is not task:  # it was stopped meanwhile
                return
            asked = (id_, task.attempt, body, [*files], [*task.held], self._topic)
            future = self._client.submit(existing_worker.carry_out, *asked, workers=[address], key=f"hearth-{id_}", pure=False)
            task.held.append(future)
            end = await future
            if self._tasks.get(id_) is task:
                event, kept = await asyncio.to_thread(keep_files, task.folder, end)
        except Exception as fault:  # whatever a foreign cluster meets, or the disk here: nothing of it can be used
            _log.warning("%s: %s", task.machine, fault)
        if self._tasks.get(id_) is task:
            del self._tasks[id_]
            self._pipe.tell("end", id=id_, event=take_foreign(event), files=kept)

    def stop(self, id_: str) -> None:
        task = self._tasks.pop(id_, None)
        if task is not None and task.held:
            self._begin(self._cancel(id_, task))

    async def _cancel(self, id_: str, task: Task) -> None:
        """What Dask runs already it does not stop; Hearth there does."""
        if (worker := self._workers.get(task.machine)) is not None:
            with contextlib.suppress(TimeoutError):
                await self._call(worker.address, existing_worker.stop, id_, task.attempt)
        with contextlib.suppress(Exception):
            await self._client.cancel(task.held)

    def _hear_event(self, told: tuple[float, Any]) -> None:
        said = told[1] if isinstance(told[1], Mapping) else {}
        if (id_ := str(said.get("task"))) in self._tasks:
            self._pipe.tell("event", id=id_, event=take_foreign(said.get("event")))


def name_machine(worker: str) -> str:
    """Return a worker's id. A nanny that starts its worker again gives it the same name, where it has one."""
    return hashlib.sha256(worker.encode()).hexdigest()[:32]


def keep_files(folder: Path, end: Any) -> tuple[Any, dict[str, str]]:
    """Write what a task made, and return its last event; None if it is nothing that a task makes, or there is no room for it."""
    event, files = (end.get("event"), end.get("files")) if isinstance(end, Mapping) else (None, None)
    if not isinstance(files, Mapping):
        return None, {}
    folder.mkdir(parents=True, exist_ok=True)
    arriving = Arriving(folder, RESULT_BYTES)
    if any("refused" in write_block(arriving, {"name": name, "offset": 0, "data": content}) for name, content in files.items()):
        shutil.rmtree(folder)
        return None, {}
    return event, {name: str(folder / name) for name in files}


async def serve(connection: Any, arguments: dict[str, Any]) -> None:
    """Run until the keeper says `close` or is gone, or the scheduler is; then the keeper's process starts another one."""
    pipe, closing = Pipe(connection), asyncio.Event()
    security = dask_setup.make_security(identity_in(Path(arguments["folder"])))
    async with Client(arguments["address"], security=security, asynchronous=True, set_as_default=False, name="hearth") as client:
        workers = Workers(pipe, client)
        hears: dict[str, Any] = {
            "submit": workers.submit,
            "ask": workers.ask,
            "stop": workers.stop,
            "close": closing.set,
            "want": lambda **_: None,
        }
        pipe.listen(lambda message: hears[message.pop("op")](**message))
        pipe.tell("connected")
        ends = [asyncio.ensure_future(workers.watch()), asyncio.ensure_future(closing.wait())]
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for each in [*ends, *workers._under_way]:
            each.cancel()
        for each in done:
            each.result()
