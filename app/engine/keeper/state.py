"""The engine's state for the strip on every tab, and the points of the live charts. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.base.sentence import Sentence
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.planning.types import Plan
from app.engine.keeper.recovery import Death


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of the live charts."""

    rate: float
    unit: str
    reading: Reading
    marks: tuple[Sentence, ...] = ()
    """They tell what changed since the point before: the chunk size asked for, a fallback."""


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the strip shows. `job` is the running one, "" when idle."""

    ready: bool = False
    hardware: Hardware | None = None
    model: str = ""
    plan: Plan | None = None
    job: str = ""
    reading: Reading = field(default_factory=Reading)
    checked: tuple[int, int] = (0, 0)
    """The check of this machine has answered so many questions, of so many."""
    restarts: int = 0
    trouble: Death | None = None
    """The last engine died of this; it is None once a job succeeds."""
    gave_up: bool = False
    """It failed to start so often that it is retried only now and then."""
    obstacle: Sentence | None = None
    """It prevents jobs from running even if the engine is ready; None once they can."""
    paused: Sentence | None = None
    """It says why no job is begun though all could run: somebody paused them, or they are to run at other times."""
