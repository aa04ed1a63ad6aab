"""What crosses between the keeper and its engine process, each way."""

from __future__ import annotations

from dataclasses import dataclass

from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.compat.machine.verdicts import Fault
from app.compat.planning.types import Choice, Chunk, Plan
from app.engine.jobs.events import Event
from app.engine.jobs.request import Request
from app.engine.jobs.tasks import MaintenanceTask


@dataclass(frozen=True, slots=True)
class Died:
    """What the engine died of at this job, so that the next attempt goes another way."""

    fault: Fault
    step: int | None
    words: str
    loading: bool = False
    """It died while the model was loaded."""


@dataclass(frozen=True, slots=True)
class Run:
    """Do this. `folder` is the job's own; what is finished in it already is not done again."""

    job: str
    request: Request | MaintenanceTask
    choice: Choice
    folder: str
    died: Died | None = None
    yields: bool = False
    """A visitor's: the owner's chunk size gives way where it cannot run here."""


@dataclass(frozen=True, slots=True)
class Stop:
    job: str


@dataclass(frozen=True, slots=True)
class SetChunk:
    """From the next attention call on."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Free:
    """Unload what is loaded, as soon as nothing runs."""


@dataclass(frozen=True, slots=True)
class Quit:
    pass


Order = Run | Stop | SetChunk | Free | Quit


@dataclass(frozen=True, slots=True)
class Ready:
    """The engine can take a job. `hardware` is pretended where that was asked for."""

    hardware: Hardware


@dataclass(frozen=True, slots=True)
class Beat:
    """Alive. `quiet_s` is how long ago a running job last said something, None where nothing runs."""

    reading: Reading
    model: str
    quiet_s: float | None
    held_bytes: int = 0
    """Weights on the device, which go when another model needs the room."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What was decided for this job, once it is; again after each rung of the ladder."""

    job: str
    model: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class JobEvent:
    job: str
    event: Event


Report = Ready | Beat | Planned | JobEvent
