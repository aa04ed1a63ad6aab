"""Pictures as a kind of job: a batch's pictures, each by itself, and what comes from elsewhere. No torch."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.jobs.events import PartDone
from app.engine.jobs.kind import Part
from app.engine.jobs.parts import PAINTED
from app.engine.jobs.request import KindName, PictureRequest
from app.engine.jobs.seed import draw_seed, seed_of_part
from app.engine.models import catalog, safetensors
from app.engine.models.forecast import count_steps
from app.engine.models.model import Model
from app.engine.pictures.files.arrived import is_picture


class PictureKind:
    name: KindName = "picture"
    loads_with = "app.engine.pictures.run.painter"

    def check(self, home: Home, request: PictureRequest, model: Model) -> None:
        """What a model cannot paint is told by its run, which has its family at hand."""

    def plan_parts(self, home: Home, request: PictureRequest) -> tuple[Part, ...]:
        return (Part(request.prompt),) * request.batch

    def read_part(self, request: PictureRequest, path: Path, place: int, total: int) -> PartDone:
        return PartDone(place, total, str(path), request.prompt, seed_of_part(draw_seed(request, path.parent), place))

    def ask_alone(self, request: PictureRequest, place: int, seed: int) -> PictureRequest:
        return replace(request, batch=1, seed=seed_of_part(seed, place))

    def place_alone(self, place: int) -> int:
        return 0

    def measure_begun(self, path: Path, foreign: bool = False) -> int:
        """One more where all steps are done and only decoding is left."""
        try:
            header = safetensors.read_whole_header(path)
            done, whole = int(header.words["done"]), header.words["whole"] == "1"
            return 0 if "latents" not in header.entries or (whole and foreign) else done + whole
        except (OSError, Trouble, ValueError, LookupError):
            return 0

    def is_part(self, files: Sequence[Path], words: str, seed: int) -> bool:
        return is_picture(files[0])

    def is_result(self, request: PictureRequest, files: Sequence[Path], longest_s: float) -> bool:
        return len(files) == request.batch and all(map(is_picture, files))

    def measure_work(self, home: Home, request: PictureRequest) -> float:
        return count_steps(request, catalog.find(request.model)) * request.batch

    def join(
        self, home: Home, request: PictureRequest, folder: Path, places: Collection[int], target: Path
    ) -> tuple[tuple[str, ...], float]:
        """Copy them: a resumed job still finds its own."""
        target.mkdir(exist_ok=True)
        return tuple(str(shutil.copy2(PAINTED.shown(folder, place), target)) for place in sorted(places)), 0.0
