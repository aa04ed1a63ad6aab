"""Self-test and Tune as the window starts them: one at a time, shown until the next."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.jobs.tasks import MaintenanceTask, SelfTest
from app.engine.keeper.keeper import Keeper


@dataclass(slots=True)
class MeasuringDesk:
    """The measurement that runs or ran last."""

    keeper: Keeper
    job: str = ""
    kind: str = ""

    def start(self, task: MaintenanceTask) -> None:
        """Start a measurement, unless one waits or runs."""
        if not self.is_running():
            self.job, self.kind = self.keeper.start_task(task), type(task).__name__

    def is_running(self) -> bool:
        return bool(self.job) and self.keeper.get_progress(self.job).end is None

    def give_way(self) -> None:
        """End a self-test, which takes minutes, because somebody's job waits. What it has found is kept."""
        if self.kind == SelfTest.__name__:
            self.stop()

    def stop(self) -> None:
        if self.is_running():
            self.keeper.stop(self.job)
