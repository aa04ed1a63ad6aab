"""Turn a job's finished parts into files for the user, and say what is missing. The job's folder keeps its parts. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import soundfile

from app.base.disk_faults import is_disk_full
from app.base.paths import Home
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.parts import DELIVERED, Parts
from app.engine.jobs.request import Request
from app.engine.kinds import parts_of


@dataclass(frozen=True, slots=True)
class Delivery:
    """`missing` counts from 1. `fault`: why finished parts are not in `files`."""

    files: tuple[str, ...] = ()
    seconds: float = 0.0
    missing: tuple[int, ...] = ()
    total: int = 0
    fault: str = ""

    @property
    def whole(self) -> bool:
        return bool(self.files) and not self.missing

    def describe_missing(self, folder: Path) -> tuple[Sentence, ...]:
        """Say what is missing, and where the rest is."""
        if self.fault:
            return (
                say(
                    "job.not-delivered",
                    "The finished parts could not be joined ({fault}). You can find them in {folder}.",
                    fault=self.fault,
                    folder=str(folder),
                ),
            )
        if not (self.files and self.missing):
            return ()
        done = self.total - len(self.missing)
        return (
            say_to_all(
                "job.missing",
                "Finished: {done} of {total}. Missing: {missing}.",
                done=done,
                total=self.total,
                missing=format_ranges(self.missing),
            ),
        )


def deliver(home: Home, request: Request, folder: Path) -> Delivery:
    if not folder.is_dir():
        return Delivery()
    parts = parts_of(home, request, folder)
    try:
        return _deliver(parts)
    except (OSError, Trouble, soundfile.LibsndfileError, ValueError) as fault:
        if is_disk_full(fault):
            raise
        return Delivery(fault=str(fault))


def _deliver(parts: Parts) -> Delivery:
    request, total = parts.request, len(parts.planned)
    made, wanted = {part.index for part in parts.left() if parts.fits(part)}, request.choose_parts(total)
    finished = [place for place in wanted if place in made]
    kept = [place for place in range(len(request.keep)) if place not in wanted and parts.files.shown(parts.folder, place).is_file()]
    due = range(total) if request.keep else wanted
    missing = tuple(place + 1 for place in sorted(set(due).difference(finished, kept)))
    if not finished:
        return Delivery(missing=missing, total=total)
    files, seconds = parts.kind.join(parts.home, request, parts.folder, [*finished, *kept], parts.folder / DELIVERED)
    return Delivery(files, seconds, missing, total)


def format_ranges(numbers: Iterable[int]) -> tuple[str, ...]:
    """Format numbers as ranges: 1, 3-5, 9."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(sorted(numbers)), lambda each: each[1] - each[0])]
    return tuple(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
