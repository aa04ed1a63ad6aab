"""Paint: the prompt, the picture to start from, the settings; what is painted appears at the right, step by step."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block
from PIL import Image

from app.engine import catalog, metadata
from app.engine.model import Model
from app.engine.painting.schedulers import NAMES
from app.engine.request import SEED_LIMIT, Lora, PictureRequest
from app.engine.stock import best, located
from app.sentence import Trouble, say
from app.ui import paint_view, show
from app.ui.desk import Desk
from app.ui.guard import who
from app.ui.words import language, word

KIND: Final = "picture"
OWN_SIZE: Final = "own"


def build(desk: Desk, visitor: bool = False) -> None:
    """For a visitor without anything of the owner's: no draft, no models to choose from, no LoRAs, no grid, no forecast, no files to restore from."""
    kept = {} if visitor else desk.settings.get("paint", {})
    model_now = model_of(desk, kept.get("model", ""))
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            with gr.Column(elem_classes="h-card"):
                prompt = gr.Textbox(
                    label=word("paint.prompt", "Prompt"), value=kept.get("prompt", ""), lines=3, max_lines=10, elem_id="paint-prompt",
                    placeholder=word("paint.placeholder", "What should the picture show?"),
                )  # fmt: skip
                gr.HTML('<div id="h-samples"></div>', apply_default_css=False)
                negative = gr.Textbox(
                    label=word("paint.negative", "Not in the picture"),
                    value=kept.get("negative", ""),
                    lines=1,
                    elem_id="paint-negative",
                )
            with gr.Column(elem_classes="h-card"):
                with gr.Row():
                    model = gr.Dropdown(
                        models(desk, visitor),
                        value=kept.get("model", ""),
                        label=word("paint.model", "Model"),
                        visible=not visitor,
                        elem_id="paint-model",
                    )
                    size = gr.Dropdown(
                        sizes(model_now),
                        value=default_size(model_now),
                        label=word("paint.size", "Size"),
                        elem_id="paint-size",
                    )
                fits = gr.HTML("", elem_id="paint-fit", apply_default_css=False)
            with gr.Accordion(
                word("paint.start", "Start from a picture"), open=False, elem_classes="h-card", elem_id="paint-start"
            ):
                image = gr.ImageEditor(
                    type="pil", label=word("paint.image", "Paint over what is to change; unpainted, the whole picture is the start"), elem_id="paint-image",
                    brush=gr.Brush(colors=["#ffffff"], default_size=24), transforms=(), sources=("upload", "clipboard"), layers=False,
                )  # fmt: skip
                strength = gr.Slider(0.05, 1.0, 0.6, step=0.05, label=word("paint.strength", "How far to leave it"))
            with gr.Accordion(word("paint.settings", "Settings"), open=False, elem_classes="h-card"):
                with gr.Row():
                    width = gr.Number(
                        None,
                        precision=0,
                        label=word("paint.width", "Width"),
                        info=word("paint.own-size", "Empty: the size above."),
                    )
                    height = gr.Number(None, precision=0, label=word("paint.height", "Height"))
                with gr.Row():
                    steps = gr.Number(
                        None,
                        precision=0,
                        label=word("paint.steps", "Steps"),
                        info=word("paint.own", "Empty: what the model's makers recommend."),
                    )
                    guidance = gr.Number(None, label=word("paint.guidance", "Guidance"))
                scheduler = gr.Dropdown(
                    [(word("paint.automatic", "automatic"), ""), *NAMES],
                    value="",
                    label=word("paint.scheduler", "Scheduler"),
                )
                with gr.Row():
                    seed = gr.Number(
                        None,
                        precision=0,
                        minimum=0,
                        maximum=SEED_LIMIT - 1,
                        label=word("paint.seed", "Seed"),
                        elem_id="paint-seed",
                    )
                    dice = gr.Button(word("paint.dice", "Roll"), size="sm", min_width=60)
                    reuse = gr.Button(word("paint.reuse", "Same as the last"), size="sm", min_width=60)
                with gr.Row():
                    batch = gr.Slider(1, 8, 1, step=1, label=word("paint.batch", "Pictures"))
                    upscale = gr.Dropdown(
                        [("1x", 1), ("2x", 2), ("4x", 4)], value=1, label=word("paint.upscale", "Enlarge")
                    )
                loras = gr.File(
                    file_count="multiple",
                    file_types=[".safetensors"],
                    label=word("paint.loras", "LoRAs"),
                    height=90,
                    visible=not visitor,
                )
                weights = gr.Textbox(
                    "",
                    label=word("paint.weights", "Their weights, by commas"),
                    placeholder="1.0, 0.7",
                    visible=not visitor,
                )
            with gr.Accordion(
                word("paint.grid", "A grid over two settings"), open=False, elem_classes="h-card", visible=not visitor
            ):
                with gr.Row():
                    across = gr.Dropdown(axes(), value="steps", label=word("grid.across", "Across"))
                    across_values = gr.Textbox(
                        "", label=word("grid.values", "Values, by commas"), placeholder="8, 16, 24"
                    )
                with gr.Row():
                    down = gr.Dropdown(axes(), value="guidance", label=word("grid.down", "Down"))
                    down_values = gr.Textbox(
                        "", label=word("grid.values-down", "Values, by commas"), placeholder="2, 4, 7"
                    )
                grid = gr.Button(word("grid.go", "Paint the grid"))
            with gr.Row(elem_classes="h-go"):
                go = gr.Button(word("paint.go", "Paint"), variant="primary", elem_id="paint-go")
                stop = gr.Button(word("paint.stop", "Stop and keep"), elem_id="paint-stop")
                gr.HTML('<span class="h-soft">Ctrl+Enter, Esc</span>', apply_default_css=False)
            message = gr.HTML("", elem_id="paint-message", apply_default_css=False)
        with gr.Column():
            gr.HTML('<section id="h-canvas" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-grid" class="h-card" hidden></section>', apply_default_css=False)
    dropped = gr.File(elem_id="paint-dropped", elem_classes="h-hidden", type="filepath", label="dropped")
    from_shelf = gr.Number(
        -1, precision=0, elem_id="paint-from", elem_classes="h-hidden", label="creation", container=False
    )
    restore = gr.Button("restore", elem_id="paint-restore", elem_classes="h-hidden")
    begin_with = gr.Button("start from", elem_id="paint-begin-with", elem_classes="h-hidden")

    fields: set[Block] = {
        prompt, negative, model, size, image, strength, width, height, steps, guidance, scheduler, seed, batch, upscale, loras, weights,
        across, across_values, down, down_values,
    }  # fmt: skip
    filled = [prompt, negative, model, width, height, steps, guidance, scheduler, seed, batch, upscale, strength]

    def asked(values: dict[Any, Any], request: gr.Request) -> PictureRequest:
        start, mask = pictures(desk, values[image])
        across_size = values[size].split("x") if values[size] and values[size] != OWN_SIZE else (None, None)
        return PictureRequest(
            prompt=values[prompt], model=values[model], negative=values[negative] or "",
            width=number(values[width]) or number(across_size[0]), height=number(values[height]) or number(across_size[1]),
            steps=number(values[steps]), guidance=values[guidance], scheduler=values[scheduler] or None, seed=number(values[seed]),
            batch=int(values[batch]), image=start, mask=mask, strength=values[strength], upscale=int(values[upscale]),
            loras=() if visitor else tuple(chosen_loras(values[loras] or [], values[weights] or "")),
        )  # fmt: skip

    def begin(values: dict[Any, Any], request: gr.Request) -> str:
        person = who(request)
        try:
            desk.begin(asked(values, request), person)
        except Trouble as trouble:
            return show.trouble(trouble, language(request))
        if person.owner:
            desk.settings.put(
                {"paint": {"prompt": values[prompt], "negative": values[negative], "model": values[model]}}
            )
        return ""

    def begin_grid(values: dict[Any, Any], request: gr.Request) -> str:
        try:
            desk.begin_grid(
                dataclasses.replace(asked(values, request), batch=1), (values[across], parsed(values[across], values[across_values])),
                (values[down], parsed(values[down], values[down_values])), who(request),
            )  # fmt: skip
        except Trouble as trouble:
            return show.trouble(trouble, language(request))
        return ""

    def halt(request: gr.Request) -> None:
        desk.stop(KIND, who(request))

    def put(request: PictureRequest) -> list[Any]:
        return [
            request.prompt, request.negative, request.model if request.model in [id_ for _, id_ in models(desk, visitor)] else "", request.width,
            request.height, request.steps, request.guidance, request.scheduler or "", request.seed, request.batch, request.upscale,
            request.strength,
        ]  # fmt: skip

    def restored(file: str | None, request: gr.Request) -> list[Any]:
        """The settings of a picture that was dropped anywhere on the page."""
        spoken = language(request)
        if file is None:
            return [gr.skip()] * (len(filled) + 1)
        try:
            found = metadata.read(Path(file))
        except Trouble as trouble:
            return [*[gr.skip()] * len(filled), show.trouble(trouble, spoken)]
        return [*put(found.request), show.notes(found.notes, spoken)]

    def again(creation: float, request: gr.Request) -> list[Any]:
        kept = desk.creation(int(creation), who(request))
        assert isinstance(kept.request, PictureRequest)
        return [*put(kept.request), ""]

    def start_from(creation: float, request: gr.Request) -> Any:
        return str(desk.creation(int(creation), who(request)).path)

    def fit(values: dict[Any, Any], request: gr.Request) -> str:
        """Will it fit, and how long will it take; with the changes that would make it fit."""
        try:
            start = {**values, image: None, prompt: values[prompt] or "?"}
            return paint_view.fit(desk, asked(start, request), who(request), language(request))
        except Trouble as trouble:
            return show.trouble(trouble, language(request))

    def last_seed(request: gr.Request) -> Any:
        progress = desk.progress(KIND, who(request))
        return progress.parts[0].seed if progress and progress.parts else gr.skip()

    def other_model(chosen: str) -> Any:
        now = model_of(desk, chosen)
        return gr.update(choices=sizes(now), value=default_size(now))

    quick: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    go.click(begin, fields, message, **quick)
    stop.click(halt, None, None, **quick)
    dice.click(lambda: random.randrange(SEED_LIMIT), None, seed, **quick)
    reuse.click(last_seed, None, seed, **quick)
    restore.click(again, from_shelf, [*filled, message], **quick)
    if visitor:
        return
    grid.click(begin_grid, fields, message, **quick)
    model.change(other_model, model, size, **quick)
    for each in (model, size, width, height, steps, guidance, batch):
        each.change(fit, fields, fits, **quick)
    dropped.upload(restored, dropped, [*filled, message], **quick)
    begin_with.click(start_from, from_shelf, image, **quick)


