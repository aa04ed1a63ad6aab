"""The machines process of a helper: it keeps dask's worker at the main machine, and comes back by itself when the connection was lost; the
worker fetches what a task needs, has the keeper's engine do it, and sends the results."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from distributed import Reschedule, Worker
from distributed.comm import Comm, connect
from distributed.core import Status

from app.base import atomic_write
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed
from app.machines.cluster import dask_setup
from app.machines.cluster.dask_setup import BLOCK_BYTES, TASKS_MOST, Listener
from app.machines.cluster.scheduler import EVENT_TOPIC, HELLO
from app.machines.joining.certificates import identity_in, read_authority, read_id
from app.machines.joining.join import move, name_url
from app.machines.joining.versions import read_versions
from app.machines.nearby import Nearby
from app.machines.pipe import Message, Pipe
from app.machines.tasks import event_json, fetched_files

AGAIN_S, AGAIN_MOST_S = 1.0, 30.0
"""The main machine is tried again after this wait, which doubles up to the second figure."""
HELLO_S: Final = 10.0


class Helper:
    def __init__(self, pipe: Listener, arguments: dict[str, Any]) -> None:
        folder = Path(arguments["folder"])
        identity = identity_in(folder)
        self._id, self._security = read_id(identity.certificate.read_text()), dask_setup.make_security(identity)
        self._main, self._scratch = arguments["main"], Path(arguments["scratch"])
        self._folder, self._authority = folder, read_authority(folder)
        self._near: Nearby | None = None
        """It is open while the main machine does not answer."""
        self._pipe, self._errands = pipe, Errands(pipe, self._scratch / "files")
        self._models = ModelFetch(pipe, self._ask_for_block)
        self._closing, self._paused = asyncio.Event(), False
        self._facts: Any = None
        self._worker: HelperWorker | None = None

    def hear(self, message: Message) -> None:
        match message["op"]:
            case "pause":
                self._paused = bool(message["paused"])
                if self._paused:
                    self._errands.give_all_back()
                self._apply_pause()
            case "facts":
                self._facts = message["facts"]
                self._send_facts()
            case "answer":
                if self._worker is not None:
                    self._worker.log_event(EVENT_TOPIC, {"question": message["question"], "answer": message["answer"]})
            case "fetch-model":
                self._models.start(message)
            case "leave-model":
                self._models.leave()
            case "close":
                self._closing.set()
                self._errands.give_all_back()
            case _:
                self._errands.hear(message)

    def _ask_for_block(self, **values: Any) -> dict[str, Any]:
        """Called in the thread that fetches a model."""
        if (worker := self._worker) is None:
            raise ConnectionError
        return worker.ask("hearth_fetch", **values)

    def _apply_pause(self) -> None:
        if self._worker is not None and self._worker.status in (Status.running, Status.paused):
            self._worker.status = Status.paused if self._paused else Status.running

    def _send_facts(self) -> None:
        if self._worker is not None and self._facts is not None:
            self._worker.log_event(EVENT_TOPIC, {"facts": self._facts})

    async def run(self) -> None:
        wait_s = AGAIN_S
        while not self._closing.is_set():
            try:
                if not await self._find_main():
                    return
                await self._work()
                wait_s = AGAIN_S
            except (OSError, RuntimeError, ValueError) as fault:  # dask raises RuntimeError around what kept a worker from starting
                self._pipe.tell("offline", fault=str(fault)[:200])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait_s)
            wait_s = min(2 * wait_s, AGAIN_MOST_S)

    async def _find_main(self) -> bool:
        """Greet the main machine where it was last, else where somebody in this network says that it is, as routers give other addresses; only
        its certificate tells. Raise OSError if nobody answers who has that."""
        try:
            return await self._greet(self._main)
        except (OSError, RuntimeError, ValueError):
            self._near = self._near or Nearby()  # it has seen who is there by the next time
            for host, port in self._near.find(self._authority):
                with contextlib.suppress(OSError, RuntimeError, ValueError):
                    welcome = await self._greet(name_url(host, port))
                    self._main = name_url(host, port)
                    move(self._folder, host, port)
                    return welcome
            raise

    async def _look_no_more(self) -> None:
        near, self._near = self._near, None
        if near is not None:
            await asyncio.to_thread(near.close)

    async def _greet(self, address: str) -> bool:
        """Ask whether this machine may still come; tell the keeper why not."""
        comm = await connect(address, timeout=HELLO_S, **self._security.get_connection_args("worker"))
        try:
            answer = comm.remote_info if "refused" in comm.remote_info else await asyncio.wait_for(_say_hello(comm), HELLO_S)
        finally:
            comm.abort()
        refused = answer.get("refused") if isinstance(answer, dict) else "odd"
        if refused:
            self._pipe.tell("refused", reason=refused, versions=answer.get("versions") if isinstance(answer, dict) else None)
        return not refused

    async def _work(self) -> None:
        options = {"host": "127.0.0.1", "protocol": "tls", "name": self._id, "contact_address": dask_setup.name_address(self._id)}
        directory = self._scratch / "dask"
        directory.mkdir(parents=True, exist_ok=True)
        worker = HelperWorker(
            self._main, self._errands, security=self._security, local_directory=str(directory), death_timeout=HELLO_S, **options
        )
        async with worker as self._worker:
            self._pipe.tell("online")
            await self._look_no_more()
            self._apply_pause()
            self._send_facts()
            ends = [asyncio.ensure_future(worker.finished()), asyncio.ensure_future(self._closing.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for each in ends:
                each.cancel()
        self._worker = None
        self._pipe.tell("offline", fault="")


async def _say_hello(comm: Comm) -> Any:
    await comm.write({"op": HELLO, "versions": read_versions()})
    return await comm.read()


async def serve(connection: Any, arguments: dict[str, Any]) -> None:
    """Lend until the keeper says `close` or is gone, or the main machine refuses this one."""
    pipe = Pipe(connection)
    helper = Helper(pipe, arguments)
    pipe.listen(helper.hear)
    await helper.run()


TOLD_S: Final = 1.0
"""The keeper's process is told so often how far it is."""
_PART: Final = ".part"


