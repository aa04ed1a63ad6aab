"""The shelf of voices on the page: opened, heard, described, removed and brought back, by mouse and for a screen reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.engine.jobs.creation import RunSummary
from app.engine.jobs.request import SpeechRequest
from app.engine.models.voice_limits import DIA
from app.engine.speech.sound import sound
from app.engine.speech.text import voices
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs.voice_shelf import AUDITION
from tests.support.waiting import until
from tests.support.window import needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
FIRST = voices.list_ready_voices()[0]


@pytest.mark.slow
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


def test_a_new_voice_of_a_seed_is_heard_and_kept(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    keeper = opened[0].keeper
    job = keeper.journal.queue(SpeechRequest(AUDITION, "dia-1.6b", seed=5), opened[0].machine.read_choice(OWNER), OWNER.name)
    keeper.journal.end(job.id, "finished")
    sound.write(tmp_path / "new.wav", *sound.read(Path(FIRST.prompt.path)))
    keeper.shelf.keep(job, [tmp_path / "new.wav"], RunSummary("dia-1.6b", seconds=5.0, whole=True))
    page.locator("#h-voices summary").click()
    row = page.locator(".h-auditions li")
    expect(row).to_contain_text("Neither low nor high")
    name = row.locator("b").inner_text()
    with page.expect_response(lambda answer: "hearth/creation/" in answer.url) as heard:
        row.get_by_role("button", name=f"Hear {name}").click()
    assert heard.value.status in (200, 206)
    row.get_by_role("button", name=f"Keep: {name}").click()
    expect(page.locator(".h-voices-said")).to_contain_text(f"{name} is among your voices now.")
    expect(row).to_have_count(0)
    expect(page.locator(".h-shelf-voices li").first).to_contain_text(name)
    assert not shut_out(page)
    (kept,) = voices.list_voices(keeper.home)
    voices.forget_voice(keeper.home, kept)
