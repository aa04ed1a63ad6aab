"""Post every job's progress: readers see the current state, followers receive the rest."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain

from app.compat.planning.types import Plan
from app.engine.jobs.events import END, Event
from app.engine.jobs.progress import Progress
from app.engine.jobs.tasks import is_task

REMEMBERED = 50
"""Jobs that ended longer ago are removed; the journal and the shelf still know them. Tasks, which are only here, are
counted apart."""


class ProgressBoard:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._progress: dict[str, Progress] = {}
        self.watchers: dict[str, list[Callable[[Event], None]]] = {}
        """They are told of a job's events; `watch` alone changes them."""
        self.on_end: Callable[[str, Event], None] = lambda job, end: None
        """It is told of every end, and must not block."""

    def reopen(self, job: str) -> None:
        """Forget what was posted about a job that is to run again."""
        with self._lock:
            self.forget(job)
            self.open(job)

    def forget(self, job: str) -> None:
        with self._lock:
            self._progress.pop(job, None)

    def open(self, job: str, so_far: Progress = Progress()) -> None:  # noqa: B008 (frozen)
        """Know a job from now on; what was already posted stays, as its end may come before this call."""
        with self._lock:
            self._progress.setdefault(job, so_far)
            ended = [each for each, progress in self._progress.items() if progress.end and is_task(each) == is_task(job)]
            for old in ended[:-REMEMBERED]:
                del self._progress[old]

    def find(self, job: str) -> Progress | None:
        with self._lock:
            return self._progress.get(job)

    def get(self, job: str) -> Progress:
        return self.find(job) or Progress()

    def list_open(self) -> list[str]:
        """List jobs that may have followers waiting for their end."""
        with self._lock:
            return [each for each, progress in self._progress.items() if progress.end is None]

    def post(self, job: str, event: Event) -> None:
        with self._lock:
            if event in self.get(job).parts:
                return  # known since the job was resumed
            self._update(job, lambda progress: progress.add(event))
            for tell in self.watchers.get(job, ()):
                tell(event)
            if isinstance(event, END):
                self.on_end(job, event)

    @contextmanager
    def watch(self, job: str, tell: Callable[[Event], None]) -> Iterator[None]:
        """Call `tell`, which must not block, after every event of a job."""
        with self._lock:
            self.watchers.setdefault(job, []).append(tell)
        try:
            yield
        finally:
            with self._lock:
                self.watchers[job].remove(tell)
                if not self.watchers[job]:
                    del self.watchers[job]

    def set_plan(self, job: str, model: str, plan: Plan) -> None:
        self._update(job, lambda progress: progress.with_plan(model, plan))

    def name_model(self, job: str, model: str) -> None:
        """Set the model of a job whose plan another machine makes."""
        self._update(job, lambda progress: replace(progress, model=model))

    def follow(self, job: str, otherwise: Callable[[], Progress]) -> Iterator[Event]:
        """Yield what happened so far, in short, then everything as it happens, until the end. `otherwise` rebuilds
        removed jobs."""
        mine: queue.SimpleQueue[Event] = queue.SimpleQueue()
        with ExitStack() as watching:
            with self._lock:
                past = self.find(job)
                if past is not None:
                    watching.enter_context(self.watch(job, mine.put))
            to_come: Iterable[Event] = iter(mine.get, None) if past is not None else ()
            for event in chain((past or otherwise()).replay(), to_come):
                yield event
                if isinstance(event, END):
                    return

    def _update(self, job: str, change: Callable[[Progress], Progress]) -> None:
        with self._lock:
            self._progress[job] = change(self.get(job))
