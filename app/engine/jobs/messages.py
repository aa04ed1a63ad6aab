"""Define the messages between the keeper and its engine process, both ways."""

from __future__ import annotations

from dataclasses import dataclass

from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.machine.verdicts import Fault
from app.compat.planning.types import Choice, Plan
from app.engine.jobs.control import Dial
from app.engine.jobs.events import Event
from app.engine.jobs.request import Request
from app.engine.jobs.tasks import MaintenanceTask


@dataclass(frozen=True, slots=True)
class Died:
    """What killed the engine during this job, so that the next attempt can avoid it."""

    fault: Fault
    step: int | None
    words: str
    loading: bool = False
    """It died while loading the model."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run a job. `folder` is the job's own; parts finished there are not made again."""

    job: str
    request: Request | MaintenanceTask
    choice: Choice
    folder: str
    died: Died | None = None
    yields: bool = False
    """A guest's job ignores the owner's chunk size if that cannot run here."""


@dataclass(frozen=True, slots=True)
class Stop:
    job: str


@dataclass(frozen=True, slots=True)
class Free:
    """Unload the models as soon as nothing runs."""


@dataclass(frozen=True, slots=True)
class Quit:
    pass


Order = Run | Stop | Dial | Free | Quit


@dataclass(frozen=True, slots=True)
class Ready:
    """The engine can take a job. `hardware` is the pretended one, if any."""

    hardware: Hardware


@dataclass(frozen=True, slots=True)
class Beat:
    """The engine is alive. `quiet_s` is the time since a running job last reported, None when idle."""

    reading: Reading
    model: str
    quiet_s: float | None
    held_bytes: int = 0
    """The weights on the device take so much; they are unloaded when another model needs the memory."""
    checked: tuple[int, int] = (0, 0)
    """So many of so many questions about this machine are answered; (0, 0): they are not counted yet."""
    unheard_s: float | None = None
    """Stop was pressed so long ago, while the running job has not seen it."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of this job; sent again after each fallback."""

    job: str
    model: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class JobEvent:
    job: str
    event: Event


Report = Ready | Beat | Planned | JobEvent
