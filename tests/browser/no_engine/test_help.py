"""The help in a real browser: by keyboard alone, searched, and from an error."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.support.window import go, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def test_the_help_is_opened_searched_and_left_by_keyboard(page: Page) -> None:
    go(page, "speak")
    help_, search = page.locator("dialog.h-help"), page.get_by_role("searchbox", name="Search the help")
    page.fill("#speak-text textarea", "")
    page.locator("#speak-text textarea").press("?")
    expect(page.locator("#speak-text textarea")).to_have_value("?")
    expect(help_).to_have_count(0)
    page.locator("#speak-go").focus()
    page.keyboard.press("?")
    expect(help_.locator("summary", has_text="Keys")).to_be_focused()
    expect(help_.locator("details[open] dd").first).to_be_visible()
    assert not shut_out(page)
    search.fill("negative prompt")
    expect(help_.get_by_role("status")).to_contain_text("topics")
    expect(help_.locator("summary", has_text="How to write a prompt")).to_be_visible()
    search.fill("xylophone")
    expect(help_.locator("details")).to_have_count(0)
    expect(help_.get_by_role("status")).to_have_text("Nothing is said of that here.")
    page.keyboard.press("Escape")  # empties the field, as a search field does
    page.keyboard.press("Escape")
    expect(help_).to_have_count(0)
    expect(page.locator("#speak-go")).to_be_focused()


def test_help_is_where_one_is_and_an_error_says_why(page: Page) -> None:
    for tab, title in (("paint", "How to write a prompt"), ("models", "Models and downloads"), ("speak", "How to write a script")):
        go(page, tab)
        page.get_by_role("button", name="Help (key ?)").click()
        expect(page.locator("dialog.h-help details[open] summary")).to_have_text(title)
        page.get_by_role("button", name="Close").click()
    page.fill("#speak-text textarea", "[S3] (pause 1s)")
    page.click("#speak-go")
    expect(page.locator("#speak-message .h-trouble")).to_contain_text("only tags, pauses")
    page.locator(".h-why:visible").first.click()
    expect(page.locator("dialog.h-help details[open] summary")).to_have_text("How to write a script")


FAILED = """([code, broke]) => {
  const told = Object.assign(document.querySelector("#speak-message .h-trouble").cloneNode(true), { className: `h-trouble ${broke ? "h-broke" : ""}` });
  Object.assign(told.dataset, { cure: "", code });
  document.querySelector("#speak-message").replaceChildren(told);
}"""


def test_why_leads_to_what_is_said_of_that_trouble(page: Page) -> None:
    """Each without a cure opened the tab's topic, so a full disk led to how a script is written."""
    go(page, "speak")
    page.fill("#speak-text textarea", "[S3] (pause 1s)")
    page.click("#speak-go")
    expect(page.locator("#speak-message .h-trouble")).to_be_visible()
    for code, broke, title in (
        ("disk_full", True, "When the disk is full, or files are gone"),
        ("no_memory", True, "When memory is not enough"),
        ("refused", True, "When a job breaks off"),
        ("impossible", True, "How to write a script"),
    ):
        page.evaluate(FAILED, [code, broke])
        page.locator("#speak-message .h-why").click()
        expect(page.locator("dialog.h-help details[open] summary")).to_have_text(title)
        page.get_by_role("button", name="Close").click()
