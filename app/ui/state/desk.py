"""What every tab shares: the keeper, the settings, and the desks for jobs, models, plans, measurements and other machines."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from app.engine.jobs.creation import Creation
from app.engine.keeper.keeper import Keeper
from app.engine.models.chosen import parse_kept_chunk
from app.engine.models.downloads import LINE_WAIT_S, Downloads
from app.engine.models.voice_limits import DIA
from app.engine.speech.kind import as_script
from app.engine.speech.sound import spoken_parts
from app.engine.speech.text import script, voices
from app.engine.speech.text.known_voices import list_known, name_voices
from app.engine.speech.text.spoken_words import list_heard
from app.ui.state.book_desk import BookDesk
from app.ui.state.disk_desk import DiskDesk
from app.ui.state.editing import Editing
from app.ui.state.enlarging import Enlarging
from app.ui.state.hearing_desk import HearingDesk
from app.ui.state.jobs_desk import JobsDesk
from app.ui.state.listening import Listening
from app.ui.state.lora_desk import LoraDesk
from app.ui.state.machine_desk import MachineDesk
from app.ui.state.measuring_desk import MeasuringDesk
from app.ui.state.models_desk import ModelsDesk
from app.ui.state.notifying import Notifying
from app.ui.state.other_machines import OtherMachines
from app.ui.state.pausing import Pausing
from app.ui.state.person import OWNER
from app.ui.state.settings import Settings
from app.ui.state.upkeep import Upkeep


@dataclass(slots=True)
class Desk:
    """One for the whole window."""

    keeper: Keeper
    settings: Settings
    leaving: threading.Event = field(default_factory=threading.Event)
    """It is set when this process is to end, so that start.py can repair or exchange what it runs on."""
    models: ModelsDesk = field(init=False)
    machine: MachineDesk = field(init=False)
    measuring: MeasuringDesk = field(init=False)
    hearing: HearingDesk = field(init=False)
    enlarging: Enlarging = field(init=False)
    jobs: JobsDesk = field(init=False)
    book: BookDesk = field(init=False)
    listening: Listening = field(init=False)
    editing: Editing = field(init=False)
    loras: LoraDesk = field(init=False)
    others: OtherMachines = field(init=False)
    downloads: Downloads = field(init=False)
    pausing: Pausing = field(init=False)
    upkeep: Upkeep = field(init=False)
    notifying: Notifying = field(init=False)
    disk: DiskDesk = field(init=False)

    def __post_init__(self) -> None:
        self.keeper.set_chunk(parse_kept_chunk(self.settings.get("choice")))
        self.models = ModelsDesk(self.keeper, self.settings)
        self.models.look_at_start()
        self.machine = MachineDesk(self.keeper, self.settings)
        self.measuring = MeasuringDesk(self.keeper)
        self.hearing = HearingDesk(self.keeper)
        self.enlarging = Enlarging(self.keeper)
        self.jobs = JobsDesk(self.keeper, self.settings, self.models, self.machine, self.measuring, self.hearing)
        self.listening = Listening(self.hearing, self.jobs)
        self.editing = Editing(self.jobs)
        self.book = BookDesk(self.jobs)
        self.loras = LoraDesk(self.keeper, self.settings)
        self.downloads = Downloads(self.keeper.home, line_wait_s=LINE_WAIT_S)
        self.others = OtherMachines(self.keeper, self.settings, self.downloads)
        self.pausing = Pausing(self.keeper, self.settings)
        self.upkeep = Upkeep(self.settings, self.leaving)
        self.notifying = Notifying(self.keeper, self.settings)
        self.disk = DiskDesk(self.keeper, self.models, self.downloads, self.book.empty_bin)
        self.downloads.recall(self.models.list_all())

    def make_upload_folder(self) -> Path:
        folder = self.keeper.home.scratch / "uploads" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def keep_voice(self, creation: int, name: str) -> None:
        """Save the voice of one of the owner's creations under a name."""
        spoken = self.jobs.find_creation(creation, OWNER)
        heard = self._read_heard(spoken)
        voices.keep_voice(self.keeper.home, name, spoken.path, heard, DIA, spoken_by=spoken.model, known=self._list_known(spoken, heard))

    def _list_known(self, spoken: Creation, heard: str) -> tuple[str, ...]:
        """Return the ready voices heard in a result, if its model knows them by name and had no other clip as its voice."""
        request = as_script(spoken.request)
        limits = self.models.read_limits(spoken.model)[1]
        if request is None or not limits.ready:
            return ()
        said, kept = ([turn for part in script.parse_script(text, limits).parts for turn in part.turns] for text in (request.text, heard))
        named = limits.usual
        if request.voice is not None:
            named = name_voices(said[0].speaker, voices.find_known(Path(request.voice.path)), limits)
        return list_known(named, kept, limits)

    def _read_heard(self, spoken: Creation) -> str:
        """Return the words of a result; of one that was stopped before its end, those that were spoken."""
        request = as_script(spoken.request)
        if spoken.whole or request is None:
            return spoken.text
        limits, folder = self.models.read_limits(spoken.model)[1], self.keeper.folder(spoken.job)
        parts = script.parse_script(request.text, limits).parts
        lasted_s = [spoken_parts.measure(folder, place, part.text) or part.seconds for place, part in enumerate(parts)]
        return " ".join(map(str, list_heard(parts, lasted_s, spoken.seconds * request.speed - request.tail_s, limits)))
