"""The first visit of an empty home: the greeting comes at once and moves nothing, the forecast by itself; in a real browser, without an engine."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Route, expect

from app.compat.machine.hardware import Hardware
from app.engine.speech.sound import sound
from app.ui.state.desk import Desk
from tests.browser.no_engine.test_play_all import SPOKEN
from tests.support.waiting import until
from tests.support.window import WAIT_MS, go, needs_chromium, open_page, pass_looks, shut_out, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

MOST_SHIFT = 0.05
WATCH = """
window.shifts = [];
new PerformanceObserver((seen) => {
  const names = ({ sources }) => sources.map(({ node }) => node?.id || node?.className);
  for (const shift of seen.getEntries()) if (!shift.hadRecentInput) window.shifts.push([shift.value, ...names(shift)]);
}).observe({ type: "layout-shift", buffered: true });
window.said = new Set();
const look = () => {
  for (const loader of document.querySelectorAll(".loading")) if (loader.checkVisibility({ visibilityProperty: true })) window.said.add(loader.textContent);
  requestAnimationFrame(look);
};
look();
"""

FRAMED = """() => {
  const greeting = document.querySelector("#h-greeting");
  return Boolean(greeting?.checkVisibility({ visibilityProperty: true })) && parseFloat(getComputedStyle(greeting, "::before").height) > 300;
}"""


@pytest.fixture(scope="module")
def opened(opened: tuple[Desk, str]) -> tuple[Desk, str]:
    opened[0].settings.put({"greeted": False})
    return opened


@pytest.mark.slow
@pytest.mark.parametrize(("width", "locale"), [(1280, "en-US"), (390, "zh-CN")])
def test_the_greeting_comes_without_a_jump(browser: Browser, opened: tuple[Desk, str], width: int, locale: str) -> None:
    """As after a real start: the engine says only later what machine this is."""
    desk, address = opened
    desk.keeper.status.set(hardware=None)
    context = browser.new_context(locale=locale, viewport={"width": width, "height": 800})
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.add_init_script(WATCH)
    page.goto(address)
    greeting = page.locator("#h-greeting")
    expect(greeting.get_by_role("button")).to_have_count(6)
    expect(greeting.locator(".h-badge")).to_have_text(["...", "...", "..."])
    expect(page.locator("#speak-go")).to_be_visible()
    desk.keeper.status.set(hardware=Hardware(kind="cpu", name="light"))
    expect(greeting.locator(".h-fit").first).not_to_be_empty()
    assert not [each for each in greeting.locator("p").all_inner_texts() if re.search(r"\d [^\W\d_]", each)], (
        "a number may stand in another line than its unit"
    )
    pass_looks(page)
    shifts = page.evaluate("shifts")
    assert sum(shift for shift, *_ in shifts) <= MOST_SHIFT, shifts
    assert page.evaluate("[...said]") == [], "Gradio's own loader was seen"
    assert not shut_out(page)
    context.close()


def test_a_frame_stands_where_the_greeting_will_come(browser: Browser, opened: tuple[Desk, str]) -> None:
    """Between the head and the greeting's answer the page was blank."""
    opened[0].settings.put({"greeted": False})
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    held: list[Route] = []
    page.route("**/hearth/greeting", lambda route: held.append(route))
    page.goto(opened[1])
    page.wait_for_function(FRAMED)
    expect(page.locator("#speak-go")).to_be_hidden()
    until_seen(page, lambda: bool(held))
    held[0].continue_()
    expect(page.locator("#h-greeting").get_by_role("button")).to_have_count(6)
    expect(page.locator("#speak-go")).to_be_visible()
    assert not page.evaluate(FRAMED)
    context.close()


@pytest.mark.slow
def test_the_forecast_comes_once_the_engine_has_told_what_machine_this_is(browser: Browser, opened: tuple[Desk, str]) -> None:
    desk, address = opened
    desk.keeper.status.set(hardware=None)
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    go(page, "paint")
    pass_looks(page)
    assert page.locator("#paint-fit .h-check").count() == 0
    desk.keeper.status.set(hardware=Hardware(kind="cpu", name="light", memory_bytes=8 << 30, free_bytes=8 << 30))
    expect(page.locator("#paint-fit .h-check")).to_contain_text("GB that are free")
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_reload_with_a_draft_moves_nothing(browser: Browser, opened: tuple[Desk, str], width: int) -> None:
    """The samples, what the prompt was read as and the forecast came one after the other, and pushed down what is below them."""
    desk, address = opened
    desk.settings.put({"greeted": True, "drafts": {"paint-prompt": "a red house by the sea"}})
    desk.keeper.status.set(hardware=Hardware(kind="cpu", name="light", memory_bytes=8 << 30, free_bytes=8 << 30))
    with open_page(browser, address, locale="en-US", viewport={"width": width, "height": 800}) as page:
        page.add_init_script(WATCH)
        go(page, "paint")
        for again in (False, True):
            expect(page.locator("#h-samples button").first).to_be_visible()
            expect(page.locator("#h-prompt li").first).to_be_visible()
            expect(page.locator("#paint-fit .h-check")).to_be_visible()
            if not again:
                high = page.locator("#h-prompt").evaluate("each => each.offsetHeight")
                page.reload()
        pass_looks(page)
        shifts = page.evaluate("shifts")
        assert sum(shift for shift, *_ in shifts) <= MOST_SHIFT, shifts
        page.fill("#paint-prompt textarea", "")
        page.keyboard.press("Tab")
        until_seen(page, lambda: page.locator("#h-prompt").evaluate("each => each.offsetHeight") < high)
        until_seen(page, lambda: desk.settings.get("drafts")["paint-prompt"] == "")  # else after the next one's


