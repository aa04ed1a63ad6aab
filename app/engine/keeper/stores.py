"""Where jobs and their results are stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.base.paths import Home
from app.engine.jobs.journal import Journal, require_id
from app.engine.jobs.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Stores:
    home: Home
    journal: Journal
    shelf: Shelf

    @property
    def jobs_folder(self) -> Path:
        return self.home.scratch / "jobs"

    @property
    def uploads(self) -> Path:
        return self.home.scratch / "uploads"

    def job_folder(self, job: str) -> Path:
        """Return a job's own folder; raise ValueError for what is no id, as a damaged row or a stranger's may have."""
        return self.jobs_folder / require_id(job)
