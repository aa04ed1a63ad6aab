"""Measure a script's progress and speed for the step events; refine the estimate by the parts spoken so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.compat.machine.meter import Meter
from app.compat.planning.types import Ran
from app.engine.jobs.events import Step

STEP_EVERY_S = 0.1
BELIEVED_S = 5.0
"""So much speech has to be off before the estimates of the parts to come are corrected by half of that."""
OVERDUE = 0.1
"""A part that is longer than its estimate is always said to lack this share of it."""


@dataclass(slots=True)
class Pace:
    """Progress and speed of the whole script. Three things take time: preparing a part, making its frames, and making sound of them,
    which comes in bursts; each has its own measure, so that the time left does not follow the bursts."""

    frame_rate: float
    estimates: list[float]
    """Each part is expected to have so many frames; 0: it is kept as it is."""
    meter: Meter = field(default_factory=Meter)
    worked_s: float = 0.0
    made: int = 0
    """This run made so many rows."""
    given_up: int = 0
    """Attempts that came out wrong had so many frames; what is done and what there is to do grow by them."""
    reported_s: float = 0.0
    spoken: dict[int, int] = field(default_factory=dict)
    """A part is here with its frames, once it is spoken."""
    prepared_s: float = 0.0
    prepared: int = 0
    sounded_s: float = 0.0
    sounded: int = 0
    """Sound was made of so many frames."""

    def make_step(self, part: int, frames: int, unsounded: int, rows: int, elapsed_s: float, ran: Ran | None) -> Step:
        """This part has so many `frames`, of which some are `unsounded`; this run made `rows` rows of it in `elapsed_s`, sound included."""
        ratio = self._find_ratio()
        expected = self.estimates[part] * ratio
        left = max(expected - frames, OVERDUE * expected)
        later = sum(each * ratio for index, each in enumerate(self.estimates) if index != part and index not in self.spoken)
        done = sum(self.spoken.values()) + self.given_up + frames
        rate = rows / elapsed_s if elapsed_s > 0 else 0.0
        seconds = self._estimate_seconds(part, left + later, unsounded, self.made + rows, self.worked_s + elapsed_s)
        return Step(
            done=done,
            total=round(done + left + later),
            rate=rate,
            unit="frames",
            eta_s=seconds,
            memory=self.meter.read(),
            realtime=rate / self.frame_rate,
            part=part,
            parts=len(self.estimates),
            ran=ran,
        )

    def _find_ratio(self) -> float:
        """Return how many times longer the parts spoken so far are than their estimates."""
        believed = BELIEVED_S * self.frame_rate
        estimated = sum(self.estimates[each] for each in self.spoken)
        return (sum(self.spoken.values()) + believed) / (estimated + believed)

    def _estimate_seconds(self, part: int, frames: float, unsounded: int, made: int, worked_s: float) -> float | None:
        if not made:
            return None
        frame_s = (worked_s - self.sounded_s) / made
        sound_s = self.sounded_s / self.sounded if self.sounded else 0.0
        prepare_s = self.prepared_s / self.prepared if self.prepared else 0.0
        later = sum(1 for index, each in enumerate(self.estimates) if index != part and each and index not in self.spoken)
        return frames * frame_s + (frames + unsounded) * sound_s + later * prepare_s

    def record_prepared(self, elapsed_s: float) -> None:
        self.prepared_s += elapsed_s
        self.prepared += 1

    def record_sound(self, frames: int, elapsed_s: float) -> None:
        self.sounded_s += elapsed_s
        self.sounded += frames

    def record_finished(self, part: int, frames: int) -> None:
        self.spoken[part] = frames
