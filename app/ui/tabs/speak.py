"""Speak: what its fields ask for, what its buttons do, and which event calls what."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from app.base.sentence import say, say_to_all
from app.base.trouble import Trouble
from app.engine.hearing.clip_choice import list_spoken
from app.engine.hearing.heard import join_words
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt
from app.engine.jobs.settings import SPEECH
from app.engine.models.voice_limits import DIA
from app.engine.speech.text import voices
from app.engine.speech.text.cast_script import keep_used
from app.engine.speech.text.likely_language import NAMES, choose_language
from app.engine.speech.text.pronunciations import read_field, write_own
from app.ui.state.desk import Desk
from app.ui.state.hearing_desk import nobody_speaks
from app.ui.state.person import NOBODY, OWNER, who
from app.ui.tabs.in_force import clear_when_changed, empty, give_back, tell_reused, tell_reusing, tell_value
from app.ui.tabs.script_calls import hear, read_id, read_number, script_event
from app.ui.tabs.shared_controls import (
    EACH,
    LATEST,
    QUICK,
    JobTab,
    Refresh,
    explain,
    explain_restored,
    keep_empty,
    remember_settings,
    restore_or_explain,
    roll_seed,
    run_or_explain,
)
from app.ui.tabs.speak_fields import FRESH, KIND, SpeakFields, build_fields, voice_choices
from app.ui.tabs.speak_view import list_settings


def build(desk: Desk, guest: bool = False) -> Refresh:
    """Build the tab; a guest's has nothing of the owner's: no saved settings, voices or models."""
    saved = {} if guest else desk.settings.get("speak", {})
    tab = SpeakTab(desk, build_fields(desk, saved, guest), JobTab(desk, KIND, guest))
    connect(tab)
    if guest:
        keep_empty("speak", tab.fields.saved.values())
    else:
        connect_owner(tab)
    fields = tab.fields
    return Refresh(tab.fill, [*fields.saved.values()], tab.offer, [fields.settings.model, fields.voice.voice])


@dataclass(frozen=True, slots=True, eq=False)
class SpeakTab:
    """What the events of the tab do."""

    desk: Desk
    fields: SpeakFields
    shared: JobTab

    def request_from(self, values: dict[Any, Any]) -> SpeechRequest:
        """Make a request of the fields' values."""
        own = self.fields.settings
        asked = own.rows.read(values, values[own.by_hand])
        cast = self._read_cast(values[self.fields.voice.cast], values[own.model])
        model = self.desk.models.resolve("speech", values[own.model], NOBODY if self.shared.guest else OWNER)
        had = list_settings(self.desk, model, cast)
        lacks = {each.field for each in SPEECH.values() if each.by_hand is not None and each.name not in had}  # their sliders are hidden
        return SpeechRequest(
            values[self.fields.script],
            values[own.model],
            self._prompt_from(values),
            **{name: value for name, value in asked.items() if name not in lacks},
            cast=cast,
            pronunciations=read_field(values[self.fields.voice.says] or ""),
        )

    def _read_cast(self, table: str | None, model: str | None) -> tuple[Actor, ...]:
        person = NOBODY if self.shared.guest else OWNER
        return self.desk.models.read_cast(table or "", self.desk.models.resolve("speech", model, person), person)

    def _prompt_from(self, values: dict[Any, Any]) -> VoicePrompt | None:
        """Return the saved voice that was chosen, else the recording, else nothing."""
        voice = self.fields.voice
        chosen = voices.find_named(values[voice.voice] or "", self._list_voices(values[self.fields.settings.model]))
        if chosen is not None:
            return chosen.prompt
        return VoicePrompt(values[voice.clip], values[voice.transcript] or "") if values[voice.clip] else None

    def _list_voices(self, model: str | None) -> tuple[voices.Voice, ...]:
        return self.desk.models.list_voices(model, NOBODY if self.shared.guest else OWNER)

    def begin(self, values: dict[Any, Any], request: gr.Request) -> str:
        return run_or_explain(lambda: self.desk.jobs.begin(keep_used(self.request_from(values)), who(request)), request)

    def speak_book(self, values: dict[Any, Any], request: gr.Request) -> str:
        """Speak the ticked chapters with the settings of the fields; what is in the script stays there."""
        asked = {**values, self.fields.script: "?"}
        return run_or_explain(lambda: self.desk.book.begin(self.request_from(asked)), request)

    def use_model(self, carried: Any) -> Any:
        return self.shared.use(read_id(carried, "speak.use"))

    def redo_part(self, carried: Any, request: gr.Request) -> str:
        job, _, part = read_id(carried, "speak.redo").rpartition(" ")
        place = int(part) if part.isascii() and part.isdecimal() and len(part) < 10 else -1
        return run_or_explain(lambda: self.desk.jobs.redo_part(place, who(request), job), request)

    def speak_changed(self, text: str, cast: str, says: str, model: str, request: gr.Request) -> str:
        return run_or_explain(
            lambda: self.desk.jobs.speak_changed(text, who(request), self._read_cast(cast, model), read_field(says or "")), request
        )

    def restore_creation(self, carried: Any, request: gr.Request) -> list[Any]:
        number = read_number(carried, "speak.restore")
        return restore_or_explain(
            lambda: self._restore(self.shared.read_request_of(number, SpeechRequest, request), request), len(self.fields.restored), request
        )

    def open_creation(self, carried: Any, request: gr.Request) -> list[Any]:
        """Restore a creation's script and settings, and show its parts. Its seed stays behind: no part is redone with it, and the next script
        would have it unasked."""
        number = read_number(carried, "speak.open")

        def restore() -> list[Any]:
            self.desk.jobs.open_parts(number, who(request))
            return self._restore(dataclasses.replace(self.shared.read_request_of(number, SpeechRequest, request), seed=None), request)

        return restore_or_explain(restore, len(self.fields.restored), request)

    def _restore(self, restored: SpeechRequest, request: gr.Request) -> list[Any]:
        """Give values for the restored fields, and notes on what could not be restored."""
        model, notes = self.shared.find_model_again(restored.model)
        voice = next((each.name for each in self._list_voices(model) if restored.voice and voices.is_same(each, restored.voice)), FRESH)
        if restored.voice is not None and voice == FRESH:
            notes += (voices.say_gone(self.desk.keeper.home, restored.voice),)
        cast, gone = self.desk.models.write_cast(dataclasses.replace(restored, model=model), NOBODY if self.shared.guest else OWNER)
        notes += tuple(voices.say_gone(self.desk.keeper.home, each) for each in gone)
        by_hand = any(getattr(restored, each.field) is not None for each in SPEECH.values() if each.by_hand is not None)
        values = {**self.fields.settings.rows.restore(restored), "model": model, "own": by_hand, "voice": voice, "cast": cast}
        values["says"] = "" if self.shared.guest else write_own(self.desk.keeper.home, restored.pronunciations)
        return [restored.text, *(values[name] for name in self.fields.saved), explain_restored(notes, request)]

    def save_voice(self, clip: str | None, transcript: str, name: str, model: str, request: gr.Request) -> tuple[Any, str]:
        """Save a recording as a voice, and choose it."""
        try:
            if clip is None:
                raise Trouble(say("speak.no-clip", "There is no recording yet. Upload one or record one."))
            limits = self.desk.models.read_limits(model)[1]
            made = voices.keep_voice(
                self.desk.keeper.home, name or "", Path(clip), transcript or "", DIA if limits.needs_transcript else limits
            )
        except Trouble as trouble:
            return gr.skip(), explain(trouble, request)
        return gr.update(choices=voice_choices(self.desk, model), value=made.name), ""

    def dictate(self, spoken: str | None, text: str, request: gr.Request) -> tuple[Any, Any, str]:
        """Add what is said in a recording to the script, in whose language it is, and take the recording away."""
        if spoken is None:
            return gr.skip(), gr.skip(), ""
        try:
            heard = self.desk.hearing.hear(Path(spoken), choose_language(text, ("", *NAMES)))
            said = join_words([each.text for each in list_spoken(heard.words)])
            if not said:
                raise nobody_speaks()
        except Trouble as trouble:
            return gr.skip(), gr.skip(), explain(trouble, request)
        return " ".join(each for each in (text.rstrip(), said) if each), None, ""

    def listen_to_clip(self, clip: str | None, request: gr.Request) -> tuple[Any, Any, str]:
        """Have a recording heard: keep its best seconds, and show what is said in them, to be corrected."""
        try:
            if clip is None:
                raise Trouble(say("speak.no-clip", "There is no recording yet. Upload one or record one."))
            folder = self.desk.make_upload_folder()
            chosen = self.desk.hearing.choose_clip(Path(clip), folder)
        except Trouble as trouble:
            return gr.skip(), gr.skip(), explain(trouble, request)
        return str(folder / "clip.wav"), chosen.text, explain_restored(chosen.notes, request)

    def delete_voice(self, chosen: str | None, model: str, request: gr.Request) -> tuple[Any, str]:
        """Delete a saved voice; None where the question was answered with no."""
        gone = [each for each in voices.list_voices(self.desk.keeper.home) if each.name == chosen]
        try:
            for each in gone:
                voices.forget_voice(self.desk.keeper.home, each)
        except OSError as fault:
            trouble = Trouble(
                say_to_all(
                    "voice.stays",
                    "The voice {name} could not be deleted: {fault}. Close it in other programs and try again.",
                    name=str(chosen),
                    fault=str(fault),
                )
            )
            return gr.skip(), explain(trouble, request)
        return (gr.update(choices=voice_choices(self.desk, model), value=FRESH) if gone else gr.skip()), ""

    def show_sampling(self, by_hand: bool) -> Any:
        return gr.update(visible=by_hand)

    def offer_voices(self, model: str, chosen: str | None) -> Any:
        """Offer the voices that the model can speak with; one that it cannot makes way for a random one, and a name that a voice had for its new one."""
        found = voices.find_named(chosen or "", self._list_voices(model))
        return gr.update(choices=voice_choices(self.desk, model), value=found.name if found is not None else FRESH)

    def offer(self) -> list[Any]:
        return [self.shared.offer_models(), gr.update(choices=voice_choices(self.desk, None))]

    def fill(self) -> list[Any]:
        """Fill in the saved settings, and the voices: one that is gone makes way for a random one."""
        values = dict(zip(self.fields.saved, self.shared.saved_values(self.fields.saved), strict=True))
        offered = self.offer_voices(values["model"]["value"], values["voice"])
        return [offered if name == "voice" else value for name, value in values.items()]


