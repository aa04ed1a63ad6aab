"""Pause in a real browser: by keyboard, said in a banner, taken back; and the rules for when jobs run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from app.ui.state.desk import Desk
from tests.browser.no_engine.test_small_things import ALTERED
from tests.support.window import go, needs_chromium, shut_out, until_seen

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


@pytest.mark.slow
def test_a_pause_is_told_and_ended_where_the_banner_says_something_else(page: Page, opened: tuple[Desk, str]) -> None:
    chip, dialog, banner = page.locator("#h-strip .h-pause"), page.locator("dialog.h-pausing"), page.locator("#h-interrupted")
    opened[0].pausing.hold()
    expect(banner).to_contain_text("Paused: the card and its memory are free.")
    expect(chip).to_be_hidden()
    page.evaluate(ALTERED, {"interrupted": {"jobs": ["1"], "text": "This job was interrupted: One.", "kept": False}})
    expect(banner).to_contain_text("This job was interrupted")
    expect(chip).to_have_text("Paused")
    chip.click()
    expect(dialog.get_by_role("button", name="Pause now")).to_have_count(0)
    dialog.get_by_role("button", name="Resume now").click()
    expect(dialog).to_have_count(0)
    assert opened[0].keeper.state.paused is None
    page.evaluate("window.fetch = window.asked")


@pytest.mark.slow
def test_the_question_of_the_battery_goes_before_what_can_wait(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pausing, banner = opened[0].pausing, page.locator("#h-interrupted")
    page.evaluate(
        ALTERED,
        {"notices": [{"id": "1", "text": "The settings were damaged."}], "interrupted": {"jobs": ["1"], "text": "One.", "kept": False}},
    )
    expect(banner).to_contain_text("The settings were damaged.")
    monkeypatch.setattr(pausing, "battery", lambda: True)
    monkeypatch.setattr("app.ui.state.pausing.LOOK_S", 0)
    monkeypatch.setattr(opened[0].keeper.journal, "has_live", lambda: True)
    pausing.look()
    expect(banner).to_contain_text("This computer runs on its battery.")
    assert not shut_out(page)
    banner.get_by_role("button", name="Continue").click()
    expect(banner).to_contain_text("The settings were damaged.")
    pausing.answer_battery(wait=True)
    page.locator("#h-strip .h-pause").click()
    page.locator("dialog.h-pausing").get_by_role("checkbox", name="Wait while this computer runs on its battery").uncheck()
    until_seen(page, lambda: not pausing.rules["plugged"])
    page.keyboard.press("Escape")
    pausing.go_on()
    page.evaluate("window.fetch = window.asked")
