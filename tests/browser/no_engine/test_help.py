"""The help in a real browser: by keyboard alone, searched, and from an error."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.support.window import UNFOLD, go, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.mark.slow
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
    page.evaluate(FREE)
    page.keyboard.press("Escape")
    page.wait_for_function("window.named === 'Why?'")  # orca names nothing that has it again while the dialog is there


FREE = """() => document.addEventListener("focusin", ({ target }) => {
  if (!document.querySelector("dialog.h-help")) window.named = target.textContent;
})"""
FAILED = """([code, broke]) => {
  const told = Object.assign(document.querySelector("#speak-message .h-trouble").cloneNode(true), { className: `h-trouble ${broke ? "h-broke" : ""}` });
  Object.assign(told.dataset, { cure: "", code });
  document.querySelector("#speak-message").replaceChildren(told);
}"""


@pytest.mark.slow
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


SCRIPT, PROMPT, BY_HAND = "How to write a script", "How to write a prompt", "Choices by hand"
CARDS: Final = {
    "speak": {"#speak-message": SCRIPT, "#h-parts": SCRIPT},
    "paint": {
        "#paint-message": PROMPT,
        "#h-canvas": PROMPT,
        "#h-prompts": PROMPT,
        "#h-sketch": PROMPT,
        "#h-tuning": BY_HAND,
        "#h-loras": "What the words mean",
    },
    "shelf": {"#h-shelf": "When the disk is full, or files are gone"},
    "models": {"#h-models": "Models and downloads"},
    "machine": {
        "#h-machines": "Several machines",
        "#h-notify": "When it is done: a chime, a notification, your phone",
        "#h-disk": "When the disk is full, or files are gone",
        "#h-upkeep": "Updates, going back, and extras",
        "#h-plan": BY_HAND,
        "#machine-message": BY_HAND,
        "#machine-objections": BY_HAND,
    },
}
"""Of each tab, the cards that show failures, and the topic of each."""
SPOKEN = ("#speak-message", "#paint-message", "#h-plan", "#machine-message", "#machine-objections")
"""The others have their line for a failure from the beginning."""
FAIL = """(place) => {
  const told = Object.assign(document.createElement("p"), { className: "h-trouble", textContent: "That did not work." });
  place.append(told);
  Hearth.redraw();
  told.nextElementSibling.querySelector(".h-why").click();
  told.nextElementSibling.remove();
  told.remove();
}"""
STRAYS = "(lines, cards) => lines.filter((line) => !line.closest(cards)).map((line) => line.parentElement.outerHTML)"


@pytest.mark.slow
def test_why_leads_from_every_card_to_what_is_said_of_it(page: Page) -> None:
    """All of the Machine tab led to the choices by hand, an address for the phone and an update too."""
    known = ", ".join(card for cards in CARDS.values() for card in cards)
    for tab, cards in CARDS.items():
        go(page, tab)
        page.locator("button.label-wrap").locator("visible=true").evaluate_all(f"(folds) => folds.forEach({UNFOLD})")
        for card, title in cards.items():
            page.wait_for_selector(card if card in SPOKEN else f"{card} .h-trouble", state="attached")
            page.locator(card).evaluate(FAIL)
            expect(page.locator("dialog.h-help details[open] summary")).to_have_text(title)
            page.get_by_role("button", name="Close").click()
        assert page.locator(".h-trouble").evaluate_all(STRAYS, known) == [], "a card that is to be named above, with its topic"
