"""Speak as it is filled when its page is opened."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from app.ui.tabs import speak
from tests.support.guests import desk_at


def test_a_page_is_filled_with_what_was_saved_and_voices_that_are_gone_make_way(tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        desk.settings.put({"speak": {"voice": "Gone", "format": "flac", "model": "starter-voice"}})
        with gr.Blocks():
            refresh = speak.build(desk)
        filled = refresh.fill()
    updates = [each for each in filled if isinstance(each, dict)]
    assert {each["value"] for each in updates} == {"", "starter-voice"} and "flac" in filled
