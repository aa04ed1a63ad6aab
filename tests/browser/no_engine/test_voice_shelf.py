"""The shelf of voices on the page: opened, heard, described, removed and brought back, by mouse and for a screen reader."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from app.engine.models.voice_limits import DIA
from app.engine.speech.text import voices
from app.ui.state.desk import Desk
from tests.support.waiting import until
from tests.support.window import needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
FIRST = voices.list_ready_voices()[0]


def test_a_kept_voice_is_heard_described_removed_and_brought_back(page: Page, opened: tuple[Desk, str]) -> None:
    home = opened[0].keeper.home
    voices.keep_voice(home, "Old Tom", Path(FIRST.prompt.path), FIRST.prompt.transcript, DIA)
    page.locator("#h-voices summary").click()
    row = page.locator(".h-shelf-voices li").first
    expect(row).to_contain_text("Old Tom")
    expect(row.locator(".h-soft").first).to_contain_text("calm")
    with page.expect_response(lambda answer: "hearth/voice?name=Old" in answer.url) as heard:
        row.get_by_role("button", name="Hear Old Tom").click()
    assert heard.value.status in (200, 206)
    row.get_by_role("button", name="Describe: Old Tom").click()
    row.get_by_role("textbox", name="What Old Tom is like").fill("an old sailor")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("an old sailor")
    assert not shut_out(page)
    row.get_by_role("button", name="Remove: Old Tom").click()
    expect(page.locator(".h-voices-said")).to_contain_text("Old Tom was removed.")
    assert not voices.list_voices(home)
    page.locator(".h-voices-said").get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("an old sailor")
    until(lambda: [each.name for each in voices.list_voices(home)] == ["Old Tom"])
    page.locator('#h-voices input[type="file"]').set_input_files({"name": "odd.wav", "mimeType": "audio/wav", "buffer": b"RIFFodd"})
    expect(page.locator(".h-voices-said")).to_contain_text("odd.wav is no voice that Hearth exported")
    voices.forget_voice(home, voices.list_voices(home)[0])
