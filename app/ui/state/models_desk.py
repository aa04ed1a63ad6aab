"""Which models the window offers: those of the catalog and the owner's own, what each may speak, and which one a tab means."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.models import catalog
from app.engine.models.catalog import CATALOG
from app.engine.models.model import Model
from app.engine.models.on_disk import find_best, locate
from app.engine.process.keeper import Keeper
from app.engine.text.voice_limits import DIA, VoiceLimits, read_limits
from app.sentence import Trouble
from app.ui.state.guest_limits import model_for
from app.ui.state.person import Person
from app.ui.state.settings import Settings

TABS: dict[str, str] = {"speech": "speak", "picture": "paint"}
"""The tab whose settings name the owner's model, by kind of job."""


@dataclass(frozen=True, slots=True)
class ModelsDesk:
    """The models that the window knows."""

    keeper: Keeper
    settings: Settings

    def list_all(self) -> list[Model]:
        """List the catalog's models and those that the owner added."""
        added = []
        for path in self.settings.get("models", []):
            try:
                added.append(catalog.find(path))
            except Trouble:
                continue  # It was moved or unplugged; the Models tab says so.
        return [*CATALOG, *added]

    def chosen_by_owner(self) -> dict[str, str]:
        """Return the model that the owner chose for each kind of job; guests use it too."""
        return {kind: self.settings.get(tab, {}).get("model", "") for kind, tab in TABS.items()}

    def resolve(self, kind: str, model: str | None, person: Person) -> str:
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
            found = locate(self.keeper.home, chosen)
            return chosen, read_limits(found.folder, found.companions.get("codec")) if found else DIA
        except Trouble:
            return chosen, DIA

    def resolve_cure(self, cure: str) -> str:
        """Turn "use this model" into "get this model" where it is not installed."""
        action, _, model = cure.partition(":")
        usable = action != "use" or locate(self.keeper.home, catalog.BY_ID[model])
        return cure if usable else f"get:{model}"
