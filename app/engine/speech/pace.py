"""Measure a script's progress and speed for the step events; refine the estimate by the parts spoken so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.compat.machine.meter import Meter
from app.compat.planning.types import Ran
from app.engine.jobs.events import Step

STEP_EVERY_S = 0.1


@dataclass(slots=True)
class Pace:
    """Progress and speed of the whole script."""

    frame_rate: float
    expected: list[float]
    """Estimated frames of each part; exact once it is spoken."""
    meter: Meter = field(default_factory=Meter)
    worked_s: float = 0.0
    made: int = 0
    """Frames made in this run."""
    reported_s: float = 0.0

    def make_step(self, part: int, frames: int, rows: int, elapsed_s: float, ran: Ran | None) -> Step:
        before, after = sum(self.expected[:part]), sum(self.expected[part + 1 :])
        done = before + frames
        total = before + max(self.expected[part], frames) + after
        rate = rows / elapsed_s if elapsed_s > 0 else 0.0
        return Step(
            done=round(done), total=round(total), rate=rate, unit="frames", eta_s=(total - done) / rate if rate else None,
            memory=self.meter.read(), realtime=rate / self.frame_rate, part=part, parts=len(self.expected),
            ran=ran,
        )  # fmt: skip

    def record_finished(self, part: int, frames: int) -> None:
        """Correct the estimates of the parts to come by how far this one was off."""
        estimate, self.expected[part] = self.expected[part], frames
        ratio = min(2.0, max(0.5, frames / estimate)) if estimate else 1.0
        for later in range(part + 1, len(self.expected)):
            self.expected[later] *= ratio**0.5
