"""A page whose server does not answer: it says so where its facts stand, and shows no old one as if it were live."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.support.window import WAIT_MS, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

FACTS = {
    "job": "7", "doing": "speaking part 3 of 9", "rate": "88 frames/s", "eta_s": 90, "model": "Dia", "machine": "A machine, folded GQA",
    "memory": {"now": 2**30, "highest": 2**31, "limit": 2**33, "total": 2**33, "swap": 2**30},
}  # fmt: skip
LIVE = """(facts) => {
  const asked = window.fetch;
  window.fetch = async (url, options) => {
    const answer = await asked(url, options);
    if (!String(url).includes("hearth/live") || !answer.ok) return answer;
    const body = await answer.json();
    return new Response(JSON.stringify({ ...body, strip: { ...body.strip, ...facts } }), { headers: { "content-type": "application/json" } });
  };
}"""


@pytest.mark.slow
@pytest.mark.parametrize(("language", "width", "told"), [("en-US", 1280, "not connected"), ("zh-CN", 390, "未连接")])
def test_the_strip_says_that_it_is_not_connected_until_it_is_again(
    language: str, width: int, told: str, browser: Browser, address: str
) -> None:
    context = browser.new_context(locale=language, viewport={"width": width, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    page.evaluate(LIVE, FACTS)
    strip = page.locator("#h-strip")
    expect(strip.locator(".h-doing")).to_have_text("speaking part 3 of 9")
    expect(strip.locator(".h-rate")).to_have_text("88 frames/s")
    page.route("**/hearth/live*", lambda route: route.abort())
    expect(strip.locator(".h-doing")).to_have_text(told)
    expect(strip.locator(".h-heard")).to_have_text(told)
    assert strip.inner_text().split("\n") == [told, told]  # as seen, and as heard
    expect(strip.locator(".h-memory")).to_be_hidden()
    assert "h-busy" not in (strip.get_attribute("class") or "")
    assert not shut_out(page)
    page.unroute("**/hearth/live*")
    expect(strip.locator(".h-doing")).to_have_text("speaking part 3 of 9")
    expect(strip.locator(".h-memory")).not_to_have_attribute("hidden", "")
    context.close()
