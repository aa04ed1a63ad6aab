"""What came of the tasks that machines were given: how many arrived whole, and why a machine's latest one did not."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Final

from app.base.duration import word_duration
from app.base.sentence import Sentence, say
from app.engine.jobs.events import Event, Failed

SILENT_S: Final = 300.0
"""A step takes seconds, loading a model a minute or two; who says nothing of its tasks for so long hangs, or is too slow to wait for."""


class Judged:
    """Whoever takes results in says what they are. Any thread may call."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        """Tasks that arrived whole since this machine's start, by machine."""
        self.failed: dict[str, Sentence] = {}
        """Why nothing of a machine's latest task can be used."""
        self._heard_s: dict[str, float] = {}
        """When a machine said something of its tasks."""

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
            said = say("helper.silent", "it said nothing for {minutes} {minutes:minute|minutes}", minutes=round(SILENT_S / 60))
            self.failed[machine] = say("helper.failed", "its latest task came to nothing: {reason}", reason=said)
        return silent
