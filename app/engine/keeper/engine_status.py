"""What the engine does, as the strip and the live charts show it: changed by the loop, read by any thread."""

from __future__ import annotations

import dataclasses
import threading
from collections import deque

from app.base.sentence import Sentence, say
from app.compat.machine.hardware import with_room
from app.compat.machine.meter import Reading
from app.compat.planning.plan_words import word_chunk
from app.compat.planning.types import Chunk
from app.engine.jobs.events import Step
from app.engine.jobs.messages import Beat
from app.engine.keeper.state import EngineState, Sample

HISTORY = 600


class Charts:
    """Written by the engine's loop only; others read `points`."""

    def __init__(self) -> None:
        self.points: deque[Sample] = deque(maxlen=HISTORY)
        self._marks: list[Sentence] = []
        self._chunk: Chunk | None = None
        """It was asked for at the last point; None before the first."""

    def mark(self, change: Sentence) -> None:
        """Show a fallback at the next point."""
        self._marks.append(change)

    def add(self, step: Step | None, reading: Reading, chunk: Chunk) -> None:
        if self._chunk not in (None, chunk):
            self.mark(say("chart.chunk", "chunk size {chunk}", chunk=word_chunk(chunk)))
        marks, self._marks, self._chunk = tuple(self._marks), [], chunk
        self.points.append(Sample(step.rate if step else 0.0, step.unit if step else "", reading, marks))


class EngineStatus:
    def __init__(self) -> None:
        self.state = EngineState()
        self.charts = Charts()
        self._lock = threading.Lock()

    def set(self, **changes: object) -> None:
        with self._lock:
            self.state = dataclasses.replace(self.state, **changes)  # type: ignore[arg-type]

    def note_beat(self, beat: Beat) -> None:
        """Take over what the engine told of itself."""
        hardware = self.state.hardware
        if hardware is not None:
            hardware = with_room(hardware, beat.reading, beat.held_bytes)
        self.set(reading=beat.reading, model=beat.model, hardware=hardware, checked=beat.checked)
