"""Draw a job's seed once and store it, so that a resumed job reuses it; each part has its own by its place."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from app.base import atomic_write
from app.engine.jobs.request import Request
from app.engine.jobs.settings import SEED_LIMIT

_DRAWN: Final = "seed"


def draw_seed(request: Request, job: Path) -> int:
    if request.seed is not None:
        return request.seed
    drawn = job / _DRAWN
    if not drawn.is_file():
        atomic_write.write_text(drawn, str(random.SystemRandom().randrange(SEED_LIMIT)))
    return int(drawn.read_text("utf-8"))


def is_drawn(request: Request, job: Path) -> bool:
    """Tell whether a running job's seed is there: the engine draws it, so that two do not draw at once."""
    return request.seed is not None or (job / _DRAWN).is_file()


def seed_of_part(seed: int, place: int) -> int:
    """Return a part's seed, by its job's."""
    return (seed + place) % SEED_LIMIT
