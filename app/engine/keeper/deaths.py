"""Count the engine's deaths during one job: it is given up only after several deaths without new results in between. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.engine.jobs.messages import Died
from app.engine.kinds import measure_progress

DEATHS: Final = 3
"""A job is given up after so many deaths in a row."""


@dataclass(frozen=True, slots=True)
class DeathRecord:
    deaths: int = 0
    """So many in a row, with nothing new finished in between."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """Each file's furthest state, so that repeated work does not count as new."""
    avoid: Died | None = None
    """The next attempt has to avoid this."""
    fell_back: bool = False
    """An attempt had something to avoid already."""

    @property
    def over(self) -> bool:
        return self.deaths >= DEATHS

    def add_death(self, reached: Mapping[str, int], died: Died | None) -> DeathRecord:
        """Add one more death. The first of a row falls back only if no fallback was taken yet: a plan that made
        progress is kept."""
        moved = any(far > self.reached.get(name, 0) for name, far in reached.items())
        deaths = 1 if moved or not self.deaths else self.deaths + 1
        furthest = {name: max(far, self.reached.get(name, 0)) for name, far in {**self.reached, **reached}.items()}
        avoids = died is not None and (deaths > 1 or not self.fell_back)
        return DeathRecord(deaths, furthest, died if avoids else None, self.fell_back or avoids)


class DeathRecords:
    """The records of all jobs that engines died of and that did not end yet."""

    def __init__(self) -> None:
        self._records: dict[str, DeathRecord] = {}

    def find_avoided(self, job: str) -> Died | None:
        return self._records[job].avoid if job in self._records else None

    def count(self, job: str, folder: Path, died: Died | None) -> DeathRecord:
        """Return the record with one more death, to be kept once the job is queued again; `folder` shows how far it is."""
        return self._records.get(job, DeathRecord()).add_death(measure_progress(folder), died)

    def keep(self, job: str, record: DeathRecord) -> None:
        self._records[job] = record

    def forget(self, job: str) -> None:
        self._records.pop(job, None)
