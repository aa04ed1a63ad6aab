"""The address that tells a phone, typed in a real browser: a mistyped one can be put right."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from app.ui.state.desk import Desk
from tests.support.window import go, needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


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
