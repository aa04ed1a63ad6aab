"""The window for everybody: light and dark, English and Chinese, narrow, by keyboard alone, and what axe-core says of it."""

from __future__ import annotations

import psutil
import pytest
from playwright.sync_api import expect

from tests.window import Open, Visit, go, needs_chromium, shut_out

pytest_plugins = ["tests.window"]
pytestmark = needs_chromium

REST_S = 10
TABS = ("speak", "paint", "shelf", "models", "machine")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    filled = {"shelf": "#h-shelf .h-tools", "models": "#h-models .h-models li", "machine": "#h-plan table"}
    for tab in TABS:
        go(page, tab)
        page.wait_for_selector(filled.get(tab, f"#{tab}-go"))
        assert not shut_out(page)


def test_chinese_dark_and_narrow(visit: Visit) -> None:
    page = visit(locale="zh-CN", color_scheme="dark", viewport={"width": 390, "height": 800})
    expect(page.locator('button[role="tab"]').first).to_have_text("朗读")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    assert page.evaluate("document.body.classList.contains('dark')")
    for tab in TABS:
        go(page, tab)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390, tab


def test_the_language_switch_overrides_the_browser(visit: Visit) -> None:
    page = visit(locale="en-GB")
    page.click('[data-h-act="language"]')
    expect(page.locator('button[role="tab"]').first).to_have_text("朗读")


def test_everything_by_keyboard(visit: Visit) -> None:
    page = visit()
    reached: set[str] = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.closest('[id]')?.id + ' ' + (document.activeElement.dataset.tabId ?? document.activeElement.dataset.hAct ?? '')"
            )
        )
    text = " ".join(reached)
    for wanted in ("speak-text", "speak-go", "speak-voice", "light", "language"):
        assert wanted in text, f"{wanted} cannot be reached by Tab: {sorted(reached)}"
    for hidden in ("speak-again", "speak-from", "speak-restore", "speak-voices"):
        assert hidden not in text, f"{hidden} is for the scripts, and can be reached by Tab"
    go(page, "machine")
    page.locator("#machine-chunk input[type=range]").focus()
    for key, size in (("ArrowRight", "64"), ("Home", "")):
        page.keyboard.press(key)
        expect(page.locator("#machine-exact").locator("input, textarea")).to_have_value(size)
    expect(page.locator("button#speak-stop")).to_be_disabled()  # There is nothing to stop.


def test_a_line_that_is_said_twice_goes_with_its_script(visit: Visit) -> None:
    page = visit()
    lines = page.locator("#h-script .h-turns li")
    for script, count in (("[S1] It is warm. [S2] It is warm. [S1] It is warm.", 3), ("[S1] You know.", 1)):
        page.fill("#speak-text textarea", script)
        expect(lines).to_have_count(count)


def test_a_page_that_is_open_costs_next_to_nothing(visit: Visit, opened: Open) -> None:
    """The server's part of the strip: under 1 % of a core while nothing runs."""
    page = visit()
    page.wait_for_function("!Hearth.busy")
    server = psutil.Process(opened.process.pid)

    def worked_s() -> float:
        times = server.cpu_times()
        return times.user + times.system

    spent_s: list[float] = []
    while not spent_s or (spent_s[-1] >= 0.01 * REST_S and len(spent_s) < 4):  # what ran before may still be tidied up
        before_s = worked_s()
        page.wait_for_timeout(REST_S * 1000)
        spent_s.append(worked_s() - before_s)
    assert spent_s[-1] < 0.01 * REST_S, spent_s
