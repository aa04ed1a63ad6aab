"""The folders of jobs that ended: after a while what was only for watching goes, and the oldest folders go."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from app.engine.jobs.parts import drop_passing
from app.engine.keeper import kept_parts
from app.engine.keeper.stores import Stores

LISTENED_S = 60.0
"""Time for a page to fetch the last pieces of sound and previews after its job ended."""


class EndedFolders:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._ended_at_s: deque[tuple[float, Path]] = deque()

    def add(self, job: str) -> None:
        self._ended_at_s.append((time.monotonic(), self._stores.job_folder(job)))

    def tidy_next(self, running: str, interrupted: set[str]) -> None:
        """Tidy after the job that ended longest ago, if its time is over. `running`: a job that may have been resumed meanwhile;
        `interrupted`: jobs that a person may resume."""
        if not self._ended_at_s or time.monotonic() - self._ended_at_s[0][0] <= LISTENED_S:
            return
        _, folder = self._ended_at_s.popleft()
        if folder.name != running:
            drop_passing(folder)
        kept_parts.tidy(self._stores, {*(each.id for each in self._stores.journal.list_live()), *interrupted})
