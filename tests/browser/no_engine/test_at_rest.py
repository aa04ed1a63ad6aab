"""A page at rest asks for no frame: it takes nothing from what is being made, nor from a battery."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.support.waiting import WAIT_S
from tests.support.window import needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

COUNTED = """
const frame = window.requestAnimationFrame.bind(window);
window.frames_asked = 0;
window.requestAnimationFrame = (draw) => (window.frames_asked++, frame(draw));
"""
REST_MS = 600
"""A loop would ask for about 36 frames; a busy browser draws fewer, but never none."""
QUIET = """async ([rest, wait]) => {
    for (const until = performance.now() + wait; performance.now() < until; ) {
        const before = window.frames_asked;
        await new Promise((go) => setTimeout(go, rest));
        if (window.frames_asked === before) return true;
    }
    return false;
}"""


def test_a_page_at_rest_asks_for_no_frame(browser: Browser, address: str) -> None:
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800})
    context.add_init_script(COUNTED)  # before the page's own scripts: what they let through is counted
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    page.get_by_role("tab", name="Paint").click()
    assert page.evaluate(QUIET, [REST_MS, 1000 * WAIT_S])
    assert page.evaluate("window.frames_asked") > 0, "what is drawn is still counted"
    context.close()
