"""The fields of Paint, card by card: layout and labels, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component

from app.engine.jobs.request import PictureRequest
from app.engine.jobs.settings import PICTURES
from app.engine.models.enlargers import list_offered
from app.engine.models.model import Model
from app.ui.page.protocol import Call
from app.ui.page.translate import label, word
from app.ui.state.desk import Desk
from app.ui.tabs import loras, paint_form
from app.ui.tabs.beside_prompt import GUIDE, REFERENCE, Card
from app.ui.tabs.loras import LoraCard
from app.ui.tabs.script_calls import build_calls
from app.ui.tabs.setting_fields import SettingFields
from app.ui.tabs.shared_controls import GoAndStop, PresetRow, build_go_and_stop, build_preset_row, model_choices

KIND: Final = "picture"
Saved = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class PromptCard:
    prompt: gr.Textbox
    negative: gr.Textbox


@dataclass(frozen=True, slots=True, eq=False)
class ModelCard:
    model: gr.Dropdown
    size: gr.Dropdown
    forecast: gr.HTML


@dataclass(frozen=True, slots=True, eq=False)
class StartCard:
    drawer: gr.Accordion
    image: gr.File
    """The script sends the picture to this hidden field, and its mask, once Paint is pressed."""
    told: gr.Textbox
    """The script writes into this hidden field whether there is one ("start"), with a mask ("start marked"), and its frame."""


@dataclass(frozen=True, slots=True, eq=False)
class SettingsCard:
    presets: PresetRow
    dice: gr.Button
    reuse: gr.Button


@dataclass(frozen=True, slots=True, eq=False)
class GridCard:
    across: gr.Dropdown
    across_values: gr.Textbox
    down: gr.Dropdown
    down_values: gr.Textbox
    go: gr.Button


@dataclass(frozen=True, slots=True, eq=False)
class PaintFields:
    prompt: PromptCard
    model: ModelCard
    start: StartCard
    guide: Card
    reference: Card
    loras: LoraCard
    rows: SettingFields
    settings: SettingsCard
    grid: GridCard
    go: GoAndStop
    dropped: gr.File
    """The script puts a picture that is dropped anywhere into this hidden field."""
    calls: gr.HTML

    @property
    def saved(self) -> dict[str, Component]:
        """The fields whose values are saved, by their names in the settings."""
        return {"model": self.model.model, **self.rows.kept}

    @property
    def restored(self) -> list[Component]:
        """The fields that an earlier picture fills again."""
        return [self.prompt.prompt, self.prompt.negative, self.model.model, *self.rows.built.values(), self.loras.chosen]

    @property
    def asked(self) -> set[Block]:
        """The fields that a request is made from."""
        grid = (self.grid.across, self.grid.across_values, self.grid.down, self.grid.down_values)
        return {
            *self.restored,
            self.model.size,
            self.start.image,
            self.start.told,
            self.guide.image,
            self.guide.name,
            self.reference.image,
            self.reference.name,
            *grid,
        }


def build_fields(desk: Desk, saved: Saved, guest: bool) -> PaintFields:
    rows = SettingFields("paint", PICTURES, PictureRequest, saved)
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            prompt = _build_prompt()
            model = _build_model(desk, saved, guest)
            chosen = paint_form.find_model(desk, saved.get("model", ""))
            start = _build_start(rows, chosen)
            guide_card = GUIDE.build(desk, rows, chosen, guest)
            reference_card = REFERENCE.build(desk, rows, chosen, guest)
            lora_card = loras.build(guest)
            settings = _build_settings(desk, rows, guest)
            grid = _build_grid(guest)
            go = build_go_and_stop("paint", word("paint.go", "Paint"))
        with gr.Column():
            gr.HTML('<section id="h-canvas" class="h-card"></section>', apply_default_css=False)
            if not guest:
                gr.HTML('<section id="h-tuning" class="h-card" hidden></section>', apply_default_css=False)
            gr.HTML('<section id="h-grid" class="h-card" hidden></section>', apply_default_css=False)
    dropped = gr.File(elem_id="paint-dropped", elem_classes="h-hidden", type="filepath", label="dropped")
    own: tuple[Call, ...] = () if guest else ("paint.use", "paint.edit", "paint.forecast", "paint.lines", "paint.guided", "paint.liked")
    return PaintFields(
        prompt,
        model,
        start,
        guide_card,
        reference_card,
        lora_card,
        rows,
        settings,
        grid,
        go,
        dropped,
        build_calls("paint.restore", "paint.alike", "paint.back", "paint.kept", "paint.unfold", "paint.noloras", "paint.noseed", *own),
    )


def _build_prompt() -> PromptCard:
    with gr.Column(elem_classes="h-card"):
        prompt = gr.Textbox(
            label=word("paint.prompt", "Prompt"),
            lines=3,
            max_lines=10,
            elem_id="paint-prompt",
            placeholder=word("paint.placeholder", "What should the picture show?"),
        )
        gr.HTML(
            '<div id="h-samples"></div><div id="h-prompts" hidden></div><ul id="h-prompt" class="h-problems"></ul>', apply_default_css=False
        )
        negative = gr.Textbox(label=word("paint.negative", "Negative prompt"), lines=1, elem_id="paint-negative")
    return PromptCard(prompt, negative)


def _build_model(desk: Desk, saved: Saved, guest: bool) -> ModelCard:
    chosen = paint_form.find_model(desk, saved.get("model", ""))
    paint_form.name_all_sizes()
    with gr.Column(elem_classes="h-card"):
        with gr.Row():
            model = gr.Dropdown(
                model_choices(desk, KIND, guest),
                value=saved.get("model", ""),
                label=word("paint.model", "Model"),
                visible=not guest,
                elem_id="paint-model",
            )
            size = gr.Dropdown(
                paint_form.list_sizes(chosen), value=paint_form.default_size(chosen), label=word("paint.size", "Size"), elem_id="paint-size"
            )
        forecast = gr.HTML("", elem_id="paint-fit", apply_default_css=False)
    return ModelCard(model, size, forecast)


def _build_start(rows: SettingFields, model: Model) -> StartCard:
    for each in (paint_form.START, paint_form.CHANGE, paint_form.MASKED_STRENGTH):
        label(each)  # so that the browser knows them in its language when another model is chosen
    title, of_strength = paint_form.describe_start(model)
    # Outside of the fold, which is not on the page before it was opened.
    told = gr.Textbox("", label="started", elem_id="paint-started", elem_classes="h-hidden")
    with gr.Accordion(label(title), open=False, elem_classes="h-card", elem_id="paint-start") as drawer:
        gr.HTML('<section id="h-sketch"></section>', apply_default_css=False)
        image = gr.File(file_count="multiple", elem_id="paint-image", elem_classes="h-hidden", label="start")
        rows.build("strength", "masked_only")
        rows["strength"].info = label(of_strength) if of_strength else None
        with gr.Row(elem_classes="h-pair"):
            rows.build("masked_padding", "mask_blur")
    return StartCard(drawer, image, told)


def _build_settings(desk: Desk, rows: SettingFields, guest: bool) -> SettingsCard:
    with gr.Accordion(word("paint.settings", "Settings"), open=False, elem_classes="h-card", elem_id="paint-settings"):
        presets = build_preset_row("paint", desk, guest)
        with gr.Row(elem_classes="h-pair"):
            rows.build("width", "height")
        with gr.Row(elem_classes="h-pair"):
            rows.build("steps", "guidance")
        rows.build("scheduler")
        with gr.Row(elem_classes="h-inline"):
            rows.build("seed")
            dice = gr.Button(word("paint.dice", "Random"), size="sm", min_width=60)
            reuse = gr.Button(word("paint.reuse", "Last seed"), size="sm", min_width=60)
        rows.build("batch", "hires", "upscale", "hires_strength", "enlarger")
        rows["enlarger"].choices += [] if guest else [(title, name) for name, title in list_offered(desk.keeper.home)]
        rows.build_rest()
    return SettingsCard(presets, dice, reuse)


def _build_grid(guest: bool) -> GridCard:
    with gr.Accordion(
        word("paint.grid", "Compare two settings in a grid"), open=False, elem_classes="h-card", elem_id="paint-grid", visible=not guest
    ):
        with gr.Row():
            across = gr.Dropdown(paint_form.list_axes(), value="steps", label=word("grid.across", "Columns"))
            across_values = gr.Textbox("", label=word("grid.values", "Values, separated by commas"), placeholder="8, 16, 24")
        with gr.Row():
            down = gr.Dropdown(paint_form.list_axes(), value="guidance", label=word("grid.down", "Rows"))
            down_values = gr.Textbox("", label=word("grid.values-down", "Values, separated by commas"), placeholder="2, 4, 7")
        go = gr.Button(word("grid.go", "Paint the grid"))
    return GridCard(across, across_values, down, down_values, go)
