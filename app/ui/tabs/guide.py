"""Guided by a picture on Paint: its card, and which control models it offers for a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.settings import CONTROLS, PICTURES
from app.engine.models.controls import ENDING, explain_misfit, is_control_path, list_controls, name_control, read_control
from app.engine.models.model import Model
from app.ui.page.translate import label, word
from app.ui.state.desk import Desk
from app.ui.tabs import paint_form
from app.ui.tabs.setting_fields import SettingFields


@dataclass(frozen=True, slots=True, eq=False)
class GuideCard:
    drawer: gr.Accordion
    image: gr.File
    """Hidden: the script sends the picture there once Paint is pressed."""
    name: gr.Textbox
    """Hidden: what the picture is called, which the script writes; empty where there is none."""


def build(desk: Desk, rows: SettingFields, model: Model, guest: bool) -> GuideCard:
    # Outside of the fold, which is not on the page before it was opened.
    image = gr.File(file_count="multiple", elem_classes="h-hidden", label="guide")
    name = gr.Textbox("", label="guided", elem_id="paint-guided", elem_classes="h-hidden")
    with gr.Accordion(
        word("paint.guide", "Guide with a picture"), open=False, elem_classes="h-card", elem_id="paint-guide", visible=not guest
    ) as drawer:
        gr.HTML('<section id="h-guide"></section>', apply_default_css=False)
        with gr.Row(elem_classes="h-pair"):
            rows.build("control", "guide_as")
        rows.build("guide_strength")
        with gr.Row(elem_classes="h-pair"):
            rows.build("guide_from", "guide_to")
        if not guest:  # a guest hears of no folder
            offered = list_fitting(desk, model)
            rows["control"].choices += offered
            rows["control"].info = label(word_some() if offered else word_none(desk))
    return GuideCard(drawer, image, name)


def word_none(desk: Desk) -> Sentence:
    return say(
        "guide.none-here",
        "None for the chosen model is here yet. Put a ControlNet as .safetensors, or its folder, into {folder}.",
        folder=str(desk.keeper.home.controls),
    )


def word_some() -> Sentence:
    info = PICTURES["control"].info
    assert info is not None
    return info


def offer(desk: Desk, model: str, chosen: str | None) -> Any:
    """Offer the control models that fit; one that does not makes way for the first that does."""
    fitting = list_fitting(desk, paint_form.find_model(desk, model))
    ids = [id_ for _, id_ in fitting]
    value = chosen if chosen in ids else next(iter(ids), "")
    none = [(label(name), id_) for id_, name in CONTROLS.items()]
    return gr.update(choices=[*none, *fitting], value=value, info=label(word_some() if fitting else word_none(desk)))


def list_fitting(desk: Desk, model: Model) -> list[tuple[str, str]]:
    """List title and path of what can guide a model: of Hearth's own folder, then of the programs that were found."""
    own = [(name_control(each), each) for each in list_controls(desk.keeper.home)]
    found = ((kept.tool, each.path) for kept in desk.models.finder.kept for each in kept.files if each.role == "control")
    others = [(f"{name_control(path)} ({tool})", path) for tool, path in found if is_control_path(path)]
    return [(title, str(path)) for title, path in (*own, *others) if _fits(path, model)]


def _fits(path: Path, model: Model) -> bool:
    try:
        return explain_misfit(read_control(path), model) is None
    except (Trouble, OSError, ValueError, LookupError):  # what it is, the command says that names it
        return False


def find_again(desk: Desk, model: Model, name: str) -> str:
    """Return the control model of restored settings by its path; empty where it is not here."""
    wanted = Path(public_name(name)).name.removesuffix(ENDING)
    return next((path for _, path in list_fitting(desk, model) if name_control(Path(path)) == wanted), "")
