"""List the finished parts in a job's folder, as the engine tells of them once it has loaded the model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from app.engine.files import spoken_parts
from app.engine.jobs.events import PartDone
from app.engine.jobs.request import SEED_LIMIT, PictureRequest, Request, SpeechRequest
from app.engine.jobs.seed import draw_seed
from app.engine.process.delivery import find_limits
from app.engine.text import script
from app.paths import Home


def list_finished(home: Home, request: Request, folder: Path) -> list[PartDone]:
    """Return them in order; none that cannot be read now, which the run finds out."""
    with contextlib.suppress(OSError, ValueError):
        return [*(_list_spoken(home, request, folder) if isinstance(request, SpeechRequest) else _list_painted(request, folder))]
    return []


def _list_spoken(home: Home, request: SpeechRequest, folder: Path) -> Iterator[PartDone]:
    parts = script.parse_script(request.text, find_limits(home, request.model)).parts
    for index, part in enumerate(parts):
        saved = spoken_parts.find(spoken_parts.sound_path(folder, index))
        if saved is not None and saved.whole and saved.text == part.text:
            yield PartDone(index, len(parts), str(saved.path), part.text, saved.seed, saved.seconds, doubt=saved.doubt)


def _list_painted(request: PictureRequest, folder: Path) -> Iterator[PartDone]:
    for index in range(request.batch):
        path = folder / f"picture-{index}.png"
        if path.is_file():
            yield PartDone(index, request.batch, str(path), request.prompt, (draw_seed(request, folder) + index) % SEED_LIMIT)
