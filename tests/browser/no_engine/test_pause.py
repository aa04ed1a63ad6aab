"""Pause in a real browser: by keyboard, said in a banner, taken back; and the rules for when jobs run."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from app.ui.state.desk import Desk
from tests.support.window import go, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def test_a_pause_is_made_by_keyboard_said_and_taken_back(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    go(page, "speak")
    chip, banner, dialog = page.locator("#h-strip .h-pause"), page.locator("#h-interrupted.h-paused"), page.locator("dialog.h-pausing")
    expect(chip).to_be_hidden()
    desk.pausing.plan("hours", "00:00", "00:00")
    expect(chip).to_be_visible()
    chip.focus()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Pause now")).to_be_focused()
    expect(dialog.get_by_role("radio", name="Only between")).to_be_checked()
    assert not shut_out(page)
    page.set_viewport_size({"width": 390, "height": 844})
    wide, wanted = (
        dialog.get_by_label(name).evaluate("each => each.offsetWidth") for name in ("Time at which jobs go on", "Jobs may begin at")
    )
    assert wide == wanted, "a phone cut the time that one chooses"
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(banner).to_contain_text("Paused: the card and its memory are free.")
    expect(page.locator("#h-strip .h-doing")).to_have_text("paused")
    assert not shut_out(page)
    banner.get_by_role("button", name=re.compile("^When jobs run")).click()
    dialog.get_by_role("radio", name="At any time").check()
    page.wait_for_function("Hearth.live.state.pause.when === 'any'")
    assert desk.pausing.rules["hours"] is None
    dialog.get_by_label("Time at which jobs go on").fill("")
    dialog.get_by_role("button", name="Pause until").click()
    expect(dialog.get_by_role("alert")).to_be_hidden()
    page.keyboard.press("Escape")
    banner.get_by_role("button", name="Resume now").click()
    expect(banner).to_have_count(0)
    assert desk.keeper.state.paused is None
