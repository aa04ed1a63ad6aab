"""The families of voices, one row each: how a folder's family is known, and where its code lies. No torch.

A family is a package. Its module `facts` reads what a folder says, without torch: `read_limits(folder, beside)` and `describe(path, catalog)`, a
row like the catalog's. Its module `voice` has `load(folder, plan, beside, name)` and is imported in the engine only; what that returns stands in
app/engine/speech/family.py. `beside`: where its companions in the catalog lie, by name, as "codec"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import read_json
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import Quantised

GET: Final = "get:dia-1.6b"
"""It helps where a voice is damaged and cannot be fetched again: this one can."""


@dataclass(frozen=True, slots=True)
class VoiceFamily:
    name: str
    """Its models have this `family`; the `model_type` in their config.json is the same."""
    package: str
    title: str = ""
    guided: bool = False
    """Guidance makes it compute two rows at once."""
    quantised: tuple[Quantised, ...] = ()
    """Its weights can be made into these when they are loaded."""
    plain: bool = True
    """Its weights are held as they compute and where they compute: nothing widens or sends them layer by layer, or captures a row."""
    checks: str = ""
    """This module has more `questions` that a machine is asked."""
    starter_check: str = ""
    """This module has the `PARTS` of a voice that comes with Hearth, by which a machine is judged."""

    @property
    def facts(self) -> Any:
        return import_module(f"{self.package}.facts")

    @property
    def loads_with(self) -> str:
        return f"{self.package}.voice"


_DIA: Final = VoiceFamily(
    "dia", "app.engine.speech.families.dia", "Dia", guided=True, quantised=("int8", "int4", "bnb-int8", "bnb-nf4", "torchao-int8", "awq"), plain=False,
    checks="app.engine.speech.families.dia.row_graph_check", starter_check="app.engine.speech.families.dia.starter_check",
)  # fmt: skip
_PHONON: Final = VoiceFamily("gradium_phonon_tts", "app.engine.speech.families.pocket", "Gradium Phonon", quantised=("int8", "int4"))
_POCKET: Final = replace(_PHONON, name="pocket_tts", title="Pocket TTS")
_VIBEVOICE: Final = VoiceFamily("vibevoice", "app.engine.speech.families.vibevoice", "VibeVoice", guided=True, quantised=("int8", "int4"))
FAMILIES: Final[dict[str, VoiceFamily]] = {each.name: each for each in (_DIA, _PHONON, _POCKET, _VIBEVOICE)}
"""The `model_type` of a folder's config.json finds its family here."""


def find_family(folder: Path) -> VoiceFamily:
    """Return the family of the voice in a folder; raise a Trouble if there is none."""
    found = read_type(folder)
    if found not in FAMILIES:
        raise refuse_type(folder, found, tuple(FAMILIES))
    return FAMILIES[found]


def check_type(folder: Path, wanted: str) -> None:
    """Raise a Trouble if a part of a voice is of another type."""
    if (found := read_type(folder)) != wanted:
        raise refuse_type(folder, found, (wanted,))


def read_type(folder: Path) -> str:
    path = folder / "config.json"
    try:
        return str(read_json(path).get("model_type", "none"))
    except (OSError, ValueError, AttributeError) as fault:
        raise Trouble(
            say(
                "speech.no-config",
                "The voice's settings in {path} cannot be read: {fault}. Download the voice again.",
                path=str(path),
                fault=str(fault),
            ),
            cure=GET,
        ) from fault


def refuse_type(folder: Path, found: str, wanted: tuple[str, ...]) -> Trouble:
    return Trouble(
        say(
            "speech.other-kind",
            "{folder} contains a model of type {found}; a model of type {kind} is needed. Choose another folder.",
            folder=str(folder),
            kind=wanted,
            found=found,
        )
    )
