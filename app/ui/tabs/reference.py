"""Painted like a picture on Paint: its card, and which IP-Adapters it offers for a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.settings import ADAPTERS, PICTURES
from app.engine.models.adapters import ENDING, list_adapters, name_adapter, require_fit
from app.engine.models.model import Model
from app.ui.page.translate import label, word
from app.ui.state.desk import Desk
from app.ui.tabs import paint_form
from app.ui.tabs.setting_fields import SettingFields


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceCard:
    drawer: gr.Accordion
    image: gr.File
    """Hidden: the script sends the picture there once Paint is pressed."""
    name: gr.Textbox
    """Hidden: what the picture is called, which the script writes; empty where there is none."""


def build(desk: Desk, rows: SettingFields, model: Model, guest: bool) -> ReferenceCard:
    # Outside of the fold, which is not on the page before it was opened.
    image = gr.File(file_count="multiple", elem_classes="h-hidden", label="reference")
    name = gr.Textbox("", label="liked", elem_id="paint-liked", elem_classes="h-hidden")
    with gr.Accordion(
        word("paint.reference", "Paint like a picture"), open=False, elem_classes="h-card", elem_id="paint-reference", visible=not guest
    ) as drawer:
        gr.HTML('<section id="h-reference"></section>', apply_default_css=False)
        rows.build("adapter", "reference_strength")
        if not guest:  # a guest hears of no folder
            offered = list_fitting(desk, model)
            rows["adapter"].choices += offered
            rows["adapter"].info = label(_describe(desk, offered))
    return ReferenceCard(drawer, image, name)


def _describe(desk: Desk, offered: list[tuple[str, str]]) -> Sentence:
    info = PICTURES["adapter"].info
    if offered and info is not None:
        return info
    return say(
        "reference.none-here",
        "None for the chosen model is here yet. Put an IP-Adapter as .safetensors, and its image encoder (CLIP vision), into {folder}.",
        folder=str(desk.keeper.home.adapters),
    )


def offer(desk: Desk, model: str, chosen: str | None) -> Any:
    """Offer the adapters that fit; one that does not makes way for the first that does."""
    fitting = list_fitting(desk, paint_form.find_model(desk, model))
    ids = [id_ for _, id_ in fitting]
    value = chosen if chosen in ids else next(iter(ids), "")
    none = [(label(name), id_) for id_, name in ADAPTERS.items()]
    return gr.update(choices=[*none, *fitting], value=value, info=label(_describe(desk, fitting)))


def list_fitting(desk: Desk, model: Model) -> list[tuple[str, str]]:
    """List title and path of what has its encoder here and fits a model: of Hearth's own folder, then of the programs that were found."""
    return [(title, str(path)) for title, path in _list_all(desk) if _fits(desk, path, model)]


def _list_all(desk: Desk) -> Iterator[tuple[str, Path]]:
    for path in list_adapters(desk.keeper.home):
        yield name_adapter(path), path
    for kept in desk.models.finder.kept:
        for each in kept.files:
            if each.role == "adapter" and each.path.name.lower().endswith(ENDING):
                yield f"{name_adapter(each.path)} ({kept.tool})", each.path


def _fits(desk: Desk, path: Path, model: Model) -> bool:
    try:
        return bool(require_fit(desk.keeper.home, path, model))
    except (Trouble, OSError, ValueError, LookupError):  # what it is, the command says that names it
        return False


def find_again(desk: Desk, model: Model, name: str) -> str:
    """Return the adapter of restored settings by its path; empty where it is not here."""
    wanted = Path(public_name(name)).name.removesuffix(ENDING)
    return next((path for _, path in list_fitting(desk, model) if name_adapter(Path(path)) == wanted), "")
