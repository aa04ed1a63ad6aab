"""Dask's worker as a helper runs it: it fetches what a task needs, has the keeper's engine do it, and sends the results."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from distributed import Reschedule, Worker

from app.base import atomic_write
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed
from app.machines.cluster.dask_settings import BLOCK_BYTES, TASKS_MOST
from app.machines.cluster.pipe import Listener, Message
from app.machines.cluster.scheduler import EVENT_TOPIC
from app.machines.tasks import event_json, fetched_files

ANSWER_S: Final = 120.0
"""For one answer of the main machine, which may be busy; then the task counts as lost there."""


class GaveBack(Exception):
    """The task goes back: its owner's own work comes first, or lending ends."""


class Errands:
    """The tasks of this helper, between dask's thread and the keeper's process."""

    def __init__(self, pipe: Listener, files: Path) -> None:
        self._pipe, self._files = pipe, files
        self._lock = threading.RLock()
        self._inboxes: dict[str, queue.SimpleQueue[Message]] = {}

    def hear(self, message: Message) -> None:
        """Pass on what the keeper says of a task."""
        with self._lock:
            self._put(message)

    def _put(self, message: Message) -> None:
        inbox = self._inboxes.get(str(message.get("id")))
        if inbox is not None:
            inbox.put(message)

    def stop(self, task: str) -> None:
        """Ask the engine to stop a task; the main machine no longer waits for it."""
        self._end(task, "stopped")

    def _end(self, task: str, why: str) -> None:
        """Whatever comes first, the engine is either not begun with, or told to stop afterwards."""
        with self._lock:
            self._pipe.tell("stop", id=task, unwanted=why == "stopped")
            self._put({"op": why, "id": task})

    def ask(self, question: str, body: str) -> None:
        """Pass on what the main machine asks; the answer comes back through the helper."""
        self._pipe.tell("ask", question=question, body=body)

    def want(self, body: str) -> None:
        """Pass on which model the main machine wants here."""
        self._pipe.tell("want", body=body)

    def give_all_back(self) -> None:
        with self._lock:
            waiting = list(self._inboxes)
        for task in waiting:
            self._end(task, "give-back")

    def carry_out(self, worker: HelperWorker, task: str, body: str) -> None:
        inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        with self._lock:
            self._inboxes[task] = inbox
        try:
            try:
                self._fetch_files(worker, task, json.loads(body)["files"])
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
        worker.ask(lambda: worker.scheduler.hearth_begin(task=task))
        with self._lock:
            if not inbox.empty():
                raise GaveBack
            self._pipe.tell("run", id=task, body=body)

    def _fetch_files(self, worker: HelperWorker, task: str, files: object) -> None:
        """Fetch the files that are not here yet; they stay, by their hashes, for the next task."""
        fetched_files.tidy(self._files)
        for sha256, size in fetched_files.choose_missing(self._files, files).items():
            with atomic_write.replacing(self._files / sha256) as unfinished:
                _fetch(worker, task, sha256, size, unfinished)

    def _follow(self, worker: HelperWorker, task: str, inbox: queue.SimpleQueue[Message]) -> Message:
        while True:
            message = inbox.get()
            match message["op"]:
                case "event":
                    worker.log_event(EVENT_TOPIC, {"task": task, "event": message["event"]})
                case "begun":
                    with contextlib.suppress(OSError):  # it ended meanwhile, and the file with it
                        _send(worker, task, message["name"], Path(message["path"]), begun=True)
                case "end":
                    return message
                case _:
                    raise GaveBack

    def _deliver(self, worker: HelperWorker, task: str, end: Message) -> None:
        for name, path in end["files"].items():
            _send(worker, task, name, Path(path))
        worker.ask(lambda: worker.scheduler.hearth_end(task=task, event=end["event"]))
        self._pipe.tell("delivered", id=task)


def _fetch(worker: HelperWorker, task: str, sha256: str, size: int, path: Path) -> None:
    digest = hashlib.sha256()
    with path.open("wb") as file:
        while True:
            offset = file.tell()
            answer = worker.ask(lambda offset=offset: worker.scheduler.hearth_fetch(task=task, sha256=sha256, offset=offset))  # type: ignore[misc]
            if not answer["data"]:
                break
            digest.update(answer["data"])
            file.write(answer["data"])
            if file.tell() > size:
                break
    if digest.hexdigest() != sha256:  # it has changed there since
        raise fetched_files.odd_files()


def _send(worker: HelperWorker, task: str, name: str, path: Path, begun: bool = False) -> None:
    """Send a file. `begun`: it is no result, but what another machine would go on from."""
    digest, offset = hashlib.sha256(), 0
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while True:
            data = file.read(BLOCK_BYTES)
            digest.update(data)
            last = offset + len(data) >= size
            block = {"task": task, "name": name, "offset": offset, "data": data, "last": last, "sha256": digest.hexdigest() if last else ""}
            block["begun"] = begun
            worker.ask(lambda block=block: worker.scheduler.hearth_keep(**block))  # type: ignore[misc]
            offset += len(data)
            if last:
                return


class HelperWorker(Worker):
    def __init__(self, scheduler: str, errands: Errands, **options: Any) -> None:
        """No extensions: the scheduler has none, and would answer every heartbeat that tells of one with an error."""
        super().__init__(scheduler, nthreads=TASKS_MOST, memory_limit=0, dashboard=False, extensions={}, **options)
        self._errands = errands
        self.stream_handlers["hearth-stop"] = self._stop_task
        self.stream_handlers["hearth-ask"] = self._ask
        self.stream_handlers["hearth-want"] = self._want

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none, as on the main machine."""

    async def close(self, *arguments: Any, **options: Any) -> Any:
        """Give tasks back first: dask waits for the thread that runs them, which would wait for the engine."""
        self._errands.give_all_back()
        return await super().close(*arguments, **options)

    def _stop_task(self, task: str) -> None:
        self._errands.stop(task)

    def _ask(self, question: str, body: str) -> None:
        self._errands.ask(question, body)

    def _want(self, body: str) -> None:
        self._errands.want(body)

    def carry_out(self, task: str, body: str) -> None:
        """Called in the thread that runs tasks."""
        try:
            self._errands.carry_out(self, task, body)
        except GaveBack as back:
            raise Reschedule from back

    def ask(self, question: Callable[[], Coroutine[Any, Any, Any]]) -> dict[str, Any]:
        """Ask the main machine from the thread that runs tasks; GaveBack if it no longer wants this task from here."""

        async def put() -> Any:
            return await question()

        try:
            answer = asyncio.run_coroutine_threadsafe(put(), self.loop.asyncio_loop).result(ANSWER_S)
        except (OSError, TimeoutError) as fault:
            raise GaveBack from fault
        if not isinstance(answer, dict) or "refused" in answer:
            raise GaveBack
        return answer
