"""Hearth on a phone: what its home screen is told, and results sent on by its own sheet, which stands in for here."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from app.engine.jobs.shelf import Search
from app.ui.state.desk import Desk
from tests.browser.no_engine.test_play_all import SPEECH, SPOKEN
from tests.support.window import go, needs_chromium, open_page, shut_out, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

SHEET = """
navigator.canShare = () => true;
navigator.share = async ({ files: [file] }) => {
  if (window.late) throw new DOMException("", "NotAllowedError");
  window.sent = [file.name, file.type, file.size > 0];
};
"""


@pytest.fixture
def phone(browser: Browser, address: str) -> Iterator[Page]:
    with open_page(browser, address, locale="en-US", viewport={"width": 390, "height": 844}, reduced_motion="reduce") as page:
        page.add_init_script(SHEET)
        page.reload()
        page.wait_for_selector("#h-strip .h-doing:not(:empty)")
        yield page


def test_results_are_sent_on_by_the_phones_own_sheet(phone: Page) -> None:
    go(phone, "shelf")
    card = phone.locator(".h-creation").first
    send = card.get_by_role("button", name="Send…")
    phone.evaluate("window.late = true")
    send.click()
    ready = card.get_by_role("button", name="Ready: send it now")
    expect(ready).to_be_enabled()
    phone.evaluate("window.late = false")
    ready.click()
    phone.wait_for_function("window.sent")
    name, kind, whole = phone.evaluate("window.sent")
    assert {".png": "image/png", ".wav": "audio/wav"}[name[-4:]] == kind and whole
    expect(send).to_be_enabled()
    assert not shut_out(phone)


def test_a_page_without_encryption_takes_what_the_phones_recorder_makes(phone: Page, opened: tuple[Desk, str]) -> None:
    """It has no microphone there, and said to choose a file where none could be chosen."""
    phone.add_init_script("Object.defineProperty(navigator, 'mediaDevices', { value: undefined })")
    phone.reload()
    phone.wait_for_selector("#h-strip .h-doing:not(:empty)")
    unfold(phone, "Create a voice")
    clip = phone.locator("#speak-clip")
    clip.locator(".source-selection button").last.click()
    expect(clip.get_by_role("alert")).to_contain_text("Browsers give no microphone to a page without encryption")
    with phone.expect_file_chooser() as chosen:
        clip.get_by_role("button", name="Record or choose a file").click()
    assert chosen.value.element.get_attribute("capture") is not None and chosen.value.element.get_attribute("accept") == "audio/*"
    made = next(each.path for each in opened[0].keeper.shelf.find(Search()) if each.path.suffix == ".wav")
    chosen.value.set_files(made)
    expect(clip.locator(".waveform-container, #waveform").first).to_be_visible()
    expect(clip.get_by_role("alert")).to_have_count(0)
    assert not shut_out(phone)


@pytest.mark.slow
def test_what_is_made_comes_into_view_and_stays_there(phone: Page) -> None:
    """The voices of a cast came above it after the page had been scrolled, and a guest saw nothing of what was spoken."""
    phone.evaluate(SPOKEN, None)
    phone.fill("#speak-text textarea", "[S1] Hello.")
    phone.locator("#speak-go").click()
    more = {"share": 0.5, "pace": 1.0, "said": [], "end": None, "doing": "", "place": 0, "results": []}
    parts = [{"index": 0, "text": "[S1] Hello.", "state": "now", "seconds": 0.5}]
    phone.evaluate(SPOKEN, {"job": "first", "parts": parts, **more})
    made = phone.locator("#h-parts")
    expect(made).to_be_in_viewport()
    expect(made).to_contain_text("Hello.")
    phone.evaluate("document.querySelector('#h-parts').before(Object.assign(document.createElement('div'), { style: 'height: 900px' }))")
    expect(made).to_be_in_viewport()


CUT = """(picks) => picks.filter((pick) => {
  const room = document.createElement("canvas").getContext("2d"), { fontSize, fontFamily, paddingLeft, paddingRight } = getComputedStyle(pick);
  room.font = `${fontSize} ${fontFamily}`;
  const arrow = parseFloat(fontSize);
  return room.measureText(pick.selectedOptions[0].text).width > pick.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - arrow;
}).map((pick) => pick.selectedOptions[0].text)"""
"""Of lists, those whose choice does not fit."""


def test_what_was_spoken_can_be_read_beside_the_longest_buttons(browser: Browser, address: str) -> None:
    """In German a letter's room was left beside them, and the volume of a voice was cut."""
    with open_page(browser, address, locale="de-DE", viewport={"width": 390, "height": 844}, reduced_motion="reduce") as page:
        page.fill("#speak-text textarea", "[S1] Good morning. [S2] Hello there.")
        part = {
            "index": 0,
            "text": "[S1] Good morning, and welcome.",
            "state": "done",
            "url": "",
            "pace": 1.0,
            "peaks": [1, 2],
            "seconds": 2.5,
        }
        page.evaluate(SPOKEN, {**SPEECH, "job": "spoken", "parts": [part], "end": {"kind": "finished", "elapsed_s": 2.0}})
        row = page.locator("#h-parts .h-part")
        expect(row.get_by_role("button", name="Noch einmal")).to_be_visible()
        assert row.locator(".h-sounding").evaluate("(words) => words.offsetWidth") > 200
        expect(page.locator("#h-cast select").locator("visible=true")).to_have_count(6)
        assert page.locator("#h-cast select").evaluate_all(CUT) == []
        assert not shut_out(page)


@pytest.mark.slow
def test_the_menu_of_a_creation_opens_within_the_screen(phone: Page) -> None:
    go(phone, "shelf")
    cards = phone.locator(".h-creation")
    expect(cards).to_have_count(2)
    for card in cards.all():
        card.locator(".h-menu > summary").click()
        menu = card.locator(".h-menu > div").bounding_box()
        assert menu is not None and menu["x"] >= 0 and menu["x"] + menu["width"] <= 390
        phone.keyboard.press("Escape")  # it lies over the next creation


@pytest.mark.slow
def test_the_page_says_what_a_home_screen_shows(phone: Page, address: str) -> None:
    first = phone.locator("link[rel=manifest]").first
    assert first.get_attribute("href") == "hearth/manifest", "the browser takes the first"
    with urllib.request.urlopen(f"{address.rstrip('/')}/hearth/manifest") as answer:
        assert answer.headers["Content-Type"].startswith("application/manifest+json")
        about = json.load(answer)
    assert (about["display"], about["name"]) == ("standalone", "Hearth")
    for icon in about["icons"]:
        with urllib.request.urlopen(f"{address.rstrip('/')}/hearth/{icon['src']}") as answer:
            assert answer.headers["Content-Type"] == "image/png"
