"""Define what runs beside the journal: self-test, measuring, hearing, looking at a picture, enlarging a finished one, and work for other machines."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Final, NewType


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Run every attention path against the reference; store the verdicts."""


@dataclass(frozen=True, slots=True)
class Tune:
    """Measure speed at several chunk sizes for a model's own attention shape; store the curve."""

    model: str


@dataclass(frozen=True, slots=True)
class TimedSentence:
    """One whose time in a sound is known."""

    begin_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Hear:
    """Hear what is said in sounds; store it in a file for each."""

    model: str
    sounds: tuple[str, ...]
    stores: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """This is meant to be said in each, where that is known."""
    languages: tuple[str, ...] = ()
    sentences: tuple[tuple[TimedSentence, ...], ...] = ()
    """Where the times of a sound's sentences are known, only the time of each word is looked for."""


@dataclass(frozen=True, slots=True)
class Enlarge:
    """Enlarge a finished picture without painting it anew; the file lies in the task's folder, with the settings that the picture has."""

    picture: str
    times: int
    enlarger: str
    """A request names it so; empty: a formula does it."""


@dataclass(frozen=True, slots=True)
class Pick:
    """Find the thing in a picture that a point lies on; its mask is a file in the task's folder."""

    model: str
    picture: str
    """No other picture ever has the same path: what the model saw in it is remembered by that."""
    x: float
    y: float
    """Shares of its sides."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Say in words what a picture shows; they are a file in the task's folder."""

    model: str
    picture: str


MaintenanceTask = SelfTest | Tune | Hear | Enlarge | Pick | Describe

TaskId = NewType("TaskId", str)
"""It is used wherever a job's id is, and never equals one."""
_PREFIX: Final = "errand-"


def new_task_id() -> TaskId:
    return TaskId(f"{_PREFIX}{time.monotonic_ns()}")


def is_task(job: str) -> bool:
    return job.startswith(_PREFIX)


_LENT: Final = "lent-"


def name_lent(task: str) -> str:
    """Name the work for another machine's task; it is used wherever a job's id is, and never equals one. Its folder is called so: no text of
    another machine is a path."""
    return f"{_LENT}{hashlib.sha256(task.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def is_lent(job: str) -> bool:
    return job.startswith(_LENT)


def is_journalled(job: str) -> bool:
    """Tell whether journal and shelf know it."""
    return not (is_task(job) or is_lent(job))
