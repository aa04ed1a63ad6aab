"""A file that is sent from the page: what is seen meanwhile is Hearth's, and a refused one is told once, beside the button."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Browser, Page, Route, expect

from app.ui.state.desk import Desk
from tests.support.window import go, needs_chromium, open_page, pass_looks, shut_out, unfold, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

CLIP = "#speak-clip input[type=file]"
SEEN = """() => {
  window.seen = [];
  new MutationObserver(() => requestAnimationFrame(() => {
    for (const note of document.querySelectorAll(".toast-body")) if (note.offsetParent || note.getClientRects().length) seen.push(note.innerText);
  })).observe(document.body, { childList: true, subtree: true });
}"""
"""`window.seen` gets every note of Gradio's that was drawn."""


@pytest.fixture(scope="module")
def page(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    with open_page(browser, opened[1], locale="zh-CN", viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as page:
        go(page, "speak")
        unfold(page, "\u7528\u5f55\u97f3\u521b\u5efa\u58f0\u97f3")
        page.wait_for_selector(CLIP, state="attached")
        page.evaluate(SEEN)
        yield page


def clip() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(16_000, np.float32), 16_000, format="WAV")
    return file.getvalue()


@pytest.mark.slow
def test_a_refused_file_is_told_once_and_nothing_stays(page: Page) -> None:
    page.locator(CLIP).set_input_files({"name": "kept.wav", "mimeType": "audio/wav", "buffer": b"no sound at all" * 50})
    chip = page.locator(".h-force").locator("visible=true").locator("li.wrong")
    expect(chip).to_contain_text("kept.wav \u5df2\u635f\u574f")
    pass_looks(page)
    assert page.evaluate("window.seen") == [], "Gradio says it once more, over the switches"
    expect(page.locator(".toast-body")).to_have_count(0)
    expect(page.locator(".uploading")).to_have_count(0)
    assert not shut_out(page)


@pytest.mark.slow
def test_other_notes_of_gradios_are_in_hearths_look_and_cover_no_button(page: Page) -> None:
    """Of a fault without words Hearth has nothing to tell."""
    page.route("**/gradio_api/upload?*", lambda route: route.fulfill(status=500, body=""))
    page.locator(CLIP).set_input_files({"name": "again.wav", "mimeType": "audio/wav", "buffer": clip()})
    note = page.locator(".toast-body").first
    expect(note).to_be_visible()
    page.unroute("**/gradio_api/upload?*")
    expect(note.locator(".toast-title-row > span")).to_be_hidden()
    box = note.bounding_box()
    assert box and box["y"] > 450
    for each in page.locator(".h-switches button, #h-rooms button[role=tab], #speak-go, #speak-stop").locator("visible=true").all():
        other = each.bounding_box()
        assert other
        apart = other["x"] + other["width"] <= box["x"] or box["x"] + box["width"] <= other["x"]
        assert apart or other["y"] + other["height"] <= box["y"] or box["y"] + box["height"] <= other["y"]
    expect(note).to_have_count(0)  # by itself


@pytest.mark.slow
def test_while_a_file_is_sent_the_page_says_so_in_its_language(page: Page) -> None:
    held: list[Route] = []
    page.route("**/gradio_api/upload?*", lambda route: held.append(route))
    page.locator(CLIP).set_input_files({"name": "kept.wav", "mimeType": "audio/wav", "buffer": clip()})
    until_seen(page, lambda: bool(held))
    sending = page.locator("#speak-clip .uploading")
    expect(sending).to_be_visible()
    assert (
        page.evaluate("getComputedStyle(document.querySelector('#speak-clip .uploading'), '::after').content")
        == '"\u6b63\u5728\u4e0a\u4f20\u2026\u2026"'
    )
    assert sending.evaluate("(each) => getComputedStyle(each).fontSize") == "0px", "Gradio's own words are in English"
    held[0].continue_()
    page.unroute("**/gradio_api/upload?*")
    expect(page.locator(".uploading")).to_have_count(0)