def model_of(desk: Desk, asked: str) -> Model:
    return catalog.find(asked) if asked else best(desk.keeper.home, KIND)


def models(desk: Desk, visitor: bool = False) -> list[tuple[Any, str]]:
    there = [each for each in desk.models() if not visitor and each.kind == KIND and located(desk.keeper.home, each)]
    return [(word("paint.best", "The best that is here"), ""), *((each.title, each.id) for each in there)]


def sizes(model: Model) -> list[tuple[str, str]]:
    """Presets that fit the model; a model of the person's own may recommend a size that is none of them."""
    own = (model.settings.width, model.settings.height)
    presets = model.settings.sizes if own in model.settings.sizes else (own, *model.settings.sizes)
    return [(f"{width} x {height}", f"{width}x{height}") for width, height in presets]


def default_size(model: Model) -> str:
    return f"{model.settings.width}x{model.settings.height}"


def pictures(desk: Desk, drawn: dict[str, Any] | None) -> tuple[str | None, str | None]:
    """The editor's picture and what was painted over it, as files: pictures cross to the engine that way."""
    background = drawn.get("background") if drawn else None
    if background is None:
        return None, None
    folder = desk.upload_folder()
    start = folder / "start.png"
    background.convert("RGB").save(start)
    painted = Image.new("L", background.size, 0)
    for layer in (drawn or {}).get("layers") or ():
        painted.paste(255, mask=layer.getchannel("A").point(lambda alpha: 255 if alpha > 16 else 0))
    if painted.getextrema()[1] == 0:
        return str(start), None
    mask = folder / "mask.png"
    painted.save(mask)
    return str(start), str(mask)


