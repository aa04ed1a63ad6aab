"""What is told of a job that ended or rests: once, not again with "ready" or as the page is loaded, and not as if it went on."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.browser.no_engine.test_away import FACTS, LIVE
from tests.browser.no_engine.test_play_all import SPEECH, SPOKEN
from tests.support.window import needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

TOLD = """
window.told = [];
new MutationObserver((changes) => changes.forEach(({ target }) => {
  if (target.matches?.("#h-parts .h-heard[role=status]")) window.told.push(target.textContent);
})).observe(document, { subtree: true, childList: true });
"""


def test_after_the_end_of_a_job_nothing_says_ready(page: Page) -> None:
    """It came after "stopped; finished results are kept", or before."""
    doing, heard = page.locator("#h-strip .h-doing"), page.locator("#h-strip .h-heard")
    for job, words, told in (("7", "speaking", ""), ("", "ready", ""), ("", "engine starting", "engine starting"), ("", "ready", "ready")):
        page.evaluate(LIVE, {**FACTS, "job": job, "doing": words})
        expect(doing).to_have_text(words)
        expect(heard).to_have_text(told)
        assert (doing.get_attribute("aria-hidden") == "true") is bool(told), "who reads on hears it once"


def test_a_part_of_a_job_that_rests_waits(page: Page) -> None:
    """It was said to be spoken while the job was paused."""
    part = {"index": 0, "text": "[S1] Hello.", "state": "now", "seconds": 4.5}
    line = page.locator("#h-parts .h-part p")
    for place, told in ((0, "speaking, 4.5 s ready: S1 Hello."), (1, "waiting: S1 Hello.")):
        page.evaluate(SPOKEN, {**SPEECH, "job": "rests", "parts": [part], "place": place})
        expect(line).to_have_text(told)


def test_a_result_is_no_news_as_the_page_is_loaded(page: Page) -> None:
    speech: dict[str, Any] = {**SPEECH, "job": "old", "parts": [], "end": {"kind": "finished", "elapsed_s": 2.0}}

    def answer(route: Route) -> None:
        came = route.fetch()
        route.fulfill(response=came, body=json.dumps({**came.json(), "speech": speech}))

    page.add_init_script(TOLD)
    page.route("**/hearth/live*", answer)
    page.reload()
    heard = page.locator("#h-parts .h-heard")
    expect(heard).to_have_text("done in 2.0 s")
    expect(heard).to_have_attribute("role", "status")
    assert page.evaluate("window.told") == []
    speech |= {"job": "new", "end": {"kind": "finished", "elapsed_s": 3.0}}
    page.wait_for_function("window.told.includes('done in 3.0 s')")
    page.unroute_all(behavior="wait")
