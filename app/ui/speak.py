"""Speak: the script with its live checks, the voice, the settings; what is heard appears at the right as it is made."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block

from app.engine import voices
from app.engine.limits import DIA
from app.engine.request import FORMATS, SEED_LIMIT, SpeechRequest, VoicePrompt
from app.engine.stock import located
from app.sentence import Trouble, say
from app.ui import show
from app.ui.desk import Desk
from app.ui.guard import who
from app.ui.words import language, word

KIND: Final = "speech"
FRESH: Final = ""
"""The voice that nobody kept: the model makes one up."""


def build(desk: Desk, visitor: bool = False) -> None:
    """For a visitor without anything of the owner's: no draft, no kept voices, no models to choose from."""
    kept = {} if visitor else desk.settings.get("speak", {})
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            with gr.Column(elem_classes="h-card"):
                script = gr.Textbox(
                    label=word("speak.script", "Script"), value=kept.get("text", ""), lines=7, max_lines=24, elem_id="speak-text",
                    placeholder=word("speak.placeholder", "[S1] Write what is to be said. [S2] A second voice answers."),
                )  # fmt: skip
                gr.HTML('<div id="h-script"></div>', apply_default_css=False)
            with gr.Column(elem_classes="h-card"):
                voice = gr.Dropdown(
                    choices(desk, visitor), value=FRESH, label=word("speak.voice", "Voice"), elem_id="speak-voice",
                    info=word("speak.voice-info", "A kept voice sounds the same from part to part and from day to day."),
                )  # fmt: skip
                with gr.Accordion(word("speak.new-voice", "A voice from a recording"), open=False):
                    clip = gr.Audio(
                        sources=["upload", "microphone"],
                        type="filepath",
                        label=word("speak.clip", "5 to 10 seconds of one voice"),
                    )
                    transcript = gr.Textbox(label=word("speak.transcript", "The exact words of the recording"), lines=2)
                    with gr.Row(visible=not visitor):
                        name = gr.Textbox(label=word("speak.voice-name", "Name"), scale=2)
                        keep = gr.Button(word("speak.keep-voice", "Keep this voice"), scale=1)
            with gr.Accordion(word("speak.settings", "Settings"), open=False, elem_classes="h-card"):
                model = gr.Dropdown(
                    models(desk, visitor), value=kept.get("model", ""), label=word("speak.model", "Model"), visible=not visitor
                )  # fmt: skip
                with gr.Row():
                    seed = gr.Number(
                        value=None,
                        precision=0,
                        minimum=0,
                        maximum=SEED_LIMIT - 1,
                        label=word("speak.seed", "Seed"),
                        info=word("speak.seed-info", "Empty: a new one each time."),
                    )
                    dice = gr.Button(word("speak.dice", "Roll"), size="sm", min_width=60)
                with gr.Row():
                    speed = gr.Slider(
                        0.5,
                        2.0,
                        kept.get("speed", 1.0),
                        step=0.05,
                        label=word("speak.speed", "Speed"),
                        info=word("speak.speed-info", "The pitch stays."),
                    )
                    format_ = gr.Dropdown(
                        list(FORMATS), value=kept.get("format", "wav"), label=word("speak.format", "File format")
                    )
                own = gr.Checkbox(False, label=word("speak.own", "Set the sampling by hand"))
                with gr.Group(visible=False) as sampling:
                    guidance = gr.Slider(
                        1.0,
                        5.0,
                        3.0,
                        step=0.1,
                        label=word("speak.guidance", "Guidance"),
                        info=word("speak.guidance-info", "Higher follows the text more closely."),
                    )
                    temperature = gr.Slider(0.0, 2.5, 1.8, step=0.05, label=word("speak.temperature", "Temperature"))
                    top_p = gr.Slider(0.7, 1.0, 0.95, step=0.01, label=word("speak.top-p", "Top p"))
                    cfg_filter = gr.Slider(15, 100, 45, step=1, label=word("speak.cfg-filter", "Guidance filter"))
                loudness = gr.Slider(
                    -30, -10, kept.get("loudness", -18), step=1, label=word("speak.loudness", "Loudness (LUFS)")
                )
                carry = gr.Checkbox(
                    kept.get("carry", True), label=word("speak.carry", "Carry the voice from part to part")
                )
            with gr.Row(elem_classes="h-go"):
                go = gr.Button(word("speak.go", "Speak"), variant="primary", elem_id="speak-go")
                stop = gr.Button(word("speak.stop", "Stop and keep"), elem_id="speak-stop")
                gr.HTML('<span class="h-soft">Ctrl+Enter, Esc</span>', apply_default_css=False)
            message = gr.HTML("", elem_id="speak-message", apply_default_css=False)
        with gr.Column():
            gr.HTML('<section id="h-parts" class="h-card" aria-live="polite"></section>', apply_default_css=False)
            gr.HTML('<section id="h-sound" class="h-card" hidden></section>', apply_default_css=False)
    again_index = gr.Number(
        -1, precision=0, elem_id="speak-again-index", elem_classes="h-hidden", label="part", container=False
    )
    from_shelf = gr.Number(
        -1, precision=0, elem_id="speak-from", elem_classes="h-hidden", label="creation", container=False
    )
    restore = gr.Button("restore", elem_id="speak-restore", elem_classes="h-hidden")
    again = gr.Button("again", elem_id="speak-again", elem_classes="h-hidden")

    fields: set[Block] = {
        script,
        voice,
        clip,
        transcript,
        model,
        seed,
        speed,
        format_,
        own,
        guidance,
        temperature,
        top_p,
        cfg_filter,
        loudness,
        carry,
    }

    def begin(values: dict[Any, Any], request: gr.Request) -> str:
        person, spoken = who(request), language(request)
        try:
            asked = SpeechRequest(
                values[script], values[model], prompt(values), number(values[seed]), *sampled(values), carry_voice=values[carry],
                speed=values[speed], loudness_lufs=values[loudness], format=values[format_],
            )  # fmt: skip
            desk.begin(asked, person)
        except Trouble as trouble:
            return show.trouble(trouble, spoken)
        if person.owner:
            desk.settings.put({"speak": {"text": values[script], "model": values[model], "speed": values[speed], "format": values[format_], "loudness": values[loudness], "carry": values[carry]}})  # fmt: skip
        return ""

    def halt(request: gr.Request) -> None:
        desk.stop(KIND, who(request))

    def prompt(values: dict[Any, Any]) -> VoicePrompt | None:
        for each in () if visitor else voices.list_voices(desk.keeper.home):
            if each.name == values[voice]:
                return each.prompt
        return VoicePrompt(values[clip], values[transcript] or "") if values[clip] else None

    def sampled(values: dict[Any, Any]) -> tuple[float | None, float | None, float | None, int | None]:
        if not values[own]:
            return None, None, None, None
        return values[guidance], values[temperature], values[top_p], int(values[cfg_filter])

    def redo(index: float, request: gr.Request) -> str:
        try:
            desk.again(int(index), who(request))
        except Trouble as trouble:
            return show.trouble(trouble, language(request))
        return ""

    def restored(creation: float, request: gr.Request) -> list[Any]:
        """All settings of something on the shelf, as it was made."""
        kept = desk.creation(int(creation), who(request)).request
        assert isinstance(kept, SpeechRequest)
        own_sampling = any(each is not None for each in (kept.guidance, kept.temperature, kept.top_p, kept.cfg_filter))
        sampled = [
            gr.skip() if each is None else each
            for each in (kept.guidance, kept.temperature, kept.top_p, kept.cfg_filter)
        ]
        here = kept.model if kept.model in [id_ for _, id_ in models(desk, visitor)] else ""
        loud = gr.skip() if kept.loudness_lufs is None else kept.loudness_lufs
        return [kept.text, here, kept.seed, kept.speed, kept.format, own_sampling, *sampled, loud, kept.carry_voice]

    def keep_voice(clip: str | None, transcript: str, name: str, request: gr.Request) -> tuple[Any, str]:
        try:
            if clip is None:
                raise Trouble(say("speak.no-clip", "There is no recording yet. Upload a clip, or record one."))
            made = voices.keep(desk.keeper.home, name or "", Path(clip), transcript or "", DIA)
        except Trouble as trouble:
            return gr.skip(), show.trouble(trouble, language(request))
        return gr.update(choices=choices(desk), value=made.name), ""

    quick: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    go.click(begin, fields, message, **quick)
    stop.click(halt, None, None, **quick)
    again.click(redo, again_index, message, **quick)
    settings = [script, model, seed, speed, format_, own, guidance, temperature, top_p, cfg_filter, loudness, carry]
    restore.click(restored, from_shelf, settings, **quick)
    if not visitor:
        keep.click(keep_voice, [clip, transcript, name], [voice, message], **quick)
    dice.click(lambda: random.randrange(SEED_LIMIT), None, seed, **quick)
    own.change(lambda shown: gr.update(visible=shown), own, sampling, **quick)


def choices(desk: Desk, visitor: bool = False) -> list[tuple[Any, str]]:
    kept = [] if visitor else voices.list_voices(desk.keeper.home)
    return [(word("speak.fresh", "A fresh one"), FRESH), *((each.name, each.name) for each in kept)]


def models(desk: Desk, visitor: bool = False) -> list[tuple[Any, str]]:
    there = [each for each in desk.models() if not visitor and each.kind == KIND and located(desk.keeper.home, each)]
    return [(word("speak.best", "The best that is here"), ""), *((each.title, each.id) for each in there)]


def number(value: float | None) -> int | None:
    return None if value is None else int(value)
