"""What came of the tasks that machines were given: how many arrived whole, and why a machine's latest one did not."""

from __future__ import annotations

from collections import Counter

from app.engine.jobs.events import Event, Failed
from app.sentence import Sentence, say


class Judged:
    """Whoever takes results in says what they are. Any thread may call."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        """Tasks that arrived whole since this machine's start, by machine."""
        self.failed: dict[str, Sentence] = {}
        """Why nothing of a machine's latest task can be used."""

    def take(self, machine: str) -> None:
        self.done[machine] += 1
        self.failed.pop(machine, None)

    def refuse(self, machine: str, end: Event) -> None:
        """`end`: what it said itself."""
        said = end.sentence if isinstance(end, Failed) else say("helper.junk", "it sent something else than was asked for")
        self.failed[machine] = say("helper.failed", "its latest task came to nothing: {reason}", reason=said)
