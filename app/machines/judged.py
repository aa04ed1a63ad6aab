"""What came of what machines were given: what arrived whole, why the latest did not, and who failed at which job."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Final

from app.base.duration import word_duration
from app.base.sentence import Sentence, say
from app.engine.jobs.events import Event, Failed
from app.machines.helping_machine import HelpingMachine

SILENT_S: Final = 300.0
"""A step takes seconds, loading a model a minute or two; who says nothing of its tasks for so long hangs, or is too slow to wait for."""
LOST_MOST: Final = 3
"""Times that a machine may be lost in the middle of one job, as the job may be what it dies of."""


class Judged:
    """Whoever takes results in says what they are. Any thread may call; each change is one step."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        """Tasks that arrived whole since this machine's start, by machine."""
        self.failed: dict[str, Sentence] = {}
        """Why nothing of a machine's latest task can be used."""
        self._heard_s: dict[str, float] = {}
        """When a machine said something of its tasks."""
        self.unable: defaultdict[str, set[str]] = defaultdict(set)
        """The machines that failed at a job, which get it no more."""
        self._here: set[str] = set()
        """Jobs for the engine here alone."""
        self._lost: Counter[tuple[str, str]] = Counter()

    def accept(self, machine: str) -> None:
        self.done[machine] += 1
        self.failed.pop(machine, None)

    def refuse(self, machine: str, end: Event) -> None:
        """`end`: what it said itself."""
        said = end.sentence if isinstance(end, Failed) else say("helper.junk", "it sent something else than was asked for")
        self.failed[machine] = say("helper.failed", "its latest task came to nothing: {reason}", reason=said)

    def refuse_endless(self, machine: str, gone_s: float) -> None:
        """Note that a machine was at a task for longer than anybody waits."""
        self.refuse(machine, Failed(say("helper.endless", "it did not end within {time}", time=word_duration(gone_s))))

    def hear(self, machine: str) -> None:
        """Note that a machine said something of its tasks, or was given one."""
        self._heard_s[machine] = time.monotonic()

    def is_silent(self, machine: str) -> bool:
        """Tell whether a machine that has tasks has said nothing of them for too long; keep that as its failure."""
        silent = time.monotonic() - self._heard_s.get(machine, math.inf) > SILENT_S
        if silent:
            self.refuse(
                machine,
                Failed(say("helper.silent", "it said nothing for {minutes} {minutes:minute|minutes}", minutes=round(SILENT_S / 60))),
            )
        return silent

    def note_lost(self, job: str, at_it: Collection[str], machines: Iterable[HelpingMachine]) -> None:
        """Note which of the machines that were at a job went, or fell silent, in the middle of it."""
        there = {each.id for each in machines if each.online and not each.silent}
        for lost in {*at_it} - there:
            self._lost[job, lost] += 1
            if self._lost[job, lost] >= LOST_MOST:
                self.unable[job].add(lost)

    def keep_here(self, job: str) -> None:
        """Leave a job to the engine here, as a file here cannot be read or written; it says what is wrong."""
        self._here.add(job)

    def is_kept_here(self, job: str) -> bool:
        return job in self._here

    def failed_at(self, job: str) -> bool:
        """Tell whether others are kept from a job, all or some."""
        return job in self._here or bool(self.unable.get(job))

    def tidy(self, is_live: Callable[[str], bool]) -> None:
        """Forget jobs that have ended: one that is resumed may go to any machine again."""
        for job in [each for each in {*self.unable, *self._here, *(lost for lost, _ in self._lost)} if not is_live(each)]:
            self.unable.pop(job, None)
            self._here.discard(job)
            self._lost = Counter({key: count for key, count in self._lost.items() if key[0] != job})
