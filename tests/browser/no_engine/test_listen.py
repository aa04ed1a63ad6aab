"""Listening back in a real browser, without an engine: what is offered, what is marked, and from place to place by keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.no_engine.test_after_trouble import part, show, speech
from tests.support.window import go, needs_chromium, open_page, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

END = {"kind": "finished", "elapsed_s": 2.0}
LOOK = os.environ.get("HEARTH_LOOK")
"""Pictures of the page are saved into this folder."""


@pytest.fixture(scope="module", params=[("light", "en-US", 1280), pytest.param(("dark", "zh-CN", 390), marks=pytest.mark.slow)])
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    scheme, locale, width = request.param
    with open_page(browser, address, locale=locale, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        yield page


def spoken(*marks: list[str] | None, state: str = "", share: float = 0.0, trouble: str = "") -> dict[str, Any]:
    """Return a script of parts with these marks; None: not heard yet."""
    rows = [
        part(place, "done")
        | {"marks": None if each is None else [{"place": at, "text": text} for at, text in enumerate(each)], "whole": True, "doubt": ""}
        for place, each in enumerate(marks)
    ]
    return speech(rows, END, said=[], listening={"state": state, "share": share, "trouble": trouble})


def test_marks_and_the_way_from_one_to_the_next(page: Page) -> None:
    asked: list[str] = []
    page.route("**/hearth/listen/*", lambda route: (asked.append(route.request.url.rpartition("/")[2]), route.fulfill(json={})))
    go(page, "speak")
    buttons, told = page.locator("#h-parts .h-listen button"), page.locator("#h-parts .h-listen [role=status]")
    show(page, speech=spoken(None, None, None, None), charts=[])
    expect(buttons).to_have_count(1)
    buttons.first.click()
    show(page, speech=spoken([], None, None, None, state="hearing", share=0.25), charts=[])
    expect(told).to_contain_text("25 %")
    buttons.first.click()
    show(page, speech=spoken([], ["Not heard: the sea"], [], ["Heard twice: her", "Not heard: five"]), charts=[])
    expect(buttons).to_have_count(2)
    expect(told).to_contain_text("2")
    rows = page.locator("#h-parts .h-part")
    expect(rows.nth(1).locator(".h-marks li")).to_have_text("⚠ Not heard: the sea")
    expect(rows.nth(0).locator(".h-number")).to_have_class("h-badge h-number right")
    expect(rows.nth(3).locator(".h-number")).to_have_class("h-badge h-number careful")
    buttons.first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.h-part').spoken.index") == 1
    if LOOK:
        page.screenshot(path=f"{LOOK}/listen-{page.viewport_size['width']}.png")  # type: ignore[index]
    buttons.nth(1).click()
    failed = spoken([], ["Not heard: the sea"], [], ["Not heard: five"], trouble="The voice is gone. Download it again.")
    show(page, speech=failed, charts=[])
    expect(told).to_have_text("The voice is gone. Download it again.")
    expect(buttons).to_have_count(2)
    show(page, speech=spoken([], [], [], []), charts=[])
    expect(page.locator("#h-parts .h-marks li")).to_have_count(0)
    expect(buttons).to_have_count(0)
    expect(told).not_to_be_empty()
    assert asked == ["listen", "stop", "mend"]
    assert not shut_out(page)
    found = Axe().run(page, context="#h-parts").response["violations"]
    assert not [each["id"] for each in found], found


def test_without_a_recogniser_the_page_says_so_and_offers_one(page: Page) -> None:
    page.unroute("**/hearth/listen/*")
    page.route(
        "**/hearth/listen/*", lambda route: route.fulfill(json={"trouble": "Hearth needs a recogniser.", "cure": "get:whisper-base-en"})
    )
    go(page, "speak")
    show(page, speech=spoken(None, None), charts=[])
    with page.expect_request("**/hearth/offer?model=whisper-base-en"):
        page.locator("#h-parts .h-listen button").click()
    expect(page.locator("#h-parts .h-listen [role=status]")).to_have_text("Hearth needs a recogniser.")
    page.keyboard.press("Escape")


def test_a_guest_is_offered_nothing(page: Page) -> None:
    go(page, "speak")
    show(page, speech=spoken(None, None), charts=None)
    expect(page.locator("#h-parts .h-part")).to_have_count(2)
    expect(page.locator("#h-parts .h-listen")).to_be_hidden()
