"""Read along in a real browser, without an engine: what sounds is marked, a sentence chosen by click or key sounds from there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from app.engine.speech.sound import sound
from tests.browser.no_engine.test_after_trouble import part, show, speech
from tests.support.window import go, needs_chromium, open_page, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

END = {"kind": "finished", "elapsed_s": 2.0}
LOOK = os.environ.get("HEARTH_LOOK")
"""Pictures of the page are saved into this folder."""
TEXTS = [f"No. {place} of them looked at the sea for a long time." for place in range(60)]


@pytest.fixture(scope="module", params=[("light", "en-US", 1280), pytest.param(("dark", "zh-CN", 390), marks=pytest.mark.slow)])
def page(request: pytest.FixtureRequest, browser: Browser, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    scheme, locale, width = request.param
    samples = np.random.default_rng(0).normal(0, 0.01, 60 * 16_000).astype(np.float32)
    file = tmp_path_factory.mktemp("along") / "said.wav"
    sound.write(file, samples, 16_000)
    with open_page(browser, address, locale=locale, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        page.route("**/hearth/creation/7", lambda route: send(route, file.read_bytes()))
        yield page


def send(route: Route, data: bytes) -> None:
    """Answer as a server from which a browser can fetch any stretch: nothing else can be sought in."""
    begin = int(route.request.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
    headers = {"accept-ranges": "bytes", "content-range": f"bytes {begin}-{len(data) - 1}/{len(data)}"}
    route.fulfill(status=206, body=data[begin:], headers=headers, content_type="audio/wav")


def place(words: bool) -> list[dict[str, Any]]:
    """Return a sentence a second, their words too if asked for."""
    return [
        {
            "begin": float(at),
            "end": at + 0.9,
            "text": text,
            "words": [[word, at + number * 0.09, at + number * 0.09 + 0.08] for number, word in enumerate(text.split())] if words else [],
        }
        for at, text in enumerate(TEXTS)
    ]


def result(words: bool) -> dict[str, Any]:
    made = {"url": "hearth/creation/7", "peaks": [], "name": "said.wav", "id": 7, "seconds": 60.0, "subtitles": True, "words": words}
    return speech([part(0, "done") | {"whole": True, "doubt": "", "marks": None}], END, said=[], results=[made], listening={})


SLOWLY = "(() => { const sound = document.querySelector('#h-sound audio'); sound.defaultPlaybackRate = sound.playbackRate = 0.0625; })()"
"""A sentence of a second sounds for sixteen, so that each mark can be seen."""


def test_what_sounds_is_marked_and_a_sentence_sounds_when_chosen(page: Page) -> None:
    known, asked = [False], list[str]()
    page.route("**/hearth/along/7", lambda route: route.fulfill(json={"sentences": place(known[0])}))
    page.route("**/hearth/listen/*", lambda route: (asked.append(route.request.url.rpartition("/")[2]), route.fulfill(json={})))
    go(page, "speak")
    show(page, speech=result(False), charts=[])
    along, formats = page.locator("#h-sound .h-along"), page.locator("#h-sound .h-format option")
    along.locator("summary").click()
    sentences, marked = along.get_by_role("button"), along.locator("[aria-current]")
    expect(sentences).to_have_count(len(TEXTS))
    expect(marked).to_have_count(0)
    before = formats.count()
    page.evaluate(SLOWLY)
    sentences.nth(4).click()
    expect(marked).to_have_text(TEXTS[4])
    assert page.evaluate("!document.querySelector('#h-sound audio').paused")
    page.evaluate("document.querySelector('#h-sound audio').currentTime = 4.99")
    expect(sentences.nth(5)).to_have_attribute("aria-current", "true")
    page.evaluate("document.querySelector('#h-sound audio').pause()")
    page.keyboard.press("Tab")
    sentences.nth(5).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "End", "Home", "ArrowRight"):
        page.keyboard.press(key)
    expect(sentences.nth(1)).to_be_focused()
    assert along.locator("[tabindex='0']").count() == 1, "one stop for the Tab key"
    page.keyboard.press("Enter")
    expect(marked).to_have_text(TEXTS[1])
    page.evaluate("document.querySelector('#h-sound audio').pause()")
    words = page.locator("#h-parts .h-listen button").filter(has_text="each word" if page.viewport_size["width"] > 400 else "\u8bcd")  # type: ignore[index]
    words.click()
    known[0] = True
    show(page, speech=result(True), charts=[])
    expect(formats).to_have_count(before + 2)
    expect(words).to_have_count(0)
    page.evaluate("document.querySelector('#h-sound audio').currentTime = 1.3")
    expect(along.locator(".h-now")).to_have_text(TEXTS[1].split()[3])
    expect(along.locator(".h-now")).to_have_count(1)
    assert sentences.nth(1).inner_text() == TEXTS[1]
    if LOOK:
        page.screenshot(path=f"{LOOK}/along-{page.viewport_size['width']}.png")  # type: ignore[index]
    page.evaluate("document.querySelector('#h-sound audio').currentTime = 50.2")
    expect(marked).to_have_text(TEXTS[50])
    expect(sentences.nth(50)).to_be_in_viewport()
    assert asked == ["words"] and not shut_out(page)
    found = Axe().run(page, context="#h-sound").response["violations"]
    assert not [each["id"] for each in found], found
