"""Speak: the script with its live checks, the voice, the settings; what is heard appears at the right as it is made."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component

from app.engine.jobs.request import FORMATS, SEED_LIMIT, SpeechRequest, VoicePrompt
from app.engine.text import voices
from app.engine.text.voice_limits import DIA
from app.sentence import Trouble, say
from app.ui.page import views
from app.ui.page.translate import language, word
from app.ui.state.desk import Desk
from app.ui.state.person import who
from app.ui.tabs.shared_controls import (
    EACH,
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

KIND: Final = "speech"
FRESH: Final = ""
"""The voice that nobody kept: the model makes one up."""
LARGE: Final = "dia-1.6b"
"""What says the words that a small voice does not know."""


def build(desk: Desk, visitor: bool = False) -> Refresh:
    """For a visitor without anything of the owner's: no draft, no kept voices, no models to choose from."""
    kept = {} if visitor else desk.settings.get("speak", {})
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            with gr.Column(elem_classes="h-card"):
                script = gr.Textbox(
                    label=word("speak.script", "Script"), lines=7, max_lines=24, elem_id="speak-text",
                    placeholder=word("speak.placeholder", "[S1] Type what to say. [S2] A second voice answers."),
                )  # fmt: skip
                gr.HTML('<div id="h-scripts"></div><div id="h-script"></div>', apply_default_css=False)
            with gr.Column(elem_classes="h-card"):
                with gr.Row(elem_classes="h-inline"):
                    voice = gr.Dropdown(
                        choices(desk, visitor), value=FRESH, label=word("speak.voice", "Voice"), elem_id="speak-voice", scale=3,
                        info=word("speak.voice-info", "A saved voice sounds the same every time."),
                    )  # fmt: skip
                    drop = gr.Button(
                        word("preset.drop", "Delete"),
                        size="sm",
                        min_width=60,
                        visible=False,
                        elem_id="speak-voice-drop",
                    )
                with gr.Accordion(word("speak.new-voice", "Create a voice from a recording"), open=False) as drawer:
                    clip = gr.Audio(
                        sources=["upload", "microphone"], type="filepath", label=word("speak.clip", "5 to 10 seconds of one voice"), elem_id="speak-clip", buttons=["download"],
                        visible=False,
                    )  # fmt: skip
                    load_on_open(drawer, clip)
                    transcript = gr.Textbox(label=word("speak.transcript", "Exactly what is said in the recording"), lines=2)
                    with gr.Row(visible=not visitor, elem_classes="h-inline"):
                        name = gr.Textbox(label=word("speak.voice-name", "Name"), scale=2)
                        keep = gr.Button(word("speak.keep-voice", "Save voice"), scale=1)
            with gr.Accordion(word("speak.settings", "Settings"), open=False, elem_classes="h-card", elem_id="speak-settings"):  # fmt: skip
                presets = build_preset_row("speak", desk, visitor)
                model = gr.Dropdown(
                    model_choices(desk, KIND, visitor), value=kept.get("model", ""), label=word("speak.model", "Model"),
                    visible=not visitor, elem_id="speak-model",
                )  # fmt: skip
                with gr.Row(elem_classes="h-inline"):
                    seed = gr.Number(
                        None, precision=0, label=word("speak.seed", "Seed"), elem_id="speak-seed",
                        info=word("speak.seed-info", "Leave empty for a new seed each time."),
                    )  # fmt: skip
                    dice = gr.Button(word("speak.dice", "Random"), size="sm", min_width=60)
                with gr.Row(elem_classes="h-pair"):
                    speed = gr.Slider(
                        0.5, 2.0, kept.get("speed", 1.0), step=0.05, label=word("speak.speed", "Speed"),
                        info=word("speak.speed-info", "The pitch does not change."), elem_id="speak-speed",
                    )  # fmt: skip
                    format_ = gr.Dropdown(
                        list(FORMATS), value=kept.get("format", "wav"), label=word("speak.format", "File format")
                    )
                own = gr.Checkbox(kept.get("own", False), label=word("speak.own", "Set sampling manually"))
                with gr.Group(visible=kept.get("own", False)) as sampling:
                    guidance = gr.Slider(
                        1.0, 5.0, kept.get("guidance", 3.0), step=0.1, label=word("speak.guidance", "Guidance"),
                        info=word("speak.guidance-info", "Higher values follow the text more closely."),
                    )  # fmt: skip
                    temperature = gr.Slider(
                        0.0, 2.5, kept.get("temperature", 1.8), step=0.05, label=word("speak.temperature", "Temperature")
                    )  # fmt: skip
                    top_p = gr.Slider(0.7, 1.0, kept.get("top_p", 0.95), step=0.01, label=word("speak.top-p", "Top p"))
                    cfg_filter = gr.Slider(
                        15, 100, kept.get("cfg_filter", 45), step=1, label=word("speak.cfg-filter", "Guidance filter")
                    )
                loudness = gr.Slider(
                    -30, -10, kept.get("loudness", -18), step=1, label=word("speak.loudness", "Loudness (LUFS)")
                )
                carry = gr.Checkbox(
                    kept.get("carry", True), label=word("speak.carry", "Keep the same voice in every part")
                )
            go, stop, message = build_go_and_stop("speak", word("speak.go", "Speak"))
        with gr.Column():
            gr.HTML('<section id="h-parts" class="h-card"></section>', apply_default_css=False)
            gr.HTML('<section id="h-sound" class="h-card" hidden></section>', apply_default_css=False)
    again_index, from_shelf = hidden_number("speak-again-index"), hidden_number("speak-from")
    restore, again, heard, use = (hidden_button(f"speak-{each}") for each in ("restore", "again", "voices", "use"))

    named: dict[str, Component] = {
        "model": model, "speed": speed, "format": format_, "own": own, "guidance": guidance, "temperature": temperature, "top_p": top_p,
        "cfg_filter": cfg_filter, "loudness": loudness, "carry": carry,
    }  # fmt: skip
    fields: set[Block] = {script, voice, clip, transcript, seed, *named.values()}

    def begin(values: dict[Any, Any], request: gr.Request) -> str:
        def run() -> None:
            desk.jobs.begin(
                SpeechRequest(
                    values[script], values[model], prompt(values), number(values[seed]), *sampled(values), carry_voice=values[carry],
                    speed=values[speed], loudness_lufs=values[loudness], format=values[format_],
                ),
                who(request),
            )  # fmt: skip

        return run_or_explain(run, request)

    def prompt(values: dict[Any, Any]) -> VoicePrompt | None:
        for each in () if visitor else voices.list_voices(desk.keeper.home):
            if each.name == values[voice]:
                return each.prompt
        return VoicePrompt(values[clip], values[transcript] or "") if values[clip] else None

    def sampled(values: dict[Any, Any]) -> tuple[float | None, float | None, float | None, int | None]:
        if not values[own]:
            return None, None, None, None
        return values[guidance], values[temperature], values[top_p], int(values[cfg_filter])

    def restored(creation: float, request: gr.Request) -> list[Any]:
        """All settings of something on the shelf, as it was made."""
        try:
            kept = desk.jobs.find_creation(int(creation), who(request)).request
        except Trouble as trouble:
            return [*[gr.skip()] * len(settings), gr.skip(), explain(trouble, request)]
        assert isinstance(kept, SpeechRequest)
        kept_voices = () if visitor else voices.list_voices(desk.keeper.home)
        spoken_by = next((each.name for each in kept_voices if each.prompt == kept.voice), FRESH)
        notes = [] if kept.voice is None or spoken_by != FRESH else [say("restore.voice", "This used a recording as its voice. Choose the recording again.")]  # fmt: skip
        by_hand = (kept.guidance, kept.temperature, kept.top_p, kept.cfg_filter)
        sampled = [gr.skip() if each is None else each for each in by_hand]
        here, missing = find_model_again(desk, KIND, kept.model, visitor)
        loud = gr.skip() if kept.loudness_lufs is None else kept.loudness_lufs
        own_sampling = any(each is not None for each in by_hand)
        return [kept.text, kept.seed, here, kept.speed, kept.format, own_sampling, *sampled, loud, kept.carry_voice, spoken_by, views.notes_html([*missing, *notes], language(request))]  # fmt: skip

    def keep_voice(clip: str | None, transcript: str, name: str, request: gr.Request) -> tuple[Any, str]:
        try:
            if clip is None:
                raise Trouble(say("speak.no-clip", "There is no recording yet. Upload one or record one."))
            made = voices.keep(desk.keeper.home, name or "", Path(clip), transcript or "", DIA)
        except Trouble as trouble:
            return gr.skip(), explain(trouble, request)
        return gr.update(choices=choices(desk), value=made.name), ""

    def drop_voice(chosen: str | None, request: gr.Request) -> tuple[Any, str]:
        """None: it is to stay."""
        gone = [each for each in voices.list_voices(desk.keeper.home) if each.name == chosen]
        try:
            for each in gone:
                voices.forget(desk.keeper.home, each)
        except OSError as fault:
            return gr.skip(), views.trouble_html(Trouble(say("voice.stays", "The voice {name} could not be deleted: {fault}.", name=str(chosen), fault=str(fault))), language(request))  # fmt: skip
        return (gr.update(choices=choices(desk), value=FRESH) if gone else gr.skip()), ""

    def redo(index: float, request: gr.Request) -> str:
        return run_or_explain(lambda: desk.jobs.redo_part(int(index), who(request)), request)

    def halt(request: gr.Request) -> None:
        desk.jobs.stop(KIND, who(request))

    settings = [script, seed, *named.values()]
    go.click(begin, fields, message, **QUICK)
    stop.click(halt, None, None, **QUICK)
    again.click(redo, again_index, message, **EACH)
    restore.click(restored, from_shelf, [*settings, voice, message], **LATEST)
    dice.click(lambda: random.randrange(SEED_LIMIT), None, seed, **QUICK)
    own.change(lambda shown: gr.update(visible=shown), own, sampling, **LATEST)
    if visitor:
        keep_empty([seed])
    else:
        model.change(None, model, None, js="model => { Hearth.spokenBy(model); }")
        keep.click(keep_voice, [clip, transcript, name], [voice, message], **QUICK)
        voice.change(None, voice, drop, js="voice => ({__type__: 'update', visible: !!voice})")
        drop.click(drop_voice, voice, [voice, message], js="voice => Hearth.voiceDropped(voice)", **LATEST)
        use.click(lambda: gr.update(choices=model_choices(desk, KIND), value=LARGE), None, model, **QUICK)
        heard.click(lambda: gr.update(choices=choices(desk)), None, voice, **LATEST)
        remember_settings("speak", desk, named, presets, message)

    def offer() -> list[Any]:
        return [gr.update(choices=model_choices(desk, KIND)), gr.update(choices=choices(desk))]

    def fill() -> list[Any]:
        now = {name: field.value for name, field in named.items()} | desk.settings.get("speak", {})
        there = model_choices(desk, KIND)
        chosen = now["model"] if now["model"] in [id_ for _, id_ in there] else ""
        rest = [now[name] for name in named if name != "model"]
        return [None, gr.update(choices=choices(desk)), gr.update(choices=there, value=chosen), *rest]

    return Refresh(fill, [seed, voice, *named.values()], offer, [model, voice])


def choices(desk: Desk, visitor: bool = False) -> list[tuple[Any, str]]:
    kept = [] if visitor else voices.list_voices(desk.keeper.home)
    return [(word("speak.fresh", "New random voice"), FRESH), *((each.name, each.name) for each in kept)]


def number(value: float | None) -> int | None:
    return None if value is None else int(value)
