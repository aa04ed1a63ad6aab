"""Speak as it is filled when its page is opened."""

from __future__ import annotations

from pathlib import Path

import gradio as gr
import pytest

from app.engine.hearing.heard import Heard, Word
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.ui.state.hearing_desk import HearingDesk
from app.ui.state.person import NOBODY, OWNER
from app.ui.tabs import speak, speak_view
from app.ui.tabs.shared_controls import JobTab
from app.ui.tabs.speak_fields import KIND, build_fields
from tests.support.cached_pockets import put_phonon
from tests.support.guests import desk_at


def test_a_page_is_filled_with_what_was_saved_and_voices_that_are_gone_make_way(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        desk.settings.put({"speak": {"voice": "Gone", "format": "flac", "model": "starter-voice"}})
        with gr.Blocks():
            refresh = speak.build(desk)
        filled = refresh.fill()
    updates = [each for each in filled if isinstance(each, dict)]
    assert {each["value"] for each in updates} == {"", "starter-voice"} and "flac" in filled


def test_what_is_dictated_is_heard_in_the_language_of_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def hear(self: HearingDesk, sound: Path, language: str) -> Heard:
        told.append(language)
        return Heard((Word("Ja.", 0.0, 0.5, 0.9),), (), 1.0, "whisper-small")

    monkeypatch.setattr(HearingDesk, "hear", hear)
    with desk_at(tmp_path / "home") as desk, gr.Blocks():
        tab = speak.SpeakTab(desk, build_fields(desk, {}, False), JobTab(desk, KIND, False))
        texts = ("", "Das ist nicht der Hund, und ich bin es auch nicht.", "\u5929\u6c14\u5f88\u597d\u3002", "It was the best of times.")
        said = [tab.dictate("x.wav", text, gr.Request())[0] for text in texts]
    assert told == ["", "de", "zh", "en"] and said == ["Ja.", *(f"{text} Ja." for text in texts[1:])]


@pytest.mark.parametrize("heard", [(), ("[Music]",), ("(upbeat", "music)")])
def test_a_dictation_without_a_word_is_told_and_kept(heard: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = tuple(Word(each, 0.0, 0.5, 0.9) for each in heard)
    monkeypatch.setattr(HearingDesk, "hear", lambda *_: Heard(words, (), 1.0, "whisper-small"))
    with desk_at(tmp_path / "home") as desk, gr.Blocks():
        tab = speak.SpeakTab(desk, build_fields(desk, {}, False), JobTab(desk, KIND, False))
        script, recording, told = tab.dictate("x.wav", "It rained.", gr.Request(headers={}))
    assert script == recording == gr.skip() and "Nobody is heard speaking" in told


def test_what_a_voice_is_given_to_read_is_shown_before_it_speaks(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        put_phonon(desk.keeper.home, tmp_path)
        text = "[Anna] It cost $5.20 in 1999. [Ben] So it did."
        shown = speak_view.script_view(desk, text, "phonon-31m", OWNER, "en")["turns"]
        assert [turn["text"] for turn in shown] == ["It cost $5.20 in 1999.", "So it did."], "as it is written"
        assert [turn["said"] for turn in shown] == ["It cost five dollars and twenty cents in nineteen ninety nine.", ""]
        assert speak_view.script_view(desk, text, "starter-voice", OWNER, "en")["imitates"], "what it spoke itself can be brought back"
        assert not speak_view.script_view(desk, text, "starter-voice", NOBODY, "en")["imitates"], "a guest's recording would be refused"
        starter = speak_view.script_view(desk, text, "starter-voice", OWNER, "en")["turns"]
        assert "nineteen ninety nine" in starter[0]["text"] and not starter[0]["said"]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("“Come in,” said Anna. “Sit down,” Anna said.", "Anna seems to speak here"),
        ("“Come in,” said Anna. “No,” said Ben.", "Anna, Ben seem to speak here"),
    ],
)
def test_one_who_speaks_and_several_are_told_in_their_number(script: str, told: str) -> None:
    [note] = speak_view.named_view(script, (), VoiceLimits(), "en")
    assert note["text"].startswith(told)


@pytest.mark.parametrize(
    ("model", "cast"), [("phonon-31m", ""), ("starter-voice", ""), ("phonon-31m", '{"Anna": {"model": "starter-voice"}}')]
)
def test_a_setting_that_nobody_who_speaks_has_is_not_asked_for(model: str, cast: str, tmp_path: Path) -> None:
    """Its slider is hidden, wherever it stands."""
    with desk_at(tmp_path / "home") as desk, gr.Blocks():
        put_phonon(desk.keeper.home, tmp_path)
        tab = speak.SpeakTab(desk, fields := build_fields(desk, {}, False), JobTab(desk, KIND, False))
        values = {each: getattr(each, "value", None) for each in fields.asked}
        values |= {fields.script: "Hi.", fields.settings.model: model, fields.settings.by_hand: True, fields.voice.cast: cast}
        request = tab.request_from(values)
        had = speak_view.list_settings(desk, model, request.cast)
    assert {name for name in DIA.settings if getattr(request, name) is not None} == {*had}
    assert ({*had} == {*DIA.settings}) == ("starter-voice" in model + cast)
