"""Turn a job's finished parts into files for the user: join sound, copy pictures. The job's folder keeps its parts. No
torch."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Final

import soundfile

from app.base.disk_faults import is_disk_full
from app.base.paths import Home
from app.base.sentence import Sentence, say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.request import Request, SpeechRequest, to_json
from app.engine.jobs.seed import draw_seed
from app.engine.models.on_disk import find_limits
from app.engine.speech.sound import join_sound, spoken_parts
from app.engine.speech.sound.join_sound import Finish, Piece
from app.engine.speech.text import script

DELIVERED: Final = "delivered"
"""A folder inside the job's; its files go to the shelf."""


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
    try:
        return _deliver_speech(home, request, folder) if isinstance(request, SpeechRequest) else _deliver_pictures(request.batch, folder)
    except (OSError, Trouble, soundfile.LibsndfileError, ValueError) as fault:
        if is_disk_full(fault):
            raise
        return Delivery(fault=str(fault))


def _deliver_speech(home: Home, request: SpeechRequest, folder: Path) -> Delivery:
    checked = script.parse_script(request.text, find_limits(home, request.model))
    total = len(checked.parts)
    wanted = request.choose_parts(total)
    finished = [place for place in wanted if place < total and _is_spoken(folder, place, checked.parts[place].text)]
    kept = [place for place in range(len(request.keep)) if place not in wanted and spoken_parts.sound_path(folder, place).is_file()]
    due = range(total) if request.keep else wanted
    missing = tuple(place + 1 for place in sorted(set(due).difference(finished, kept)))
    if not finished:
        return Delivery(missing=missing, total=total)
    pieces = [
        Piece(spoken_parts.sound_path(folder, place), checked.parts[place].pause_before_s)
        for place in sorted((*finished, *kept))
        if place < total
    ]
    finish = Finish(request.format, request.speed, request.loudness_lufs, request.tail_s + checked.pause_after_s)
    target = folder / DELIVERED / f"speech.{request.format}"
    seconds = join_sound.join(pieces, target, finish, to_json(replace(request, seed=draw_seed(request, folder))))
    return Delivery((str(target),), seconds, missing, total)


def _is_spoken(folder: Path, place: int, text: str) -> bool:
    """Tell whether a part's sound is there, of these words: an earlier Hearth may have split the script elsewhere."""
    saved = spoken_parts.find(spoken_parts.sound_path(folder, place))
    return saved is not None and saved.text == text


def _deliver_pictures(total: int, folder: Path) -> Delivery:
    """Copy the pictures; a resumed job still finds its own."""
    finished = {place: folder / f"picture-{place}.png" for place in range(total)}
    missing = tuple(place + 1 for place, path in finished.items() if not path.is_file())
    (folder / DELIVERED).mkdir(exist_ok=True)
    files = [str(shutil.copy2(path, folder / DELIVERED)) for path in finished.values() if path.is_file()]
    return Delivery(tuple(files), 0.0, missing, total)


def format_ranges(numbers: Iterable[int]) -> tuple[str, ...]:
    """Format numbers as ranges: 1, 3-5, 9."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(sorted(numbers)), lambda each: each[1] - each[0])]
    return tuple(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
