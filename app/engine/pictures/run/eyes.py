"""Look at pictures for the page: load what sees from a local folder, ask it, and leave the answer in the task's folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.base.paths import Home
from app.base.sentence import Sentence
from app.compat.machine import meter
from app.compat.planning.types import Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished
from app.engine.jobs.tasks import Pick
from app.engine.models import model_folder
from app.engine.models.judged_files import judge_folder
from app.engine.models.loading.loaded import same_placement
from app.engine.models.model import Model
from app.engine.models.on_disk import Located
from app.engine.pictures.families.sam_file import Picker

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam

PICKED: Final = "picked.png"


class Eye:
    """A loaded model that sees; one task at a time."""

    def __init__(self, picker: Picker, plan: Plan, notes: tuple[Sentence, ...]) -> None:
        self.notes, self._picker, self._plan = notes, picker, plan

    def run(self, task: Pick, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Answer; the last event is Finished, with the answer's file."""
        began_s, path = time.monotonic(), job / PICKED
        self._picker.pick(Path(task.picture), task.x, task.y).save(path)
        yield Finished((str(path),), time.monotonic() - began_s, 0.0, "", meter.read().highest_bytes)

    def adapt(self, plan: Plan) -> bool:
        """Tell whether the weights need not be loaded again."""
        return same_placement(self._plan, plan)

    def close(self) -> None:
        del self._picker


def load_found(found: Located, model: Model, plan: Plan, home: Home) -> Eye:
    return load(found.folder, plan)


def load(folder: Path, plan: Plan) -> Eye:
    judge_folder(folder)
    model_folder.check_part(folder, folder)
    notes: list[Sentence] = []
    return Eye(Picker(folder, plan, notes), plan, tuple(notes))
