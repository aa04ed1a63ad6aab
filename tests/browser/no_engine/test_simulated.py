"""A simulated machine in the window: whose memory stands in the strip, under the picture, in the plan and in the charts is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import Browser, expect

from app.compat.machine.meter import Reading
from app.compat.machine.pretended import machine
from app.ui.state.desk import Desk
from tests.support.window import WAIT_MS, go, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.slow, needs_chromium]

CARD = machine("gtx-1060")
GIB = 2**30


@pytest.mark.parametrize(
    ("language", "here", "there"),
    [
        ("en-US", "of this computer", f"That is the memory of the simulated {CARD.name}."),
        ("zh-CN", "\u8fd9\u53f0\u7535\u8111", f"\u8fd9\u662f\u6a21\u62df\u7684 {CARD.name} \u7684\u5185\u5b58"),
    ],
)
def test_memory_says_whose_it_is(language: str, here: str, there: str, browser: Browser, opened: tuple[Desk, str]) -> None:
    desk, address = opened
    reading = Reading(process_bytes=GIB, highest_bytes=2 * GIB, limit_bytes=9 * GIB, system_bytes=16 * GIB)
    context = browser.new_context(locale=language, viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    for simulated in (True, False):
        desk.keeper.status.set(hardware=CARD if simulated else replace(CARD, pretended=""), ready=True, reading=reading)
        page.goto(address)
        page.wait_for_selector("#h-strip .h-doing:not(:empty)")
        for tab, place in (("speak", "#h-strip .h-memory-text"), ("paint", "#h-tuning .h-figures")):
            go(page, tab)
            told = page.locator(place)
            expect(told).to_contain_text("16 GB")
            (expect(told).to_contain_text if simulated else expect(told).not_to_contain_text)(here)
        strip = page.locator("#h-strip").bounding_box()
        for part in page.locator("#h-strip > span:not(.h-heard)").locator("visible=true").all():
            box = part.bounding_box()
            assert strip and box and box["x"] + box["width"] <= strip["x"] + strip["width"] + 1, "nothing is cut off"
        forecast = page.locator("#paint-forecast, .h-check").locator("visible=true").first
        expect(forecast).to_contain_text("GB")
        (expect(forecast).to_contain_text if simulated else expect(forecast).not_to_contain_text)(there)
        go(page, "machine")
        expect(page.locator("#h-plan .h-pretended")).to_have_count(int(simulated))
        expect(page.locator("#h-curve .h-pretended")).to_have_count(int(simulated))
        if simulated:
            expect(page.locator("#h-plan .h-pretended")).to_contain_text(CARD.name)
            expect(page.locator("#h-curve .h-pretended")).to_contain_text(CARD.name)
        assert not shut_out(page)
    context.close()
