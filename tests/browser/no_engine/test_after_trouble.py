"""What stands on the page after something went wrong, in a real browser and without an engine: remarks above long scripts, no ghosts, a way on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.window import go, needs_chromium, open_page, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

ALTERED = """(more) => {
  window.asked ??= window.fetch;
  window.fetch = async (url, options) => {
    if (!String(url).includes("hearth/live")) return window.asked(url, options);
    const body = await (await window.asked(url, options)).json();
    for (const name of Object.keys(more)) body[name] = more[name] ?? undefined;
    return new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
  };
}"""
"""What is given takes the place of what the server says of it."""


@pytest.fixture(scope="module", params=[("light", "en-US", 1280), pytest.param(("dark", "zh-CN", 390), marks=pytest.mark.slow)])
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    scheme, locale, width = request.param
    with open_page(browser, address, locale=locale, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        yield page


def show(page: Page, **state: Any) -> None:
    page.evaluate(ALTERED, state)


def part(index: int, state: str) -> dict[str, Any]:
    made = {"url": "", "peaks": [], "seconds": 1.0} if state == "done" else {"pieces": [], "seconds": 0.3}
    return {"index": index, "text": f"[S1] Line {index}.", "state": state, "pace": 1.0, **made}


def speech(parts: list[dict[str, Any]], end: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    said = [{"kind": "adjusted", "text": "The engine was started again."}]
    return {
        "job": "long",
        "parts": parts,
        "pace": 1.0,
        "share": 0.4,
        "said": said,
        "end": end,
        "doing": "",
        "place": 0,
        "results": [],
        **more,
    }


def top(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box, selector
    return box["y"]


@pytest.mark.slow
def test_a_remark_and_a_failure_stand_above_a_long_scripts_rows(page: Page) -> None:
    """A notice stood under 439 rows."""
    go(page, "speak")
    rows = [part(n, "done" if n < 40 else "waits") for n in range(120)]
    show(page, speech=speech(rows, {"kind": "failed", "text": "The disk is full.", "cure": "go-on"}))
    expect(page.locator("#h-parts .h-trouble")).to_have_text("The disk is full.")
    for above in (".h-said li", ".h-trouble", ".h-cure button"):
        assert top(page, f"#h-parts {above}") < top(page, "#h-parts .h-part"), above
    assert not shut_out(page)


@pytest.mark.slow
def test_the_result_stands_first_and_unspoken_rows_are_folded(page: Page) -> None:
    go(page, "speak")
    rows = [part(n, "done" if n < 3 else "waits") for n in range(9)]
    result = {"url": "", "peaks": [], "name": "speech.wav", "id": 7, "seconds": 3.0}
    show(page, speech=speech(rows, {"kind": "stopped"}, results=[result]))
    expect(page.locator("#h-sound .h-player")).to_be_visible()
    assert top(page, "#h-sound") < top(page, "#h-parts")
    expect(page.locator("#h-parts .h-part:visible")).to_have_count(3)
    fold = page.locator("#h-parts details > summary")
    expect(fold).to_contain_text("6")
    fold.click()
    expect(page.locator("#h-parts .h-part:visible")).to_have_count(9)
    assert not shut_out(page)
    fold.click()
    show(page, speech=speech([part(n, "waits") for n in range(9)], None))
    expect(page.locator("#h-parts .h-part:visible")).to_have_count(9)
    expect(fold).to_be_hidden()


@pytest.mark.slow
def test_a_stopped_script_has_a_button_that_resumes_it(page: Page) -> None:
    go(page, "speak")
    show(page, speech=speech([part(0, "done"), part(1, "waits")], {"kind": "stopped"}))
    button = page.locator("#h-parts .h-resume button")
    expect(button).to_be_visible()
    page.route("**/hearth/queue/long/go-on", lambda route: route.fulfill(json={}))
    with page.expect_response("**/hearth/queue/long/go-on"):
        button.click()
    show(page, speech=speech([part(0, "done"), part(1, "now")], None))
    expect(button).to_be_hidden()
    show(page, speech=speech([part(0, "waits")], {"kind": "stopped"}))
    expect(page.locator("#h-parts details > summary")).to_be_visible()
    expect(button).to_be_hidden()  # nothing was finished: Speak does the same


@pytest.mark.slow
def test_after_a_restart_of_the_server_no_row_says_that_it_is_spoken(page: Page) -> None:
    go(page, "speak")
    show(page, speech=speech([part(0, "done"), part(1, "now")], None), picture=None)
    expect(page.locator("#h-parts .h-part")).to_have_count(2)
    show(page, speech=None, picture=None)
    expect(page.locator("#h-parts .h-part")).to_have_count(0)
    expect(page.locator("#h-parts .h-empty")).not_to_be_empty()
    expect(page.locator("#h-parts .h-now")).to_be_empty()
    go(page, "paint")
    seen = {
        "job": "p",
        "parts": [],
        "share": 0.4,
        "said": [],
        "end": None,
        "doing": "",
        "place": 0,
        "results": [],
        "listed": [],
        "rate": "2 steps/s",
    }
    show(page, picture={**seen, "preview": "hearth/static/icon-64.png"})
    expect(page.locator("#h-canvas img").first).to_be_visible()
    show(page, picture=None)
    expect(page.locator("#h-canvas img").first).to_be_hidden()
    expect(page.locator("#h-canvas .h-now")).to_be_empty()


def test_an_older_answer_takes_nothing_back(page: Page) -> None:
    """A press asks anew while an answer is on its way: on a busy machine the older one came last, hid a field and took its focus."""
    go(page, "speak")
    page.evaluate("""async () => {
      const asked = window.fetch, held = new Promise((go) => window.letGo = go);
      let count = 0;
      window.held = new Promise((done) => {
        window.fetch = async (url, options) => {
          if (!String(url).includes("hearth/live")) return asked(url, options);
          const mine = count++, body = await (await asked(url, options)).json();
          if (mine === 0) setTimeout(Hearth.soon), await held;
          body.strip = { ...body.strip, doing: mine ? "newer" : "older" };
          const answer = new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
          if (mine === 0) answer.json = async () => (setTimeout(done), body); // the page has it before any timer runs
          return answer;
        };
      });
    }""")
    page.wait_for_function("Hearth.live.state.strip.doing === 'newer'")
    seen = page.evaluate("""async () => {
      window.letGo();
      await window.held;
      return Hearth.live.state.strip.doing;
    }""")
    assert seen == "newer"
