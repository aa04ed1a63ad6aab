"""The fields of Speak, card by card: layout and labels, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component

from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.settings import SPEECH
from app.ui.page.protocol import Call
from app.ui.page.translate import word
from app.ui.state.desk import Desk
from app.ui.state.person import NOBODY, OWNER
from app.ui.tabs.script_calls import build_calls
from app.ui.tabs.setting_fields import SettingFields
from app.ui.tabs.shared_controls import GoAndStop, PresetRow, build_go_and_stop, build_preset_row, load_on_open, model_choices

KIND: Final = "speech"
FRESH: Final = ""
"""With this choice the model makes a voice up, instead of using a saved one."""
Saved = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class VoiceCard:
    voice: gr.Dropdown
    cast: gr.Textbox
    """cast.js draws the voice of each name in the script from this JSON (cast_table.py)."""
    says: gr.Textbox
    """It holds how words of the script are said differently, as JSON (pronunciations.py): says.js draws it."""
    delete: gr.Button
    drawer: gr.Accordion
    clip: gr.Audio
    transcript: gr.Textbox
    listen: gr.Button
    name: gr.Textbox
    save: gr.Button


@dataclass(frozen=True, slots=True, eq=False)
class SettingsCard:
    presets: PresetRow
    model: gr.Dropdown
    dice: gr.Button
    by_hand: gr.Checkbox
    sampling: gr.Group
    """The group is shown where sampling is set by hand."""
    rows: SettingFields


@dataclass(frozen=True, slots=True, eq=False)
class SpeakFields:
    script: gr.Textbox
    dictation: gr.Audio
    voice: VoiceCard
    settings: SettingsCard
    go: GoAndStop
    calls: gr.HTML

    @property
    def saved(self) -> dict[str, Component]:
        """The fields whose values are saved, by their names in the settings."""
        own = self.settings
        return {
            **own.rows.kept,
            "model": own.model,
            "own": own.by_hand,
            "voice": self.voice.voice,
            "cast": self.voice.cast,
            "says": self.voice.says,
        }

    @property
    def restored(self) -> list[Component]:
        """The fields that an earlier creation fills again."""
        return [self.script, *self.saved.values()]

    @property
    def asked(self) -> set[Block]:
        """The fields that a request is made from."""
        return {*self.restored, self.voice.clip, self.voice.transcript}


def build_fields(desk: Desk, saved: Saved, guest: bool) -> SpeakFields:
    with gr.Row(elem_classes="h-room"):
        with gr.Column():
            with gr.Column(elem_classes="h-card"):
                script = gr.Textbox(
                    label=word("speak.script", "Script"),
                    lines=7,
                    max_lines=24,
                    elem_id="speak-text",
                    placeholder=word("speak.placeholder", "[S1] Type what to say. [S2] A second voice answers."),
                )
                gr.HTML(
                    '<div id="h-scripts"></div><section id="h-book" hidden></section><div id="h-script"></div><details id="h-says" hidden></details>',
                    apply_default_css=False,
                )
                with gr.Accordion(word("speak.dictate", "Dictate"), open=False, visible=not guest, elem_id="speak-dictate") as dictate:
                    dictation = gr.Audio(
                        sources=["microphone", "upload"],
                        type="filepath",
                        label=word("speak.dictation", "What you say is added to the script"),
                        elem_id="speak-dictation",
                        visible=False,
                    )
                    load_on_open(dictate, dictation)
            voice = _build_voice(desk, saved, guest)
            settings = _build_settings(desk, saved, guest)
            go = build_go_and_stop("speak", word("speak.go", "Speak"))
        with gr.Column():
            gr.HTML('<section id="h-sound" class="h-card" hidden></section>', apply_default_css=False)
            gr.HTML('<section id="h-parts" class="h-card"></section>', apply_default_css=False)
    own: tuple[Call, ...] = () if guest else ("speak.voices", "speak.use", "speak.book")
    return SpeakFields(
        script,
        dictation,
        voice,
        settings,
        go,
        build_calls(
            "speak.restore",
            "speak.open",
            "speak.redo",
            "speak.changed",
            "speak.back",
            "speak.kept",
            "speak.noclip",
            "speak.novoice",
            "speak.noseed",
            *own,
        ),
    )


def voice_choices(desk: Desk, model: str | None, guest: bool = False) -> list[tuple[Any, str]]:
    offered = desk.models.list_voices(model, NOBODY if guest else OWNER)
    return [(word("speak.fresh", "New random voice"), FRESH), *((each.name, each.name) for each in offered)]


def _build_voice(desk: Desk, saved: Saved, guest: bool) -> VoiceCard:
    with gr.Column(elem_classes="h-card"):
        with gr.Row(elem_classes="h-inline"):
            voice = gr.Dropdown(
                voice_choices(desk, None, guest),
                value=FRESH,
                label=word("speak.voice", "Voice"),
                elem_id="speak-voice",
                scale=3,
                info=word("speak.voice-info", "A ready or saved voice sounds the same every time."),
            )
            delete = gr.Button(word("preset.delete", "Delete"), size="sm", min_width=60, visible=False, elem_id="speak-voice-delete")
        cast = gr.Textbox(saved.get("cast", ""), container=False, show_label=False, elem_id="speak-cast", elem_classes="h-hidden")
        says = gr.Textbox(saved.get("says", ""), container=False, show_label=False, elem_id="speak-says", elem_classes="h-hidden")
        gr.HTML('<section id="h-cast" hidden></section>', apply_default_css=False)
        gr.HTML('<details id="h-voices" hidden></details>', visible=not guest, apply_default_css=False)
        with gr.Accordion(word("speak.new-voice", "Create a voice from a recording"), open=False, elem_id="speak-new-voice") as drawer:
            clip = gr.Audio(
                sources=["upload", "microphone"],
                type="filepath",
                label=word("speak.clip", "One voice, 5 to 10 s"),
                elem_id="speak-clip",
                buttons=["download"],
                visible=False,
            )
            load_on_open(drawer, clip)
            transcript = gr.Textbox(
                label=word("speak.transcript", "Exactly what is said in the recording"), lines=2, elem_id="speak-transcript"
            )
            listen = gr.Button(
                word("speak.listen-clip", "Choose the best seconds and write the words"),
                size="sm",
                visible=not guest,
                elem_id="speak-listen-clip",
            )
            with gr.Row(visible=not guest, elem_classes="h-inline"):
                name = gr.Textbox(label=word("speak.voice-name", "Name"), scale=2)
                save = gr.Button(word("speak.keep-voice", "Save voice"), scale=1)
    return VoiceCard(voice, cast, says, delete, drawer, clip, transcript, listen, name, save)


def _build_settings(desk: Desk, saved: Saved, guest: bool) -> SettingsCard:
    # Seed and speed come as a change, which the page is told of.
    rows = SettingFields("speak", SPEECH, SpeechRequest, {**saved, "seed": None, "speed": 1.0})
    with gr.Accordion(word("speak.settings", "Settings"), open=False, elem_classes="h-card", elem_id="speak-settings"):
        presets = build_preset_row("speak", desk, guest)
        model = gr.Dropdown(
            model_choices(desk, KIND, guest),
            value=saved.get("model", ""),
            label=word("speak.model", "Model"),
            visible=not guest,
            elem_id="speak-model",
        )
        with gr.Row(elem_classes="h-inline"):
            rows.build("seed")
            dice = gr.Button(word("speak.dice", "Random"), size="sm", min_width=60)
        with gr.Row(elem_classes="h-pair"):
            rows.build("speed", "format")
        by_hand = gr.Checkbox(saved.get("own", False), label=word("speak.own", "Set sampling manually"))
        with gr.Group(visible=saved.get("own", False)) as sampling:
            rows.build_rest(by_hand=True)
        rows.build_rest()
    return SettingsCard(presets, model, dice, by_hand, sampling, rows)