def connect(tab: SpeakTab) -> None:
    """Connect the events that owner and guests have."""
    fields, own, message = tab.fields, tab.fields.settings, tab.fields.go.message
    fields.go.go.click(tab.begin, fields.asked, message, **QUICK)
    fields.go.stop.click(tab.shared.stop, None, None, api_name="stop_on_page", **QUICK)
    hear(fields.calls, "speak.redo", tab.redo_part, None, message, **EACH)
    reused = [*fields.saved.values()]
    hear(
        fields.calls, "speak.changed", tab.speak_changed, [fields.script, fields.voice.cast, fields.voice.says, own.model], message, **EACH
    )
    tell_reusing("speak", reused, script_event(fields.calls, "speak.restore"), script_event(fields.calls, "speak.open"))
    reuse = hear(fields.calls, "speak.restore", tab.restore_creation, None, [*fields.restored, message], **LATEST)
    opened = hear(fields.calls, "speak.open", tab.open_creation, None, [*fields.restored, message], **LATEST)
    tell_reused("speak", reused, reuse, opened)
    show_in_force(fields, reused)
    clear_when_changed(fields.asked, message)
    own.dice.click(roll_seed, None, own.rows["seed"], **QUICK)
    own.rows["speed"].change(None, own.rows["speed"], None, js="speed => { Hearth.spokenAt(speed ?? undefined); }", **EACH)
    own.by_hand.change(tab.show_sampling, own.by_hand, own.sampling, **LATEST)


