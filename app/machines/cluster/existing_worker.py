"""What the workers of a Dask cluster that Hearth did not start run for it: one keeper in a process, which works as on a paired helper."""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from app.base import atomic_write, paths
from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed
from app.engine.keeper.keeper import Keeper
from app.engine.models.downloads import LINE_WAIT_S, Downloads
from app.machines.lent_tasks import LentTasks
from app.machines.tasks import event_json, fetched_files
from app.machines.wanted_models import WantedModels

_HELPERS: Final[dict[str, Guest]] = {}
"""Each goes by the address of its worker, as several may share a process."""
_LOCK: Final = threading.Lock()
STOPPED_MOST: Final = 1000
"""Of so many attempts that were stopped it is known; Dask begins none that was stopped so long ago."""


class Guest:
    """Hearth within somebody's worker. Its home is the worker's own folder, which goes with it; the models are this account's."""

    def __init__(self, folder: Path) -> None:
        # A nanny starts its worker as a daemon, and Python lets none start a process, which the engine is.
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        self._keeper = Keeper(Home(folder / "hearth", paths.home().models))
        models = WantedModels(self._keeper, Downloads(self._keeper.home, line_wait_s=LINE_WAIT_S), lambda op, **values: None, allowed=False)
        self._models, self._tasks = models, LentTasks(self._keeper, models.find)
        self._stopped = deque[str](maxlen=STOPPED_MOST)
        """These attempts at tasks were stopped, also before Dask had them begun here, which it may never do."""

    def describe(self) -> dict[str, Any]:
        """Say what is here, as a paired helper does."""
        state = self._keeper.state
        return {
            "card": state.hardware.name if state.hardware else "",
            "free_bytes": state.hardware.free_bytes if state.hardware else 0,
            "models": self._models.list_names(),
            "paused": not state.ready,
        }

    def answer(self, body: str) -> Mapping[str, Any] | None:
        return self._tasks.foresight.answer(body)

    def carry_out(
        self, task: str, attempt: str, body: str, files: Mapping[str, bytes], tell: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        """Return the end of a task and its files; with neither where it was stopped. `tell` is called with each event before."""
        end = dict[str, Any](event=None, files={})

        def hear(op: str, **said: Any) -> None:
            if op == "event":
                tell({"task": task, "event": said["event"]})
            elif op == "end" and attempt not in self._stopped:
                end["event"], end["files"] = said["event"], {name: Path(path).read_bytes() for name, path in said["files"].items()}

        try:
            self._put(json.loads(body)["files"], files)
            taken = self._tasks.take(task, hear)
            if attempt in self._stopped:  # before, when there was nothing to stop
                self._tasks.stop(task, unwanted=True)
            self._tasks.run(taken, body)
            if attempt not in self._stopped:  # else that did it, and the next one may have begun
                self._tasks.clear(task)
            return end
        except Trouble as trouble:
            return {"event": event_json.to_json(Failed(trouble.sentence)), "files": {}}

    def stop(self, task: str, attempt: str) -> None:
        self._stopped.append(attempt)
        self._tasks.stop(task, unwanted=True)

    def _put(self, sizes: object, files: Mapping[str, bytes]) -> None:
        """Put the files of a task where its request looks for them, by their hashes."""
        folder = self._keeper.home.scratch / "machines" / "files"
        for sha256 in fetched_files.choose_missing(folder, sizes):
            content = files.get(sha256, b"")
            if hashlib.sha256(content).hexdigest() != sha256:  # it has changed there since
                raise fetched_files.odd_files()
            with atomic_write.replacing(folder / sha256) as unfinished:
                unfinished.write_bytes(content)


def find_guest(worker: Any) -> Guest:
    with _LOCK:
        if worker.address not in _HELPERS:
            _HELPERS[worker.address] = Guest(Path(worker.local_directory))
        return _HELPERS[worker.address]


# What the client of the main machine has the workers call, each by its name, with plain values.


async def look(dask_worker: Any) -> dict[str, Any]:
    """Say what is here, out of the way of the worker's own loop."""
    return await asyncio.to_thread(lambda: find_guest(dask_worker).describe())


async def answer(body: str, dask_worker: Any) -> Mapping[str, Any] | None:
    return await asyncio.to_thread(lambda: find_guest(dask_worker).answer(body))


async def stop(task: str, attempt: str, dask_worker: Any) -> None:
    await asyncio.to_thread(lambda: find_guest(dask_worker).stop(task, attempt))


def carry_out(task: str, attempt: str, body: str, names: list[str], contents: list[bytes], topic: str) -> dict[str, Any]:
    from distributed import get_worker

    worker = get_worker()
    return find_guest(worker).carry_out(
        task, attempt, body, dict(zip(names, contents, strict=True)), lambda message: worker.log_event(topic, message)
    )
