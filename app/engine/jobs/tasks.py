"""What the engine can be sent to do that makes nothing for the shelf: test itself, measure chunk sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Run every attention path against the reference; the verdicts are stored."""


@dataclass(frozen=True, slots=True)
class Tune:
    """Measure this machine over chunk sizes at a model's own attention shape; the curve is stored."""

    model: str


MaintenanceTask = SelfTest | Tune
