"""What is heard for the page, in a real browser: a recording becomes a clip with its words, what is dictated comes into the script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, Playwright, expect, sync_playwright

from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.hearing.heard import Heard, Word
from app.engine.speech.sound import sound
from app.ui.state.hearing_desk import HearingDesk
from tests.support.both_servers import served
from tests.support.window import FLAGS, WAIT_MS, WHOLE_CHROMIUM, shut_out, unfold

pytestmark = pytest.mark.skipif(WHOLE_CHROMIUM is None, reason="no whole Chromium on this machine")
HEARD = Heard(
    tuple(Word(text, 1.0 + at, 1.4 + at, 0.9) for at, text in enumerate(("Good", "morning", "to", "all", "of", "you."))), (), 8.0, ""
)
"""An engine that is not there hears it."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with served(tmp_path_factory.mktemp("heard")) as (desk, address, _), sync_playwright() as playwright:
        desk.settings.put({"greeted": True})
        expect.set_options(timeout=WAIT_MS)
        yield from open_page(playwright, address)


def open_page(playwright: Playwright, address: str) -> Iterator[Page]:
    browser = playwright.chromium.launch(executable_path=WHOLE_CHROMIUM, args=FLAGS)
    page = browser.new_page(locale="en-US", viewport={"width": 390, "height": 844})
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    yield page
    browser.close()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    samples = np.random.default_rng(0).normal(0, 0.1, 8 * 16_000).astype(np.float32)
    samples[:15_000] = samples[-20_000:] = 0
    sound.write(tmp_path / "said.wav", samples, 16_000)
    return tmp_path / "said.wav"


@pytest.mark.slow
def test_what_is_dictated_comes_into_the_script(page: Page, recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HearingDesk, "hear", lambda self, sound, language: HEARD)
    script = page.locator("#speak-text textarea")
    script.fill("[S1] First of all.")
    unfold(page, "Dictate")
    page.locator("#speak-dictation .source-selection button").first.click()
    for said in (
        "[S1] First of all. Good morning to all of you.",
        "[S1] First of all. Good morning to all of you. Good morning to all of you.",
    ):
        page.locator("#speak-dictation input[type=file]").set_input_files(recording)
        expect(script).to_have_value(said)
        expect(page.locator("#speak-dictation input[type=file]")).to_be_attached()
    assert not shut_out(page)


def test_a_recording_becomes_a_clip_with_its_words(page: Page, recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: HearingDesk, sound: Path) -> Heard:
        raise Trouble(say_to_all("hearing.stopped", "Hearing was stopped before its end. Try again."))

    monkeypatch.setattr(HearingDesk, "hear", fail)
    unfold(page, "Create a voice")
    page.locator("#speak-clip input[type=file]").set_input_files(recording)
    expect(page.locator("#speak-clip .waveform-container, #speak-clip #waveform").first).to_be_visible()
    page.locator("#speak-listen-clip").click()
    expect(page.get_by_text("Hearing was stopped before its end.")).to_be_visible()
    monkeypatch.setattr(HearingDesk, "hear", lambda self, sound: replace(HEARD, seconds=8.0))
    page.locator("#speak-listen-clip").click()
    expect(page.locator("#speak-transcript textarea")).to_have_value("Good morning to all of you.")
    assert not shut_out(page)
