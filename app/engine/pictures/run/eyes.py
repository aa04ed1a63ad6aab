"""Look at pictures for the page: load what sees from a local folder, ask it, and leave the answer in the task's folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.base.paths import Home
from app.base.sentence import Sentence
from app.compat.machine import meter
from app.compat.planning.types import Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished
from app.engine.jobs.tasks import Describe, Pick
from app.engine.models import model_folder
from app.engine.models.judged_files import judge_folder
from app.engine.models.loading.loaded import same_placement
from app.engine.models.model import Model
from app.engine.models.on_disk import Located
from app.engine.pictures.families.florence_file import Describer
from app.engine.pictures.families.sam_file import Picker

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam

SEERS: Final = {"sam": Picker, "florence2": Describer}
"""By the family of a model: each answers its own task with a file."""


class Eye:
    """A loaded model that sees; one task at a time."""

    def __init__(self, seer: Any, plan: Plan, notes: tuple[Sentence, ...]) -> None:
        self.notes, self._seer, self._plan = notes, seer, plan

    def run(self, task: Pick | Describe, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Answer; the last event is Finished, with the answer's file."""
        began_s, path = time.monotonic(), self._seer.answer(task, job)
        yield Finished((str(path),), time.monotonic() - began_s, 0.0, "", meter.read().highest_bytes)

    def adapt(self, plan: Plan) -> bool:
        """Tell whether the weights need not be loaded again."""
        return same_placement(self._plan, plan)

    def close(self) -> None:
        del self._seer


def load_found(found: Located, model: Model, plan: Plan, home: Home) -> Eye:
    judge_folder(found.folder)
    model_folder.check_part(found.folder, found.folder)
    notes: list[Sentence] = []
    return Eye(SEERS[model.family](found.folder, plan, notes), plan, tuple(notes))