def show_in_force(fields: SpeakFields, reused: Sequence[Component]) -> None:
    """Connect what stands beside Speak and is removed there."""
    seed, voice, calls = fields.settings.rows["seed"], fields.voice, fields.calls
    tell_value("speak", "seed", seed)
    hear(calls, "speak.noseed", None, None, seed, js=empty(seed), **EACH)
    tell_value("speak", "voice", voice.voice)
    tell_value("speak", "clip", voice.clip)
    hear(calls, "speak.novoice", None, None, voice.voice, js=empty(voice.voice).replace("null", '""'), **EACH)
    hear(calls, "speak.noclip", None, None, [voice.clip, voice.transcript], js=empty(voice.clip, voice.transcript), **EACH)
    tell_value("speak", "transcript", voice.transcript)
    tell_value("speak", "cast", voice.cast)
    tell_value("speak", "says", voice.says)
    kept = [seed, voice.voice, voice.cast, voice.says, voice.clip, voice.transcript, voice.drawer]
    js = "() => [...Hearth.kept('speak', ['seed', 'voice', 'cast', 'says', 'clip', 'transcript']), Hearth.keptClip()]"
    hear(calls, "speak.kept", None, None, kept, js=js, **EACH)
    hear(calls, "speak.back", None, None, [*reused], js=give_back("speak"), **EACH)


