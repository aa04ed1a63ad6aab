"""Told when it is done, in a real browser: the page's own notification, and the address of a phone, of which a mistyped one can be put right."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from app.ui.state.desk import Desk
from tests.support.waiting import until
from tests.support.window import go, needs_chromium, open_page

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.mark.slow
def test_a_mistyped_address_can_be_put_right(page: Page, opened: tuple[Desk, str]) -> None:
    """The refusal's "Why?" was taken for Save, which went, and the address had to be typed anew."""
    go(page, "machine")
    card = page.locator("#h-notify")
    address, save = card.get_by_label("Address", exact=True), card.get_by_role("button", name="Save")
    for _ in range(2):
        address.fill("ntfy.sh/hearth")
        with page.expect_response("**/hearth/notify/keep"):
            save.click()
        expect(card.get_by_role("alert")).to_contain_text("This is no web address.")
        expect(card.get_by_role("button", name="Why?")).to_be_visible()
        expect(address).to_have_value("ntfy.sh/hearth")
        expect(card.get_by_role("button", name="Send a test")).to_be_hidden()
    address.fill("https://ntfy.sh/hearth")
    save.click()
    expect(card.get_by_role("status")).to_have_text("Saved.")
    expect(address).to_have_value("")
    for name in ("Send a test", "Remove"):
        expect(card.get_by_role("button", name=name)).to_be_visible()


ENDS = """([kind, results]) => {
  const notices = [];
  window.Notification = class {
    static permission = "granted";
    constructor(title, options) { notices.push([title, options.body, options.icon]); }
  };
  localStorage.setItem("hearth_chime", "on");
  Object.defineProperty(document, "hidden", { get: () => true, configurable: true });
  const { state } = Hearth.live, kept = state[kind];
  const view = { job: "told", parts: [], share: 0.5, said: [], doing: "", place: 0, rate: "", pace: 1, preview: "", guide: "" };
  for (const more of [{ end: null, results: [] }, { end: { kind: "finished", elapsed_s: 2 }, results }]) {
    state[kind] = { ...view, ...more };
    Hearth.redraw();
  }
  state[kind] = kept;
  delete document.hidden;
  return notices;
}"""
"""A job of this kind runs and ends while nobody looks; what a notification was made of."""
MADE = {"url": "hearth/static/icon-180.png", "id": 1, "name": "made.png", "text": "", "peaks": [], "seconds": 1.0}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "icon"), [("picture", MADE["url"]), ("speech", "hearth/static/icon-64.png")])
def test_the_pages_own_notification_shows_the_picture(page: Page, kind: str, icon: str) -> None:
    go(page, "paint")
    assert page.evaluate(ENDS, [kind, [MADE]]) == [["Hearth", "Done.", icon]]


def test_hearth_knows_whether_a_page_tells_and_whether_that_is_wished(page: Page, opened: tuple[Desk, str]) -> None:
    """With the window closed nothing told that the work was done: the wish was the page's own."""
    desk = opened[0]
    chime = page.locator('[data-h-act="chime"]')
    chime.click()
    until(lambda: desk.settings.get("chime") is True)
    expect(chime).to_have_attribute("aria-pressed", "true")
    chime.click()
    until(lambda: desk.settings.get("chime") is False)
    desk.notifying.pages.clear()  # of tests before
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_function("window.Hearth?.live.state")  # it tells only an owner's
    until(lambda: len(desk.notifying.pages) == 2)
    other.goto("about:blank")
    until(lambda: len(desk.notifying.pages) == 1 and desk.notifying.has_page)
    page.goto("about:blank")
    until(lambda: not desk.notifying.has_page)


STRICT = """
  let pressed = false;
  addEventListener("keydown", () => { pressed = true; });
  Object.defineProperty(navigator, "userActivation", { get: () => ({ hasBeenActive: pressed }) });
  Object.defineProperty(AudioContext.prototype, "state", { get: () => (pressed ? "running" : "suspended") });
"""
"""A browser that lets a page sound once it was pressed; the one of the tests always does, and takes what a test asks of a page for a press."""


def test_a_chime_of_before_says_that_the_page_must_be_pressed_first(browser: Browser, opened: tuple[Desk, str]) -> None:
    """A browser lets no page sound that nobody pressed since it was loaded: it was silent without a word. And Hearth did not know of a wish that was older."""
    desk, address = opened
    desk.settings.put({"chime": False})
    with open_page(browser, address, locale="en-US") as page:
        page.evaluate("localStorage.setItem('hearth_chime', 'on')")
        page.add_init_script(STRICT)
        page.reload()
        chime = page.locator('[data-h-act="chime"]')
        expect(chime).to_have_text("♪ click once")
        expect(chime).to_have_accessible_name(re.compile("The browser lets this page sound once"))
        until(lambda: desk.settings.get("chime") is True)
        chime.press("Enter")
        expect(chime).to_have_text("♪")
        expect(chime).to_have_attribute("aria-pressed", "true")
        expect(chime).to_have_accessible_name("Chime when a job is done")
        page.evaluate("localStorage.removeItem('hearth_chime')")
    desk.settings.put({"chime": False})
