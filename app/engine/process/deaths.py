"""Count the deaths of the engine at one job: a job is given up only after several deaths with nothing new finished in between. No torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from safetensors import SafetensorError, safe_open

from app.engine.jobs.messages import Died

DEATHS: Final = 3


@dataclass(frozen=True, slots=True)
class DeathRecord:
    """`deaths`: in a row, with nothing new finished in between. `reached`: the furthest each file ever was, so that work done twice is not new."""

    deaths: int = 0
    reached: Mapping[str, int] = field(default_factory=dict)
    climb: Died | None = None
    """What the next attempt has to go another way for."""
    climbed: bool = False

    @property
    def over(self) -> bool:
        return self.deaths >= DEATHS

    def add_death(self, reached: Mapping[str, int], died: Died | None) -> DeathRecord:
        """After one more death. The first of a row climbs only where nothing was climbed yet: what got on keeps its way."""
        moved = any(far > self.reached.get(name, 0) for name, far in reached.items())
        deaths = 1 if moved or not self.deaths else self.deaths + 1
        furthest = {name: max(far, self.reached.get(name, 0)) for name, far in {**self.reached, **reached}.items()}
        climbs = died is not None and (deaths > 1 or not self.climbed)
        return DeathRecord(deaths, furthest, died if climbs else None, self.climbed or climbs)


def measure_progress(folder: Path) -> dict[str, int]:
    """How far each part or picture is, as the folder has it: finished ones, kept steps, kept rows of sound."""
    far = {about.stem: 1 for about in folder.glob("part-*.json") if about.with_suffix(".wav").is_file()}
    far |= {picture.stem: 1 for picture in folder.glob("picture-*.png")}
    far |= {kept.stem: _count_rows(kept) for kept in folder.glob("unfinished-*.json")}
    return far | {kept.stem: _count_steps(kept) for kept in folder.glob("latent-*.safetensors")}


def _count_rows(kept: Path) -> int:
    try:
        return len(json.loads(kept.read_text("utf-8"))["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _count_steps(kept: Path) -> int:
    """One more where they are all done and only the decoder is left."""
    try:
        with safe_open(kept, "np") as file:
            about = file.metadata() or {}
        return int(about["done"]) + int(about["whole"])
    except (OSError, SafetensorError, ValueError, KeyError):
        return 0
