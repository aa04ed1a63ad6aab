"""Which machines failed at which jobs, and which jobs are for the engine here alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final

from app.machines.helping_machine import HelpingMachine

LOST_MOST: Final = 3
"""Times that a machine may be lost in the middle of one job, as the job may be what it dies of."""


class Failures:
    """Any thread may call; each change is one step."""

    def __init__(self) -> None:
        self._unable: dict[str, set[str]] = {}
        self._here: set[str] = set()
        self._lost: Counter[tuple[str, str]] = Counter()

    def find(self, job: str) -> Collection[str]:
        """Return the machines that failed at a job, which get it no more."""
        return self._unable.get(job, ())

    def open(self, job: str) -> set[str]:
        """Return the same, to add to."""
        return self._unable.setdefault(job, set())

    def note_lost(self, job: str, at_it: Collection[str], machines: Iterable[HelpingMachine]) -> None:
        """Note which of the machines that were at a job went, or fell silent, in the middle of it."""
        there = {each.id for each in machines if each.online and not each.silent}
        for lost in {*at_it} - there:
            self._lost[job, lost] += 1
            if self._lost[job, lost] >= LOST_MOST:
                self.open(job).add(lost)

    def keep_here(self, job: str) -> None:
        """Leave a job to the engine here, as a file here cannot be read or written; it says what is wrong."""
        self._here.add(job)

    def is_kept_here(self, job: str) -> bool:
        return job in self._here

    def has_any(self, job: str) -> bool:
        return job in self._here or bool(self._unable.get(job))

    def tidy(self, is_live: Callable[[str], bool]) -> None:
        """Forget jobs that have ended: one that is resumed may go to any machine again."""
        for job in [each for each in {*self._unable, *self._here, *(lost for lost, _ in self._lost)} if not is_live(each)]:
            self._unable.pop(job, None)
            self._here.discard(job)
            self._lost = Counter({key: count for key, count in self._lost.items() if key[0] != job})
