"""Presets: named settings of Speak and Paint; some come with Hearth, the owner saves others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gradio.i18n import I18nData

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.settings import PICTURES, SPEECH, Rows, list_defaults
from app.ui.page.translate import label
from app.ui.state.settings import Settings

NAME_MOST: Final = 60
Values = Mapping[str, Any]

TABLES: Final[Mapping[str, Rows]] = {"speak": SPEECH, "paint": PICTURES}


def list_as_made(request: type[Any], rows: Rows) -> dict[str, Any]:
    """Return what the models' makers recommend, as fields show it."""
    defaults = list_defaults(request, rows)
    return {name: each.show(defaults[name]) for name, each in rows.items() if each.label and each.kept == "everywhere"}


AS_MADE: Final[dict[str, dict[str, Any]]] = {
    "speak": {**list_as_made(SpeechRequest, SPEECH), "own": False},
    "paint": list_as_made(PictureRequest, PICTURES),
}
BUILT_IN: Final[dict[str, dict[str, tuple[Sentence, Values]]]] = {
    "speak": {
        "recommended": (say("preset.recommended", "Recommended"), AS_MADE["speak"]),
        "steady": (
            say("preset.steady", "Calm and steady"),
            {**AS_MADE["speak"], "own": True, "guidance": 3.5, "temperature": 1.3, "top_p": 0.95, "cfg_filter": 35},
        ),
        "lively": (
            say("preset.lively", "Lively"),
            {**AS_MADE["speak"], "own": True, "guidance": 3.0, "temperature": 1.9, "top_p": 0.97, "cfg_filter": 50},
        ),
        "slow": (say("preset.slow", "Slow and clear"), {**AS_MADE["speak"], "speed": 0.85}),
    },
    "paint": {
        "recommended": (say("preset.recommended", "Recommended"), AS_MADE["paint"]),
        "sketches": (say("preset.sketches", "Four quick sketches"), {**AS_MADE["paint"], "steps": 12, "batch": 4}),
        "careful": (say("preset.careful", "Careful, many steps"), {**AS_MADE["paint"], "steps": 50}),
        "near": (say("preset.near", "Close to the original"), {**AS_MADE["paint"], "strength": 0.3}),
    },
}


def list_choices(settings: Settings, tab: str) -> list[tuple[I18nData | str, str]]:
    own: dict[str, Values] = settings.get("presets", {}).get(tab, {})
    return [*((label(named), name) for name, (named, _) in BUILT_IN[tab].items()), *((name, f"own:{name}") for name in sorted(own))]


def find_values(settings: Settings, tab: str, choice: str | None) -> Values:
    """Return a preset's values; nothing for a name that is still being typed."""
    if choice in BUILT_IN[tab]:
        return BUILT_IN[tab][choice][1]
    own: dict[str, Values] = settings.get("presets", {}).get(tab, {})
    return own.get((choice or "").removeprefix("own:"), {})


def save_preset(settings: Settings, tab: str, name: str | None, fields: Values) -> str:
    """Save a preset, replacing one of the same name; return the choice that stands for it. What belongs to one script is left out."""
    name = (name or "").removeprefix("own:").strip()
    if not name or len(name) > NAME_MOST or name in BUILT_IN[tab]:
        raise Trouble(
            say(
                "preset.name",
                "This preset needs a name of its own, up to {most} {most:character|characters}. Type one into the preset field.",
                most=NAME_MOST,
            )
        )
    left = {"model", "voice", *(each.name for each in TABLES[tab].values() if each.kept == "settings")}
    _change(settings, tab, lambda own: {**own, name: {each: value for each, value in fields.items() if each not in left}})
    return f"own:{name}"


def delete_preset(settings: Settings, tab: str, choice: str | None) -> None:
    if (choice or "") in BUILT_IN[tab]:
        raise Trouble(say("preset.built-in", "This preset comes with Hearth and cannot be deleted. You can delete presets you saved."))
    _change(settings, tab, lambda own: {name: each for name, each in own.items() if f"own:{name}" != choice})


def _change(settings: Settings, tab: str, how: Callable[[dict[str, Values]], dict[str, Values]]) -> None:
    """Change the presets of one tab."""
    settings.change("presets", {}, lambda saved: {**saved, tab: how(saved.get(tab, {}))})
