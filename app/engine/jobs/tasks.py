"""Maintenance tasks, which make nothing for the shelf: test this machine, measure chunk sizes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, NewType


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Run every attention path against the reference; the verdicts are stored."""


@dataclass(frozen=True, slots=True)
class Tune:
    """Measure this machine over chunk sizes at a model's own attention shape; the curve is stored."""

    model: str


MaintenanceTask = SelfTest | Tune

TaskId = NewType("TaskId", str)
"""Of a task; it travels where a job's id does, and no job has one like it."""
_PREFIX: Final = "errand-"


def new_task_id() -> TaskId:
    return TaskId(f"{_PREFIX}{time.monotonic_ns()}")


def is_task(job: str) -> bool:
    return job.startswith(_PREFIX)
