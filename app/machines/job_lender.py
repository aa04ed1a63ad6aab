"""Give whole jobs that wait in the queue to machines that are idle, while the engine here is at another one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from app.engine.jobs.events import Event, Finished
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Request, SpeechRequest
from app.engine.jobs.seed import draw_seed
from app.engine.models import catalog, on_disk
from app.engine.process.keeper import Keeper
from app.machines.hub import HelpingMachine, Hub, TaskEnd
from app.machines.results import is_picture
from app.machines.tasks.portable import pack

LOOKED_AT: Final = 32
"""Jobs at the head of the queue."""
FAILURES_MOST: Final = 1
"""Of one job on other machines; then the engine here does it, and says what is wrong."""


@dataclass(frozen=True, slots=True)
class _Away:
    task: str
    machine: str


class JobLender:
    """Called by one thread at a time; ends come in the hub's."""

    def __init__(self, keeper: Keeper, hub: Hub) -> None:
        self._keeper, self._hub = keeper, hub
        self._away: dict[str, _Away] = {}
        """What other machines do, by job."""
        self._failures: Counter[str] = Counter()
        self._given: Counter[str] = Counter()
        """Tasks so far, by job: its first one is named alike after a restart, and the same helper goes on with its pictures."""

    def offer(self) -> bool:
        """Give waiting jobs away, in their order; tell whether one waits that another machine could do."""
        machines = self._hub.list_machines()
        self._take_back_lost({each.id for each in machines if each.online and not each.resting})
        if not self._keeper.state.job or not any(is_at_work(each) for each in machines):
            return False  # the engine here takes the next one
        wanted, best = False, cache(lambda kind: on_disk.find_best(self._keeper.home, kind).id)
        for job in self._keeper.journal.list_waiting()[:LOOKED_AT]:
            model = job.request.model or best("speech" if isinstance(job.request, SpeechRequest) else "picture")
            able = [each for each in machines if is_able(each, model)]
            if self._failures[job.id] < FAILURES_MOST and model in catalog.BY_ID and able:
                wanted = True
                busy = {away.machine for away in self._away.values()}
                if idle := [each.id for each in able if not each.tasks and each.id not in busy]:
                    self._send(job, model, idle[0])
        return wanted

    def close(self, goes_on: bool) -> None:
        """Put what is away back to its place in the queue. `goes_on`: leave it away, for the next start to go on with."""
        if not goes_on:
            self._take_back_lost(set())

    def _send(self, job: Job, model: str, machine: str) -> None:
        self._given[job.id] += 1
        task = f"{job.id}-all-{self._given[job.id]}"
        try:
            portable = pack(replace(job.request, model=model, seed=draw_seed(job.request, self._keeper.folder(job.id))))
        except OSError:  # a file that it needs is gone; the engine says so
            self._failures[job.id] += 1
            return

        def stop() -> None:
            self._away.pop(job.id, None)
            self._hub.stop(task)

        if self._keeper.lend_out(job.id, model, stop) is not None:
            self._away[job.id] = _Away(task, machine)
            self._hub.submit(task, portable, [machine], lambda _, event: self._hear(job.id, event), lambda end: self._take(job, end))

    def _hear(self, job: str, event: Event) -> None:
        self._keeper.tell_lent_out(job, event)

    def _take(self, job: Job, end: TaskEnd) -> None:
        self._away.pop(job.id, None)
        known = self._hub.register.find(end.machine)
        if isinstance(end.event, Finished) and is_result(job.request, end):
            self._keeper.end_lent_out(job.id, end.event, end.files, known.name if known is not None else "")
        else:
            self._failures[job.id] += 1
            self._keeper.give_up_lent_out(job.id)

    def _take_back_lost(self, online: set[str]) -> None:
        for job, away in [*self._away.items()]:
            if away.machine not in online:
                self._hub.stop(away.task)
                self._away.pop(job, None)
                self._keeper.give_up_lent_out(job)


def is_at_work(machine: HelpingMachine) -> bool:
    return machine.online and not machine.paused and not machine.resting


def is_able(machine: HelpingMachine, model: str) -> bool:
    return is_at_work(machine) and model in machine.models


def is_result(request: Request, end: TaskEnd) -> bool:
    """Tell whether the files are what was asked for."""
    if isinstance(request, SpeechRequest):
        return [path.suffix for path in end.files.values()] == [f".{request.format}"]
    return len(end.files) == request.batch and all(map(is_picture, end.files.values()))
