"""What scripts ask of a tab's handlers, in a real browser and without an engine: each call with its number, and none before its tab is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.waiting import until
from tests.support.window import go, needs_chromium, open_page, pass_looks, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

SEEN = """(more) => {
  const fetched = window.fetch;
  window.fetch = async (url, options) => {
    const answer = await fetched(url, options);
    if (!String(url).includes("hearth/live")) return answer;
    return new Response(JSON.stringify({ ...(await answer.json()), ...more }));
  };
}"""
"""The page gets what the server says, and more."""


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with open_page(browser, address, locale="en-US", permissions=["clipboard-read", "clipboard-write"]) as page:
        page.wait_for_selector("#speak-go")  # the tab may come after the strip
        yield page


def carried(page: Page) -> list[Any]:
    """What calls carry to the server, as they leave."""
    sent: list[Any] = []

    def read(route: Route) -> None:
        data = (route.request.post_data_json or {}).get("data", [])
        sent.extend(each for each in data[:1] if isinstance(each, dict))
        route.continue_()

    page.route("**/run/predict*", read)
    return sent


@pytest.mark.slow
def test_only_a_start_makes_the_page_ask_sooner(page: Page) -> None:
    click = "(id) => { document.querySelector(id).click(); return Hearth.live.busy; }"
    assert [page.evaluate(click, each) for each in ("#h-strip", "button#speak-go")] == [False, True]


@pytest.mark.slow
def test_a_recording_and_its_words_are_asked_for_where_the_voice_needs_them(page: Page) -> None:
    needs = dict[str, bool]()

    def answer(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), **needs})

    page.route("**/hearth/check", answer)
    page.get_by_text("Create a voice from a recording").click()
    for needed in (True, False, True):
        needs["transcript"] = needed
        page.fill("#speak-text textarea", f"[S1] It is {needed}.")
        expect(page.locator("#speak-transcript textarea")).to_be_visible(visible=needed)
    for imitates in (False, True):
        needs["imitates"] = imitates
        page.fill("#speak-text textarea", f"[S1] It may be {imitates}.")
        expect(page.get_by_text("Create a voice from a recording")).to_be_visible(visible=imitates)


@pytest.mark.slow
def test_two_parts_that_are_redone_at_once_are_two(page: Page) -> None:
    part = {"text": "[S1] One.", "state": "done", "pace": 1.0, "url": "", "peaks": [], "seconds": 1.0}
    speech = {
        "job": "x",
        "parts": [{**part, "index": 0}, {**part, "index": 1}],
        "share": 1,
        "said": [],
        "results": [],
        "doing": "",
        "pace": 1.0,
        "place": 0,
    }
    page.evaluate(SEEN, {"speech": {**speech, "end": {"kind": "finished", "elapsed_s": 1.0}}})
    again, sent = page.locator("#h-parts .h-again"), carried(page)
    expect(again).to_have_count(2)
    again.evaluate_all("(buttons) => buttons.forEach((each) => each.click())")
    until_seen(page, lambda: len(sent) == 2)
    assert sent == [{"part": "x 0"}, {"part": "x 1"}]


@pytest.mark.slow
def test_a_call_waits_for_its_tab_and_the_last_one_counts(page: Page) -> None:
    sent = carried(page)
    page.evaluate("[7, 8, 9].forEach((creation) => Hearth.call('paint.restore', { creation }))")
    pass_looks(page)
    assert not sent
    go(page, "paint")
    expect(page.locator("#paint-message .h-trouble")).to_contain_text("Creation 9 is not on the shelf.")
    assert sent == [{"creation": 9}], "side by side, their answers would come in any order"


@pytest.mark.slow
def test_a_report_is_copied_where_the_machine_tab_was_never_open(page: Page) -> None:
    page.evaluate(SEEN, {"standing": {"text": "The engine does not start.", "cure": "repair"}})
    page.get_by_role("button", name="Copy report").click()
    until(lambda: '"last_death"' in page.evaluate("navigator.clipboard.readText()"))
