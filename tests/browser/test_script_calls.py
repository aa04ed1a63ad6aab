"""What scripts ask of the server, in a real browser and without an engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.both_servers import served
from tests.support.waiting import until
from tests.support.window import WAIT_MS, needs_chromium

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
"""What the server says, and more."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("calls")) as (desk, address, _):
        desk.settings.put({"greeted": True})
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    yield page
    context.close()


def test_a_report_is_copied_where_the_machine_tab_was_never_open(page: Page) -> None:
    page.evaluate(SEEN, {"standing": {"text": "The engine does not start.", "cure": "repair"}})
    page.get_by_role("button", name="Copy report").click()
    until(lambda: '"last_death"' in page.evaluate("navigator.clipboard.readText()"))
