"""The library of LoRAs as the window has it: what is found, what of it fits a model, what was made with each, and which files come in."""

from __future__ import annotations

import filecmp
import json
import math
import shutil
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.base.bounded_json import Bounds, parse_json
from app.base.path_checks import find_path, is_file
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.request import Lora
from app.engine.keeper.keeper import Keeper
from app.engine.models.lora_facts import LoraFacts, explain_misfit
from app.engine.models.lora_library import LoraFile, LoraNames, LoraReader, list_loras
from app.engine.models.model import Model
from app.ui.state.settings import Settings

SHOWN_MOST: Final = 40
"""So many of those that are found are shown; more are a matter of searching."""
CHOSEN: Final = Bounds(most_bytes=64 << 10, depth=3, values=2_000)
SAVED: Final = "loras"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A LoRA that the page has in use: by its name in the library, or by its path where it lies elsewhere."""

    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class Shown:
    file: LoraFile
    facts: LoraFacts | None
    """None: its header was not read yet."""
    misfit: Sentence | None
    """The sentence says why it cannot be used with the model; None: it can."""
    weight: float
    """The LoRA was used with it last."""
    picture: int | None
    """The newest creation that was made with it has this number."""
    places: tuple[Path, ...]
    """The same file lies at all of these, Hearth's own folder first."""


@dataclass(frozen=True, slots=True)
class LoraDesk:
    keeper: Keeper
    settings: Settings
    reader: LoraReader = field(default_factory=LoraReader)

    @property
    def folders(self) -> list[str]:
        """Those that the owner named beside Hearth's own."""
        return list(self.settings.get(SAVED, []))

    def search(self, words: str, model: Model | None, chosen: Sequence[str]) -> tuple[list[Shown], int, int]:
        """Return the chosen ones, then those that these words find, what fits and was used last first, and what lies in several places once; how many
        more there are, and how many are still to be read."""
        files = list_loras(self.keeper.home)
        known, made = self.reader.look(files), self.keeper.shelf.list_loras()
        contents, unread = self.reader.compare(files)
        same: dict[Hashable, list[LoraFile]] = {}
        for each in sorted(files, key=lambda each: not each.path.is_relative_to(self.keeper.home.loras)):
            same.setdefault(contents[each.path], []).append(each)
        names = LoraNames(files if chosen else ())
        in_use = [*dict.fromkeys(file for name in chosen if (file := names.find(name)))]
        used = {contents[each.path] for each in in_use}
        rest = [each for each in files if contents[each.path] not in used and same[contents[each.path]][0] == each]
        shown = [self._show(each, known.get(each.path), made, model, same[contents[each.path]]) for each in (*in_use, *rest)]
        picked, terms = shown[: len(in_use)], words.lower().split()
        found = [each for each in shown[len(in_use) :] if all(term in _text_of(each) for term in terms)]
        found.sort(key=lambda each: (each.misfit is not None, -(each.picture or 0)))
        room = max(0, SHOWN_MOST - len(picked))
        return picked + found[:room], len(found) - len(found[:room]), len(files) - len(known) or unread

    def _show(
        self, file: LoraFile, facts: LoraFacts | None, made: Mapping[str, tuple[float, int]], model: Model | None, same: Sequence[LoraFile]
    ) -> Shown:
        misfit = facts.trouble if facts is not None and model is None else explain_misfit(facts, model) if facts and model else None
        places = tuple(each.path for each in same)
        weight, picture = max((made[str(each)] for each in places if str(each) in made), key=lambda each: each[1], default=(1.0, None))
        return Shown(file, facts, misfit, weight, picture, places)

    def parse(self, text: str) -> tuple[Lora, ...]:
        """Return the LoRAs that the page has in use; raise a Trouble for one that is no longer there."""
        names, found = LoraNames(list_loras(self.keeper.home) if text else ()), dict[str, Lora]()
        for each in read_chosen(text):
            file = names.find(each.name)
            path = str(file.path) if file else each.name
            if file is None and not lies_elsewhere(path):
                raise Trouble(
                    say("lora.gone", "The LoRA {name} is no longer in your library. Remove it, or put its file back.", name=each.name)
                )
            found[path] = Lora(path, each.weight)
        return tuple(found.values())

    def restore(self, loras: Iterable[Lora], ours: bool) -> tuple[str, tuple[str, ...]]:
        """Return what the page has in use to have these again, found by path or by name, and the names of those that are not here. Embeddings are in
        use by their words alone. `ours`: a path may lie outside the library; in a picture from elsewhere it counts as a name."""
        names, found, missing = LoraNames(list_loras(self.keeper.home)), list[Chosen](), list[str]()
        for each in loras:
            file = names.find(each.path) or names.find(public_name(each.path))
            if file is None and not (ours and lies_elsewhere(each.path)):
                missing.append(each.word or Path(public_name(each.path)).stem)
            elif not each.word:
                found.append(Chosen(file.name if file else each.path, each.weight))
        return write_chosen(found), tuple(missing)

    def take_in(self, uploaded: Iterable[str]) -> list[str]:
        """Move uploaded files into Hearth's folder; return their names in the library. One that is there already is not kept twice."""
        folder = self.keeper.home.loras
        folder.mkdir(parents=True, exist_ok=True)
        names = []
        for file in map(Path, uploaded):
            to = _find_place(folder, file)
            if not to.exists():
                shutil.move(file, to)
            names.append(to.stem)
        return names

    def add_folder(self, path: str) -> None:
        folder = find_path(path.strip().strip("\"'"))
        if folder is None or not folder.is_dir():
            raise Trouble(say("lora.no-folder", "There is no folder at {path}. Enter its full path on this machine.", path=path or '""'))
        self.settings.change(SAVED, [], lambda saved: [*dict.fromkeys([*saved, str(folder)])])

    def forget_folder(self, path: str) -> None:
        self.settings.change(SAVED, [], lambda saved: [each for each in saved if each != path])


def lies_elsewhere(path: str) -> bool:
    """Tell whether this is a file outside the library, as commands name them."""
    return Path(path).is_absolute() and is_file(Path(path))


def _find_place(folder: Path, file: Path) -> Path:
    """Return where a file may go in a folder, or where the same one lies."""
    to, number = folder / file.name, 2
    while to.exists() and not filecmp.cmp(file, to, shallow=False):
        to, number = folder / f"{file.stem} {number}{file.suffix}", number + 1
    return to


def _text_of(shown: Shown) -> str:
    facts = shown.facts or LoraFacts()
    return "\n".join((shown.file.name, *(each.stem for each in shown.places), facts.title, *facts.triggers, *facts.tags)).lower()


def read_chosen(text: str) -> list[Chosen]:
    """Parse what the page has in use; nonsense is nothing."""
    try:
        rows = parse_json(text, CHOSEN) if text else []
        found = [Chosen(row["name"], float(row["weight"])) for row in rows]
    except (ValueError, TypeError, KeyError):
        return []
    return [each for each in found if isinstance(each.name, str) and each.name and math.isfinite(each.weight)]


def write_chosen(chosen: Iterable[Chosen]) -> str:
    rows = [{"name": each.name, "weight": each.weight} for each in chosen]
    return json.dumps(rows, ensure_ascii=False) if rows else ""