def chosen_loras(files: list[str], weights: str) -> list[Lora]:
    given = [part for part in weights.replace(";", ",").split(",") if part.strip()]
    try:
        numbers = [float(part) for part in given]
    except ValueError as fault:
        raise Trouble(
            say(
                "paint.weights-bad",
                '"{weights}" are not weights. Write numbers with commas between: 1.0, 0.7',
                weights=weights,
            )
        ) from fault
    return [Lora(file, numbers[place] if place < len(numbers) else 1.0) for place, file in enumerate(files)]


def axes() -> list[tuple[Any, str]]:
    return [
        (word("axis.steps", "steps"), "steps"), (word("axis.guidance", "guidance"), "guidance"), (word("axis.seed", "seed"), "seed"),
        (word("axis.scheduler", "scheduler"), "scheduler"), (word("axis.strength", "strength"), "strength"), (word("axis.prompt", "prompt"), "prompt"),
    ]  # fmt: skip


WHOLE: Final = frozenset({"steps", "seed"})
WORDS: Final = frozenset({"scheduler", "prompt"})


def parsed(axis: str, values: str) -> list[Any]:
    given = [part.strip() for part in values.split("|" if axis == "prompt" else ",") if part.strip()]
    if not given:
        raise Trouble(
            say(
                "grid.empty",
                "The grid needs values for {axis}: write them with commas between (prompts with a | between).",
                axis=axis,
            )
        )
    if axis in WORDS:
        return given
    try:
        return [int(each) if axis in WHOLE else float(each) for each in given]
    except ValueError as fault:
        raise Trouble(
            say(
                "grid.bad",
                '"{values}" are not numbers for {axis}. Write them with commas between.',
                values=values,
                axis=axis,
            )
        ) from fault


def number(value: Any) -> int | None:
    return None if value in (None, "") else int(value)
