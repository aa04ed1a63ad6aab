"""Choose the engine's next work: maintenance tasks first, then the journal's jobs, then what other machines asked for.
Work that was not handed over returns to its place."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from app.compat.planning.types import Choice
from app.engine.jobs.journal import Job, Journal
from app.engine.jobs.messages import Died, Run
from app.engine.jobs.owners import OWNER
from app.engine.jobs.tasks import MaintenanceTask, TaskId, is_lent


class WorkQueue:
    """`folder_of` returns a job's own folder. `leaves`: whether a waiting job is for another machine."""

    def __init__(self, journal: Journal, folder_of: Callable[[str], Path], leaves: Callable[[Job], bool]) -> None:
        self._journal, self._folder_of, self._leaves = journal, folder_of, leaves
        self._lock = threading.Lock()
        self._tasks: deque[tuple[TaskId, MaintenanceTask]] = deque()
        self._lent: deque[Run] = deque()
        """Other machines asked for these; they are only done while nothing else waits."""
        self._held: Run | None = None
        """It was taken from the queue but not yet given to an engine."""

    def add_task(self, id_: TaskId, task: MaintenanceTask) -> None:
        with self._lock:
            self._tasks.append((id_, task))

    def add_lent(self, run: Run) -> None:
        with self._lock:
            self._lent.append(run)

    def withdraw(self, id_: str) -> bool:
        """Take a job or a task out; return False if it is not waiting."""
        if self._journal.withdraw(id_):
            return True
        with self._lock:
            waiting = len(self._tasks) + len(self._lent)
            self._tasks = deque(each for each in self._tasks if each[0] != id_)
            self._lent = deque(each for each in self._lent if each.job != id_)
            return len(self._tasks) + len(self._lent) < waiting

    def drop_tasks(self) -> list[TaskId]:
        with self._lock:
            dropped = [id_ for id_, _ in self._tasks]
            self._tasks.clear()
        return dropped

    @property
    def has_tasks(self) -> bool:
        return bool(self._tasks)

    def take(self, died: Callable[[str], Died | None]) -> Run | None:
        """Take the next one and hold it until `release`. `died`: what killed the engine during a job before."""
        with self._lock:
            task = self._tasks.popleft() if self._tasks else None
        if task is not None:
            self._held = Run(task[0], task[1], Choice(), str(self._folder_of(task[0])))
        elif job := self._journal.take(self._leaves):
            self._held = Run(job.id, job.request, job.choice, str(self._folder_of(job.id)), died(job.id), yields=job.owner != OWNER)
        else:
            with self._lock:
                lent = self._lent.popleft() if self._lent else None
            if lent is not None:
                self._held = replace(lent, died=died(lent.job))
        return self._held

    def hold(self, run: Run) -> None:
        """Hold a job that its engine could not do, until `take_back`."""
        self._held = run

    def release(self) -> None:
        """Forget a held one, because an engine has it now."""
        self._held = None

    def take_back(self) -> None:
        """Return what is still held to its place in the queue."""
        if self._held is None:
            return
        if isinstance(self._held.request, MaintenanceTask):
            with self._lock:
                self._tasks.appendleft((TaskId(self._held.job), self._held.request))
        elif is_lent(self._held.job):
            with self._lock:
                self._lent.appendleft(self._held)
        else:
            self._journal.put_back(self._held.job)
        self._held = None
