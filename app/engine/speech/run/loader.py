"""Load a voice of any family from a local folder, and speak requests with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from app.base.paths import Home
from app.compat.planning.types import Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event
from app.engine.jobs.request import SpeechRequest
from app.engine.models import model_folder
from app.engine.models.fingerprint import fingerprint
from app.engine.models.loading.loaded import same_placement
from app.engine.models.model import Model
from app.engine.models.on_disk import Located, find_limits
from app.engine.models.voice_families import find_family
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.family import Voice
from app.engine.speech.run.run import SpeechRun

if TYPE_CHECKING:
    from app.compat.attention.seam import Seam


class Speaker:
    """A loaded voice; one run at a time."""

    def __init__(self, voice: Voice, plan: Plan, model: str = "", home: Home | None = None) -> None:
        self.limits, self.notes = voice.limits, voice.notes
        self.voice, self._plan, self._model, self._home = voice, plan, model, home

    def run(self, request: SpeechRequest, control: Control, seam: Seam | None, job: Path) -> Iterator[Event]:
        """Speak the parts that `job` lacks; the last event is Finished or Stopped, where no other model's parts are missing."""
        yield from SpeechRun(self.voice, request, control, seam, job, model=self._model, find_limits=self._find_limits).events()

    def _find_limits(self, model: str) -> VoiceLimits:
        return self.limits if model == self._model or self._home is None else find_limits(self._home, model)

    def adapt(self, plan: Plan) -> bool:
        """Tell whether the weights need not be loaded again; the attention seam does the rest of a plan."""
        if not same_placement(self._plan, plan):
            return False
        self.voice, self._plan = self.voice.adapt(plan), plan
        return True

    def close(self) -> None:
        del self.voice


def load_found(found: Located, model: Model, plan: Plan, home: Home) -> Speaker:
    name = fingerprint(found.folder) if model.is_local else ""  # every machine has it in another folder
    return Speaker(_load(found.folder, plan, found.companions, name), plan, model.id, home)


def load(folder: Path, plan: Plan, beside: Mapping[str, Path] | None = None, name: str = "") -> Speaker:
    """Load the voice in `folder`. `beside`: its companions, by name, where they are not in the folder itself. `name`: what parts are kept
    under; empty: the folder's own."""
    return Speaker(_load(folder, plan, beside or {}, name), plan)


def _load(folder: Path, plan: Plan, beside: Mapping[str, Path], name: str) -> Voice:
    model_folder.check_part(folder, folder)
    loaded: Voice = import_module(find_family(folder).loads_with).load(folder, plan, beside, name or folder.name)
    return loaded