def show_delete(desk: Desk) -> str:
    """Return the script that shows Delete for saved voices alone: the ready ones are part of Hearth."""
    saved = {each.name for each in voices.list_voices(desk.keeper.home)}
    ready = [each.name for each in voices.list_ready_voices() if each.name not in saved]
    return f"voice => ({{__type__: 'update', visible: !!voice && !{json.dumps(ready)}.includes(voice)}})"


def connect_owner(tab: SpeakTab) -> None:
    """Connect the events that only the owner has."""
    fields, voice, message = tab.fields, tab.fields.voice, tab.fields.go.message
    model = fields.settings.model
    model.change(None, model, None, js="model => { Hearth.spokenBy(model); }")
    model.change(tab.offer_voices, [model, voice.voice], voice.voice, **LATEST)
    voice.save.click(tab.save_voice, [voice.clip, voice.transcript, voice.name, model], [voice.voice, message], **QUICK)
    said, heard = fields.dictation, [fields.script, fields.dictation, message]
    gr.on([said.stop_recording, said.upload], tab.dictate, [said, fields.script], heard, **LATEST)
    voice.listen.click(tab.listen_to_clip, voice.clip, [voice.clip, voice.transcript, message], **LATEST)
    voice.voice.change(None, voice.voice, voice.delete, js=show_delete(tab.desk))
    sure = "async (voice, model) => [await Hearth.confirmVoice(voice), model]"
    voice.delete.click(tab.delete_voice, [voice.voice, model], [voice.voice, message], js=sure, **LATEST)
    hear(fields.calls, "speak.book", tab.speak_book, fields.asked, message, **QUICK)
    use = hear(fields.calls, "speak.use", tab.use_model, None, model, **QUICK)
    use.then(None, None, None, js="() => { Hearth.modelChosen(); }", **QUICK)
    hear(fields.calls, "speak.voices", tab.offer_voices, [model, voice.voice], voice.voice, **LATEST)
    remember_settings("speak", tab.desk, fields.saved, fields.settings.presets, message)