class ModelFetch:
    def __init__(self, pipe: Listener, ask: Ask) -> None:
        """`ask`: the main machine, for a block; it raises whatever where there is none."""
        self._pipe, self._ask = pipe, ask
        self._turn, self._attempt = threading.Lock(), 0

    def start(self, message: Message) -> None:
        """Fetch what a message names, in place of what was fetched before."""
        self._attempt += 1
        values = (self._attempt, message["model"], message["files"], Path(message["folder"]))
        threading.Thread(target=self._wait_and_run, args=values, name="model-fetch", daemon=True).start()

    def leave(self) -> None:
        self._attempt += 1

    def _wait_and_run(self, attempt: int, model: str, files: dict[str, int], folder: Path) -> None:
        with self._turn:  # the one before may have a block on its way to the same file
            self._run(attempt, model, files, folder)

    def _run(self, attempt: int, model: str, files: dict[str, int], folder: Path) -> None:
        done, told_s = 0, time.monotonic()
        try:
            for sha256, size in files.items():
                part = folder / f"{sha256}{_PART}"
                for length in fetch(partial(self._ask, model=model), sha256, size, part):
                    if self._attempt != attempt:
                        return
                    done += length
                    if time.monotonic() - told_s > TOLD_S:
                        told_s = time.monotonic()
                        self._pipe.tell("model-step", model=model, done=done, missing=sum(files.values()))
                part.replace(folder / sha256)
        except Exception as fault:  # the connection, the disk, or bytes that are not as they were said to be
            self._pipe.tell("model-lost", model=model, fault=str(fault)[:200])
            return
        self._pipe.tell("model-here", model=model)


ANSWER_S: Final = 120.0
"""One answer of the main machine, which may be busy, is waited for so long; then the task counts as lost there."""
Ask = Callable[..., dict[str, Any]]
"""It asks the main machine by the name of an operation, and raises Reschedule where that does not answer, or no longer wants this task from
here: the task goes back."""


