"""The points of the live charts: speed and memory at each beat of the engine, and what changed since the point before."""

from __future__ import annotations

from collections import deque

from app.base.sentence import Sentence, say
from app.compat.machine.meter import Reading
from app.compat.planning.plan_words import word_chunk
from app.compat.planning.types import Chunk
from app.engine.jobs.events import Step
from app.engine.keeper.state import Sample

HISTORY = 600


class Charts:
    """Written by the engine's loop only; others read `points`."""

    def __init__(self) -> None:
        self.points: deque[Sample] = deque(maxlen=HISTORY)
        self._marks: list[Sentence] = []
        self._chunk: Chunk | None = None
        """Asked for at the last point; None before the first."""

    def mark(self, change: Sentence) -> None:
        """Show a fallback at the next point."""
        self._marks.append(change)

    def add(self, step: Step | None, reading: Reading, chunk: Chunk) -> None:
        if self._chunk not in (None, chunk):
            self.mark(say("chart.chunk", "chunk size {chunk}", chunk=word_chunk(chunk)))
        marks, self._marks, self._chunk = tuple(self._marks), [], chunk
        self.points.append(Sample(step.rate if step else 0.0, step.unit if step else "", reading, marks))