@pytest.mark.slow
def test_what_the_welcome_speaks_is_heard_by_itself(browser: Browser, opened: tuple[Desk, str], tmp_path: Path) -> None:
    """The welcome promised a sound, and left it behind a play button. What is spoken is made up, as no engine runs."""
    opened[0].settings.put({"greeted": False})
    sound.write(tmp_path / "one.wav", np.zeros(8_000, np.float32), 16_000)
    headers = {"Hearth-Gains": "{}", "Hearth-Until": "0.5", "content-type": "audio/wav"}
    with open_page(browser, opened[1], locale="en-US", viewport={"width": 1280, "height": 800}) as page:
        page.route("**/hearth/heard/**", lambda route: route.fulfill(body=(tmp_path / "one.wav").read_bytes(), headers=headers))
        page.evaluate(SPOKEN, None)  # else the job that the press begins, which is ended at once, may be told before the one made up
        with page.expect_request("**/hearth/heard/first/0?**"):
            page.get_by_role("button", name="Speak something").click()
            part = {"index": 0, "text": "[S1] Hello.", "state": "now", "pieces": ["hearth/made/first/sound-0-0.wav"], "seconds": 0.5}
            more = {"share": 0.5, "pace": 1.0, "said": [], "end": None, "doing": "", "place": 0, "results": []}
            page.evaluate(SPOKEN, {"job": "first", "parts": [part], **more})
        expect(page.locator("#h-parts .h-all button")).to_have_text("Stop")


SLOW = """
const plain = window.fetch;
window.fetch = async (url, options) => {
  const answer = await plain(url, options);
  if (String(url).includes("hearth/machine?")) await new Promise((go) => setTimeout(go, 2500));
  return answer;
};
"""
"""An answer takes longer than it is until the page looks again."""


@pytest.mark.slow
def test_the_machine_tab_fills_where_an_answer_takes_long(browser: Browser, opened: tuple[Desk, str]) -> None:
    """Each look asked anew, so the answer that came was always an old one, and the tab stayed empty."""
    desk, address = opened
    desk.settings.put({"greeted": True})
    desk.keeper.status.set(hardware=Hardware(kind="cpu", name="light"))
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.add_init_script(SLOW)
    page.goto(address)
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    go(page, "machine")
    expect(page.locator("#h-plan td").first).to_be_attached(timeout=20_000)
    context.close()


@pytest.mark.slow
def test_the_plan_is_there_whenever_it_is_unfolded(browser: Browser, opened: tuple[Desk, str]) -> None:
    """Unfolded after the answer had come, plan and curve stayed empty for good."""
    desk, address = opened
    desk.settings.put({"greeted": True})
    desk.keeper.status.set(hardware=Hardware(kind="cpu", name="light"))
    with open_page(browser, address, locale="en-US", viewport={"width": 1280, "height": 800}) as page:
        page.get_by_role("tab", name="Machine").click()
        expect(page.locator("#h-words .h-facts li")).not_to_have_count(0)
        page.get_by_role("button", name="For tinkerers").click()
        expect(page.locator("#h-plan td").first).to_be_visible()
        expect(page.locator("#h-curve svg")).to_be_visible()


@pytest.mark.slow
def test_what_goes_with_a_press_leaves_the_focus_on_the_page(browser: Browser, opened: tuple[Desk, str]) -> None:
    desk, address = opened
    desk.settings.put({"greeted": False})
    with open_page(browser, address, locale="en-US", viewport={"width": 1280, "height": 800}) as page:
        page.get_by_role("button", name="Just look around").press("Enter")
        expect(page.locator("#h-greeting")).to_be_hidden()
        expect(page.get_by_role("tab", name="Speak")).to_be_focused()
        page.get_by_role("tab", name="Speak").press("ArrowRight")
        page.get_by_role("tab", name="Paint").press("ArrowRight")
        page.get_by_role("button", name="Reuse settings").first.press("Enter")
        expect(page.get_by_role("tab", name="Speak")).to_be_focused()


@pytest.mark.slow
@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 390])
def test_the_machine_tab_fills_without_a_jump(browser: Browser, opened: tuple[Desk, str], width: int) -> None:
    desk, address = opened
    desk.settings.put({"greeted": True})
    desk.keeper.status.set(hardware=Hardware(kind="cpu", name="light"))
    context = browser.new_context(locale="en-US", viewport={"width": width, "height": 800})
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_selector("#h-strip .h-machine:not(:empty)", state="attached")
    pass_looks(page)
    before = page.evaluate("shifts.length")
    page.evaluate("Hearth.openTab('machine')")  # a shift soon after a press is not counted
    expect(page.locator("#h-words .h-facts li")).not_to_have_count(0)
    expect(page.locator("#h-machines h2")).to_be_visible()
    pass_looks(page)
    shifts = page.evaluate("shifts")[before:]
    assert sum(shift for shift, *_ in shifts) <= MOST_SHIFT, shifts
    context.close()


def test_the_greeting_goes_with_the_first_start_by_hand(browser: Browser, opened: tuple[Desk, str]) -> None:
    desk, address = opened
    desk.settings.put({"greeted": False})
    with open_page(browser, address, locale="en-US", viewport={"width": 1280, "height": 800}) as page:
        expect(page.locator("#h-greeting").get_by_role("button")).to_have_count(6)
        go(page, "speak")
        page.fill("#speak-text textarea", "[S1] It is warm.")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#h-greeting")).to_be_hidden()
        until(lambda: bool(desk.settings.get("greeted")))
    desk.settings.put({"greeted": False})