class Errands:
    """The tasks of this helper, between dask's thread and the keeper's process."""

    def __init__(self, pipe: Listener, files: Path) -> None:
        self.tell, self._files = pipe.tell, files
        self._lock = threading.RLock()
        self._inboxes: dict[str, queue.SimpleQueue[Message]] = {}

    def hear(self, message: Message) -> None:
        """Pass on what the keeper says of a task."""
        with self._lock:
            if (inbox := self._inboxes.get(str(message.get("id")))) is not None:
                inbox.put(message)

    def stop(self, task: str, why: str = "stopped") -> None:
        """Ask the engine to stop a task, which the main machine no longer waits for; or to give it back. Whatever comes first, the engine is
        either not begun with, or told to stop afterwards."""
        with self._lock:
            self.tell("stop", id=task, unwanted=why == "stopped")
            self.hear({"op": why, "id": task})

    def give_all_back(self) -> None:
        """The owner's own work comes first, or lending ends."""
        with self._lock:
            waiting = list(self._inboxes)
        for task in waiting:
            self.stop(task, "give-back")

    def carry_out(self, worker: HelperWorker, task: str, body: str) -> None:
        inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        with self._lock:
            self._inboxes[task] = inbox
        try:
            try:
                self._fetch_files(partial(worker.ask, "hearth_fetch", task=task), json.loads(body)["files"])
            except Trouble as trouble:
                self._deliver(worker, task, {"event": event_json.to_json(Failed(trouble.sentence)), "files": {}})
                return
            self._begin(worker, task, body, inbox)
            self._deliver(worker, task, self._follow(worker, task, inbox))
        finally:
            with self._lock:
                del self._inboxes[task]

    def _begin(self, worker: HelperWorker, task: str, body: str, inbox: queue.SimpleQueue[Message]) -> None:
        """Have the engine begin, unless the main machine stopped the task before it came here, which nothing else would tell."""
        worker.ask("hearth_begin", task=task)
        with self._lock:
            if not inbox.empty():
                raise Reschedule
            self.tell("run", id=task, body=body)

    def _fetch_files(self, ask: Ask, files: object) -> None:
        """Fetch the files that are not here yet; they stay, by their hashes, for the next task."""
        fetched_files.tidy(self._files)
        for sha256, size in fetched_files.choose_missing(self._files, files).items():
            with atomic_write.replacing(self._files / sha256) as unfinished:
                for _ in fetch(ask, sha256, size, unfinished):
                    pass

    def _follow(self, worker: HelperWorker, task: str, inbox: queue.SimpleQueue[Message]) -> Message:
        while True:
            message = inbox.get()
            match message["op"]:
                case "event":
                    worker.log_event(EVENT_TOPIC, {"task": task, "event": message["event"]})
                case "begun":
                    with contextlib.suppress(OSError):  # it ended meanwhile, and the file with it
                        _send(partial(worker.ask, "hearth_keep", task=task, begun=True), message["name"], Path(message["path"]))
                case "end":
                    return message
                case _:
                    raise Reschedule

    def _deliver(self, worker: HelperWorker, task: str, end: Message) -> None:
        for name, path in end["files"].items():
            _send(partial(worker.ask, "hearth_keep", task=task, begun=False), name, Path(path))
        worker.ask("hearth_end", task=task, event=end["event"])
        self.tell("delivered", id=task)


def fetch(ask: Ask, sha256: str, size: int, path: Path) -> Iterator[int]:
    """Fetch a file in blocks, going on with what is there; yield the length of each. Where it is another one in the end, as it has changed since,
    delete it and raise Trouble."""
    digest, have = hashlib.sha256(), 0
    if path.is_file():
        with path.open("rb") as kept:
            while block := kept.read(BLOCK_BYTES):
                digest.update(block)
                have += len(block)
                yield len(block)
    with path.open("ab") as file:
        while have < size:
            data = ask(sha256=sha256, offset=have).get("data")
            if not isinstance(data, bytes) or not data or have + len(data) > size:
                break
            digest.update(data)
            file.write(data)
            have += len(data)
            yield len(data)
    if have != size or digest.hexdigest() != sha256:
        path.unlink()
        raise fetched_files.odd_files()


def _send(ask: Ask, name: str, path: Path) -> None:
    digest, offset, last = hashlib.sha256(), 0, False
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while not last:
            data = file.read(BLOCK_BYTES)
            digest.update(data)
            last = offset + len(data) >= size
            ask(name=name, offset=offset, data=data, last=last, sha256=digest.hexdigest() if last else "")
            offset += len(data)


class HelperWorker(Worker):
    def __init__(self, scheduler: str, errands: Errands, **options: Any) -> None:
        """No extensions: the scheduler has none, and would answer every heartbeat that tells of one with an error."""
        super().__init__(scheduler, nthreads=TASKS_MOST, memory_limit=0, dashboard=False, extensions={}, **options)
        self.errands = errands
        self.stream_handlers |= {
            "hearth-stop": errands.stop,
            "hearth-ask": partial(errands.tell, "ask"),
            "hearth-want": partial(errands.tell, "want"),
        }

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none, as on the main machine."""

    async def close(self, *arguments: Any, **options: Any) -> Any:
        """Give tasks back first: dask waits for the thread that runs them, which would wait for the engine."""
        self.errands.give_all_back()
        return await super().close(*arguments, **options)

    def ask(self, operation: str, **values: Any) -> dict[str, Any]:
        """Ask the main machine, from a thread; see Ask."""

        async def put() -> Any:
            return await getattr(self.scheduler, operation)(**values)

        try:
            answer = asyncio.run_coroutine_threadsafe(put(), self.loop.asyncio_loop).result(ANSWER_S)
        except (OSError, TimeoutError) as fault:
            raise Reschedule from fault
        if not isinstance(answer, dict) or "refused" in answer:
            raise Reschedule
        return answer
