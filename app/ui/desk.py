"""What every tab shares: the keeper, the settings, the language, and whose work is whose."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.compat.plan import Choice
from app.engine import catalog, script
from app.engine.forecast import seconds_of
from app.engine.limits import DIA, limits_of
from app.engine.model import Model
from app.engine.process import Keeper
from app.engine.request import Request, SpeechRequest
from app.engine.stock import best, located
from app.sentence import Trouble, say
from app.ui import show
from app.ui.guard import Person
from app.ui.words import Language


class Settings:
    """Settings and drafts of the owner, kept in one JSON file that is written whole."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        try:
            kept = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            kept = {}
        self._values: dict[str, Any] = kept if isinstance(kept, dict) else {}

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self._values.get(name, otherwise)

    def put(self, changes: Mapping[str, Any]) -> None:
        with self._lock:
            if all(self._values.get(name) == value for name, value in changes.items()):
                return
            self._values.update(changes)
            half = self._file.with_suffix(".part")
            half.write_text(json.dumps(self._values, ensure_ascii=False, indent=1), "utf-8")
            half.replace(self._file)


@dataclass(slots=True)
class Desk:
    """One for the whole window."""

    keeper: Keeper
    settings: Settings
    latest: dict[tuple[str, str], str] = field(default_factory=dict)
    """The job each person sees in a tab: (person, kind) -> job. A tab that opens later picks it up."""

    def begin(self, request: Request, person: Person, choice: Choice | None = None) -> str:
        """Into the queue; every tab of this person shows it from now on."""
        job = self.keeper.submit(request, choice or self.choice(person), person.name)
        self.latest[person.name, kind_of(request)] = job.id
        return job.id

    def current(self, kind: str, person: Person) -> str:
        return self.latest.get((person.name, kind), "")

    def stop(self, kind: str, person: Person) -> None:
        if job := self.current(kind, person):
            self.keeper.stop(job)

    def again(self, index: int, person: Person) -> str:
        """One part of the last script anew; the others stay as they are."""
        job = self.current("speech", person)
        parts = self.keeper.progress(job).parts if job else ()
        request = self.keeper.journal.job(job).request if job else None
        if not isinstance(request, SpeechRequest) or index not in range(len(parts)) or len(parts) < parts[0].total:
            raise Trouble(say("speak.nothing-again", "There is no finished part to do again. Speak the script first."))
        keep = tuple(part.path for part in parts)
        return self.begin(dataclasses.replace(request, only_parts=(index,), keep=keep, seed=None), person)

    def owns(self, job: str, person: Person) -> bool:
        """Whether this person made it; the owner may see everything."""
        known = self.keeper.journal.known(job)
        return known is not None and (person.owner or known.owner == person.name)

    def speech_view(self, job: str, spoken: Language) -> show.View:
        request = self.keeper.journal.job(job).request
        assert isinstance(request, SpeechRequest)
        progress = self.keeper.progress(job)
        view = show.speech(job, progress, request, self.title(progress.model), spoken)
        view["place"] = (
            [waiting.id for waiting in self.keeper.journal.waiting()].index(job) + 1 if self.waits(job) else 0
        )
        view["results"] = [
            {"url": f"hearth/creation/{each.id}", "peaks": show.peaks(str(each.path)), "name": each.path.name, "id": each.id, "seconds": each.seconds}
            for each in (self.keeper.shelf.of_job(job) if progress.end else ())
        ]  # fmt: skip
        return view

    def waits(self, job: str) -> bool:
        return self.keeper.journal.job(job).state == "queued"

    def script_view(self, text: str, model: str, spoken: Language) -> show.View:
        chosen = self.speech_model(model)
        found = located(self.keeper.home, chosen) if chosen else None
        limits = limits_of(found.folder, found.companions.get("codec")) if found else DIA
        checked = script.check(text, limits)
        state = self.keeper.state
        seconds = None
        if chosen and state.hardware:
            frames = round(checked.seconds_estimate * limits.frame_rate)
            past = self.keeper.shelf.find(kind="speech", model=chosen.id, most=8)
            seconds = seconds_of(SpeechRequest(text), chosen, past, frames) if text.strip() else None
        return show.checked(checked, limits, seconds, spoken)

    def speech_model(self, asked: str) -> Model | None:
        try:
            return (
                catalog.find(asked)
                if asked
                else catalog.best("speech", lambda model: located(self.keeper.home, model) is not None)
            )
        except Trouble:
            return None

    def choice(self, person: Person) -> Choice:
        """What the owner forced on the Machine tab; a visitor takes what is decided."""
        forced = dict(self.settings.get("choice", {})) if person.owner else {}
        return Choice(**{name: tuple(value) if isinstance(value, list) else value for name, value in forced.items()})

    def title(self, model: str) -> str:
        try:
            return catalog.find(model).title if model else ""
        except Trouble:
            return Path(model).name


def kind_of(request: Request) -> str:
    return "speech" if isinstance(request, SpeechRequest) else "picture"
