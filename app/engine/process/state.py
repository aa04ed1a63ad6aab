"""How the engine stands: what the strip on every tab shows, and the points of the live charts. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.planning.types import Plan
from app.engine.process.recovery import Death
from app.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of the live charts."""

    time_s: float
    rate: float
    unit: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the strip shows. `job` is what runs now, "" when idle."""

    ready: bool = False
    hardware: Hardware | None = None
    model: str = ""
    plan: Plan | None = None
    job: str = ""
    reading: Reading = field(default_factory=Reading)
    restarts: int = 0
    trouble: Death | None = None
    """Why the last engine died; None once a job went well."""
    gave_up: bool = False
    """It died so often before it was ready that it is started again only now and then."""
    obstacle: Sentence | None = None
    """What keeps jobs from running, though the engine may be ready; None once they can."""
