"""Paint: the prompt, the picture to start from, the settings; what is painted appears at the right, step by step."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component

from app.engine.files import picture_settings
from app.engine.files.foreign_settings import by_hand
from app.engine.jobs.request import SEED_LIMIT, PictureRequest
from app.engine.jobs.schedulers import NAMES
from app.sentence import Sentence, Trouble
from app.ui.page import views
from app.ui.page.translate import Language, language, word
from app.ui.state.desk import Desk
from app.ui.state.person import who
from app.ui.tabs import paint_form, paint_view
from app.ui.tabs.paint_form import whole_number
from app.ui.tabs.shared_controls import (
    LATEST,
    QUICK,
    Refresh,
    build_go_and_stop,
    build_preset_row,
    explain,
    find_model_again,
    hidden_button,
    hidden_number,
    keep_empty,
    load_on_open,
    model_choices,
    remember_settings,
    run_or_explain,
)

KIND: Final = "picture"
LARGE: Final = "sd15"
"""What paints the words that a small painter does not know."""
MASK: Final = "rgba(184, 66, 15, 0.6)"
"""What is painted over: seen on light and dark pictures, and the picture is seen through it."""


def build(desk: Desk, visitor: bool = False) -> Refresh:
    """For a visitor without anything of the owner's: no draft, no models to choose from, no LoRAs, no grid, no forecast, nothing to start from but what they send."""
    kept = {} if visitor else desk.settings.get("paint", {})
    model_now = paint_form.find_model(desk, kept.get("model", ""))
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            with gr.Column(elem_classes="h-card"):
                prompt = gr.Textbox(
                    label=word("paint.prompt", "Prompt"), lines=3, max_lines=10, elem_id="paint-prompt",
                    placeholder=word("paint.placeholder", "What should the picture show?"),
                )  # fmt: skip
                gr.HTML('<div id="h-samples"></div><ul id="h-prompt" class="h-problems"></ul>', apply_default_css=False)
                negative = gr.Textbox(
                    label=word("paint.negative", "Negative prompt"), lines=1, elem_id="paint-negative"
                )
            with gr.Column(elem_classes="h-card"):
                with gr.Row():
                    model = gr.Dropdown(
                        model_choices(desk, KIND, visitor), value=kept.get("model", ""), label=word("paint.model", "Model"),
                        visible=not visitor, elem_id="paint-model",
                    )  # fmt: skip
                    size = gr.Dropdown(
                        paint_form.sizes(model_now), value=paint_form.default_size(model_now), label=word("paint.size", "Size"), elem_id="paint-size"
                    )  # fmt: skip
                fits = gr.HTML("", elem_id="paint-fit", apply_default_css=False)
            with gr.Accordion(word("paint.start", "Start from a picture"), open=False, elem_classes="h-card", elem_id="paint-start") as drawer:  # fmt: skip
                gr.HTML('<p class="h-soft" id="h-mask-how"></p>', apply_default_css=False)
                image = gr.ImageEditor(
                    type="pil", label=word("paint.image", "Starting picture and mask"), show_label=False, elem_id="paint-image",
                    brush=gr.Brush(colors=[MASK], color_mode="fixed", default_size=24), transforms=(), sources=("upload", "clipboard"), layers=False, visible=False, buttons=[],
                    placeholder=word("paint.image-drop", "Drop a picture here, or click to choose one"),  # type: ignore[arg-type]
                )  # fmt: skip
                strength = gr.Slider(
                    0.05, 1.0, kept.get("strength", 0.6), step=0.05, label=word("paint.strength", "How much to change")
                )
                load_on_open(drawer, image)
            with gr.Accordion(word("paint.settings", "Settings"), open=False, elem_classes="h-card", elem_id="paint-settings"):  # fmt: skip
                presets = build_preset_row("paint", desk, visitor)
                with gr.Row(elem_classes="h-pair"):
                    width = gr.Number(
                        kept.get("width"), precision=0, label=word("paint.width", "Width"), elem_id="paint-width",
                        info=word("paint.own-size", "Leave empty to use the size above."),
                    )  # fmt: skip
                    height = gr.Number(
                        kept.get("height"), precision=0, label=word("paint.height", "Height"), elem_id="paint-height"
                    )
                with gr.Row(elem_classes="h-pair"):
                    steps = gr.Number(
                        kept.get("steps"), precision=0, label=word("paint.steps", "Steps"), elem_id="paint-steps",
                        info=word("paint.own", "Leave empty for the model's recommended value."),
                    )  # fmt: skip
                    guidance = gr.Number(
                        kept.get("guidance"), label=word("paint.guidance", "Guidance"), elem_id="paint-guidance"
                    )
                scheduler = gr.Dropdown(
                    [(word("paint.automatic", "automatic"), ""), *NAMES], value=kept.get("scheduler") or "",
                    label=word("paint.scheduler", "Scheduler"),
                )  # fmt: skip
                with gr.Row(elem_classes="h-inline"):
                    seed = gr.Number(
                        None, precision=0, label=word("paint.seed", "Seed"), elem_id="paint-seed"
                    )  # fmt: skip
                    dice = gr.Button(word("paint.dice", "Random"), size="sm", min_width=60)
                    reuse = gr.Button(word("paint.reuse", "Last seed"), size="sm", min_width=60)
                with gr.Row(elem_classes="h-pair"):
                    batch = gr.Slider(1, 8, kept.get("batch", 1), step=1, label=word("paint.batch", "Pictures"))
                    upscale = gr.Dropdown(
                        [("1x", 1), ("2x", 2), ("4x", 4)], value=kept.get("upscale", 1), label=word("paint.upscale", "Upscale")
                    )  # fmt: skip
                loras = gr.File(
                    file_count="multiple", file_types=[".safetensors"], label=word("paint.loras", "LoRAs"), height=90, visible=not visitor
                )  # fmt: skip
                weights = gr.Textbox(
                    "", label=word("paint.weights", "LoRA weights, separated by commas"), placeholder="1.0, 0.7", visible=not visitor
                )  # fmt: skip
            with gr.Accordion(word("paint.grid", "Compare two settings in a grid"), open=False, elem_classes="h-card", visible=not visitor):  # fmt: skip
                with gr.Row():
                    across = gr.Dropdown(paint_form.axes(), value="steps", label=word("grid.across", "Columns"))
                    across_values = gr.Textbox("", label=word("grid.values", "Values, separated by commas"), placeholder="8, 16, 24")  # fmt: skip
                with gr.Row():
                    down = gr.Dropdown(paint_form.axes(), value="guidance", label=word("grid.down", "Rows"))
                    down_values = gr.Textbox("", label=word("grid.values-down", "Values, separated by commas"), placeholder="2, 4, 7")  # fmt: skip
                grid = gr.Button(word("grid.go", "Paint the grid"))
            go, stop, message = build_go_and_stop("paint", word("paint.go", "Paint"))
        with gr.Column():
            gr.HTML('<section id="h-canvas" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-grid" class="h-card" hidden></section>', apply_default_css=False)
    dropped = gr.File(elem_id="paint-dropped", elem_classes="h-hidden", type="filepath", label="dropped")
    from_shelf = hidden_number("paint-from")
    restore = hidden_button("paint-restore")

    named: dict[str, Component] = {
        "model": model, "width": width, "height": height, "steps": steps, "guidance": guidance, "scheduler": scheduler, "batch": batch,
        "upscale": upscale, "strength": strength,
    }  # fmt: skip
    fields: set[Block] = {
        prompt, negative, size, image, seed, loras, weights, across, across_values, down, down_values, *named.values(),
    }  # fmt: skip
    filled = [prompt, negative, seed, *named.values()]

    def asked(values: dict[Any, Any]) -> PictureRequest:
        start, mask = paint_form.save_pictures(desk, values[image])
        across_size = values[size].split("x") if values[size] else (None, None)
        return PictureRequest(
            prompt=values[prompt], model=values[model], negative=values[negative] or "",
            width=whole_number(values[width]) or whole_number(across_size[0]), height=whole_number(values[height]) or whole_number(across_size[1]),
            steps=whole_number(values[steps]), guidance=values[guidance], scheduler=values[scheduler] or None, seed=whole_number(values[seed]),
            batch=int(values[batch]), image=start, mask=mask, strength=values[strength], upscale=int(values[upscale]),
            loras=() if visitor else tuple(paint_form.parse_loras(values[loras] or [], values[weights] or "")),
        )  # fmt: skip

    def begin(values: dict[Any, Any], request: gr.Request) -> str:
        def run() -> None:
            desk.jobs.check_turn(who(request))  # before any picture is written for it
            desk.jobs.begin(asked(values), who(request))

        return run_or_explain(run, request)

    def begin_grid(values: dict[Any, Any], request: gr.Request) -> str:
        def side(axis: gr.Dropdown, listed: gr.Textbox) -> tuple[str, list[Any]]:
            return values[axis], paint_form.parse_values(values[axis], values[listed])

        def run() -> None:
            picture = dataclasses.replace(asked(values), batch=1)
            desk.jobs.begin_grid(picture, side(across, across_values), side(down, down_values), who(request))

        return run_or_explain(run, request)

    def halt(request: gr.Request) -> None:
        desk.jobs.stop(KIND, who(request))

    def put(request: PictureRequest, notes: Sequence[Sentence], spoken: Language) -> list[Any]:
        """For the fields, and what cannot be brought back."""
        here, missing = find_model_again(desk, KIND, request.model, visitor)
        return [
            request.prompt, request.negative, request.seed, here, request.width, request.height, request.steps, request.guidance,
            request.scheduler or "", request.batch, request.upscale, request.strength, views.notes_html([*missing, *notes], spoken),
        ]  # fmt: skip

    def restored(file: str | None, request: gr.Request) -> list[Any]:
        """The settings of a picture that was dropped anywhere on the page."""
        if file is None:
            return [gr.skip()] * (len(filled) + 2)
        try:
            found = picture_settings.read(Path(file))
        except Trouble as trouble:
            return [*[gr.skip()] * len(filled), explain(trouble, request), None]
        return [*put(found.request, found.notes, language(request)), None]

    def again(creation: float, request: gr.Request) -> list[Any]:
        try:
            kept = desk.jobs.find_creation(int(creation), who(request)).request
        except Trouble as trouble:
            return [*[gr.skip()] * len(filled), explain(trouble, request)]
        assert isinstance(kept, PictureRequest)
        return put(kept, by_hand(kept), language(request))

    def start_from(creation: float, request: gr.Request) -> tuple[Any, str]:
        try:
            return str(desk.jobs.find_creation(int(creation), who(request)).path), ""
        except Trouble as trouble:
            return gr.skip(), explain(trouble, request)

    def fit(values: dict[Any, Any], request: gr.Request) -> str:
        """Will it fit, and how long will it take; with the changes that would make it fit."""
        try:
            start = {**values, image: None, prompt: values[prompt] or "?"}
            return paint_view.forecast_html(desk, asked(start), who(request), language(request))
        except Trouble as trouble:
            return explain(trouble, request)

    def last_seed(request: gr.Request) -> Any:
        progress = desk.jobs.find_progress(KIND, who(request))
        return progress.parts[0].seed if progress and progress.parts else gr.skip()

    def other_model(chosen: str) -> Any:
        now = paint_form.find_model(desk, chosen)
        return gr.update(choices=paint_form.sizes(now), value=paint_form.default_size(now))

    go.click(begin, fields, message, **QUICK)
    stop.click(halt, None, None, **QUICK)
    dice.click(lambda: random.randrange(SEED_LIMIT), None, seed, **QUICK)
    reuse.click(last_seed, None, seed, **QUICK)
    restore.click(again, from_shelf, [*filled, message], **LATEST)
    # Emptied again, so that it takes another.
    dropped.upload(restored, dropped, [*filled, message, dropped], **LATEST)
    # What is chosen counts, also where something that was reused left a size of its own.
    size.select(lambda: (None, None), None, [width, height], **LATEST)
    if visitor:
        keep_empty([seed, width, height, steps, guidance])
    else:
        grid.click(begin_grid, fields, message, **QUICK)
        model.change(other_model, model, size, **LATEST)
        model.change(None, model, None, js="model => { Hearth.paintedBy(model); }")
        use = hidden_button("paint-use")
        use.click(lambda: gr.update(choices=model_choices(desk, KIND), value=LARGE), None, model, **QUICK)
        weigh = hidden_button("paint-weigh")  # once something was made, how long it takes is known
        weighed = [each.change for each in (model, size, width, height, steps, guidance, batch)]
        gr.on([*weighed, weigh.click], fit, fields - {image}, fits, **LATEST)
        begin_with = hidden_button("paint-begin-with")  # a file that the guards let nobody have by its path
        begin_with.click(start_from, from_shelf, [image, message], **LATEST)
        remember_settings("paint", desk, named, presets, message)

    def offer() -> Any:
        return gr.update(choices=model_choices(desk, KIND))

    def fill() -> list[Any]:
        now = {name: field.value for name, field in named.items()} | desk.settings.get("paint", {})
        there = model_choices(desk, KIND)
        chosen = now["model"] if now["model"] in [id_ for _, id_ in there] else ""
        return [None, gr.update(choices=there, value=chosen), *(now[name] for name in named if name != "model")]

    return Refresh(fill, [seed, *named.values()], offer, [model])
