"""Which models the window offers: those of the catalog and the owner's own, what each may speak, and which one a tab means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from app.base import notices
from app.base.bounded_json import Bounds, parse_json
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.request import Actor, KindName, SpeechRequest, VoicePrompt
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog
from app.engine.models.catalog import BY_ID, CATALOG, CONFIGS
from app.engine.models.found import Finder
from app.engine.models.local_models import Seen
from app.engine.models.model import Model
from app.engine.models.on_disk import find_away, find_best, locate, read_voice_limits
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.text.cast_table import read_table, write_table
from app.engine.speech.text.voices import Voice, list_offered_voices
from app.ui.state.guest_limits import model_for
from app.ui.state.person import Person
from app.ui.state.settings import Settings

TABS: dict[str, str] = {"speech": "speak", "picture": "paint"}
"""The settings of this tab name the owner's model, by kind of job."""
CAST: Final = Bounds(most_bytes=64 << 10, depth=4, values=1000)
"""The cast's field may hold no more."""
START_WAIT_S: Final = 1.0
"""A start waits no longer for the disks of all local models together."""


@dataclass(frozen=True, slots=True)
class ModelsDesk:
    """The models that the window knows."""

    keeper: Keeper
    settings: Settings
    finder: Finder = field(default_factory=lambda: Finder((BY_ID, CONFIGS)))

    def list_all(self) -> list[Model]:
        """List the catalog's models, recognisers, readers of pictures and those that the owner added."""
        return [*BY_ID.values(), *(seen.model for seen in self.look_at_own().values() if seen.model is not None and seen.answers)]

    def look_at_own(self) -> dict[str, Seen]:
        """Look at the models that the owner added, by path: also at those that cannot be used, were moved, or whose disk is silent."""
        return catalog.look_at_all(self.settings.get("models", []))

    def list_choices(self, kind: str) -> list[tuple[str, str]]:
        """List title and id of each model that a job of this kind may name. One whose disk is silent or not connected stays a choice, so that
        what the owner chose is not forgotten; the run says it."""
        home, chosen = self.keeper.home, self.chosen_by_owner()[kind]
        choices = [
            (each.title, each.id)
            for each in CATALOG
            if each.kind == kind and (locate(home, each) or (each.id == chosen and find_away(home, each)))
        ]
        for path, seen in self.look_at_own().items():
            if seen.model is not None and seen.model.kind == kind:
                choices.append((seen.model.title, path))
            elif seen.model is None and not seen.answers and path == chosen:
                choices.append((catalog.name_model(path), path))
        return choices

    def look_at_start(self) -> None:
        """Look at the owner's models before the page is built, and tell of a chosen one that cannot be used. A slow disk is left to answer later."""
        if self.settings.get("finds", False):
            self.finder.list_soon()
        chosen = {id_ for id_ in self.chosen_by_owner().values() if id_ and id_ not in BY_ID}
        for path, seen in catalog.look_at_all([*self.settings.get("models", []), *chosen], START_WAIT_S).items():
            if path in chosen and seen.answers and seen.model is None:
                name, why = catalog.name_model(path), explain_missing(path, seen)
                notices.tell(say("models.fallback", "Hearth uses the best installed model in place of {model}. {why}", model=name, why=why))

    def chosen_by_owner(self) -> dict[str, str]:
        """Return the model that the owner chose for each kind of job; guests use it too."""
        return {kind: self.settings.get(tab, {}).get("model", "") for kind, tab in TABS.items()}

    def resolve(self, kind: KindName, model: str | None, person: Person) -> str:
        """Return the model a text is checked for: the chosen one, else the last one chosen; a guest's is fixed."""
        if not person.owner:
            return model_for(kind, self.keeper, self.chosen_by_owner())
        return self.chosen_by_owner()[kind] if model is None else model

    def read_limits(self, model: str) -> tuple[Model | None, VoiceLimits]:
        """Read what a voice can speak; Dia's limits where it cannot be read, which the run then reports."""
        try:
            chosen = catalog.find(model) if model else find_best(self.keeper.home, "speech")
        except Trouble:
            return None, DIA
        if chosen.kind != "speech":
            return None, DIA
        try:
            return chosen, read_voice_limits(self.keeper.home, chosen) or DIA
        except Trouble:
            return chosen, DIA

    def list_voices(self, model: str | None, person: Person) -> tuple[Voice, ...]:
        """List the voices that a person may choose for a model; for the last one chosen where none is named."""
        limits = self.read_limits(self.resolve("speech", model, person))[1]
        return list_offered_voices(self.keeper.home, limits, guest=not person.owner)

    def read_cast(self, table: str, model: str, person: Person) -> tuple[Actor, ...]:
        """Read what the cast's field holds: names of voices, of which some may be gone. A guest's cast has one model."""
        known = {id_ for _, id_ in self.list_choices("speech")} if person.owner else set()
        try:
            values = parse_json(table, CAST) if table else {}
            return read_table(
                values, model, lambda id_: id_ if id_ in known else "", lambda id_: self.list_voices(id_, person), lenient=True
            )
        except (ValueError, Trouble):
            return ()

    def write_cast(self, request: SpeechRequest, person: Person) -> tuple[str, tuple[VoicePrompt, ...]]:
        """Return a request's cast as the field holds it, and the voices that cannot be chosen again."""
        return write_table(request, lambda id_: self.list_voices(id_, person))

    def resolve_cure(self, cure: str) -> str:
        """Turn "use this model" into "get this model" where it is not installed."""
        action, _, model = cure.partition(":")
        usable = action != "use" or locate(self.keeper.home, catalog.BY_ID[model])
        return cure if usable else f"get:{model}"


def explain_missing(path: str, seen: Seen) -> Sentence:
    """Say why a model that the owner added is not among those that can be used."""
    if seen.trouble is not None:
        return seen.trouble.sentence
    return say("models.gone", "There is no file or folder at {path} any more. Connect its disk, or remove it from the list.", path=path)
