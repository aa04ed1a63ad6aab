"""Dask's worker as a helper runs it: it fetches what a task needs, has the keeper's engine do it, and sends the results."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from distributed import Reschedule, Worker

from app.base import atomic_write
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed
from app.machines.cluster.dask_setup import BLOCK_BYTES, TASKS_MOST, Listener, Message
from app.machines.cluster.scheduler import EVENT_TOPIC
from app.machines.tasks import event_json, fetched_files

ANSWER_S: Final = 120.0
"""For one answer of the main machine, which may be busy; then the task counts as lost there."""
Ask = Callable[..., dict[str, Any]]
"""Asks the main machine by the name of an operation; raises Reschedule where it does not answer, or no longer wants this task from here: the
task goes back."""


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
