"""Where jobs and their results are stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.base.paths import Home
from app.engine.jobs.journal import Journal
from app.engine.jobs.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Stores:
    home: Home
    journal: Journal
    shelf: Shelf

    def job_folder(self, job: str) -> Path:
        return self.home.scratch / "jobs" / job
