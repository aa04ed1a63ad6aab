"""Draw a job's seed once and store it, so that a resumed job reuses it."""

from __future__ import annotations

import random
from pathlib import Path

from app.base import atomic_write
from app.engine.jobs.request import SEED_LIMIT, Request


def draw_seed(request: Request, job: Path) -> int:
    if request.seed is not None:
        return request.seed
    drawn = job / "seed"
    if not drawn.is_file():
        atomic_write.write_text(drawn, str(random.SystemRandom().randrange(SEED_LIMIT)))
    return int(drawn.read_text("utf-8"))
