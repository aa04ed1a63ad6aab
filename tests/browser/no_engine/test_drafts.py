"""What was typed and not sent: each window keeps its own."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from app.ui.state.desk import Desk
from tests.support.waiting import until
from tests.support.window import WAIT_MS, go, needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def test_two_windows_keep_their_own_drafts(browser: Browser, opened: tuple[Desk, str]) -> None:
    """A reload brought what the other window had typed last, and what stood here was gone."""
    desk, address = opened
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800})

    def open_window() -> Page:
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(address)
        go(page, "paint")
        return page

    pages = [open_window(), open_window()]
    for name, page in zip(("one", "two"), pages, strict=True):
        page.fill("#paint-prompt textarea", f"a boat of window {name}")
        wanted = f"a boat of window {name}"
        until(
            lambda page=page, wanted=wanted: (
                page.wait_for_timeout(20) is None and desk.settings.get("drafts", {}).get("paint-prompt") == wanted
            )
        )
    for page in pages:
        page.reload()
        page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    for name, page in zip(("one", "two"), pages, strict=True):
        expect(page.locator("#paint-prompt textarea")).to_have_value(f"a boat of window {name}")
    expect(open_window().locator("#paint-prompt textarea")).to_have_value("a boat of window two")  # a new one: what was typed last
    context.close()
