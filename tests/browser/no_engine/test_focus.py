"""The keyboard alone: whatever Tab reaches shows that it has the focus, in both lights, and a choice from a list keeps the focus."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser, FloatRect, Page, expect

from app.base.palette import PALETTE
from app.ui.state.desk import Desk
from tests.support.window import SETTLED, choose, go, needs_chromium, open_page, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

MOST = 90
"""Tab is pressed so many times in a tab of the window."""
FOCUSED = """() => {
  const field = document.activeElement;
  if (!field || field === document.body) return null;
  const outlined = (each) => {
    const { outlineStyle, outlineWidth, outlineColor, opacity } = getComputedStyle(each);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && Number(opacity) && outlineColor;
  };
  const frame = field.closest(".wrap:has(> .wrap-inner)") ?? field.parentElement;
  const colour = outlined(field) || (frame && outlined(frame));
  const { outlineOffset, outlineWidth } = getComputedStyle(field), far = Math.max(0, parseFloat(outlineOffset) + parseFloat(outlineWidth));
  const edges = ({ left, right, top, bottom }, by) => [left - by, top - by, -right - by, -bottom - by];
  const cuts = (each) => {
    const bare = edges(field.getBoundingClientRect(), 0), ring = edges(field.getBoundingClientRect(), far), room = edges(each.getBoundingClientRect(), 0);
    return bare.every((edge, i) => edge >= room[i]) && ring.some((edge, i) => edge < room[i] - 1);
  };
  let cut = false;
  for (let each = field.parentElement; colour && each && each !== document.body; each = each.parentElement) {
    cut ||= getComputedStyle(each).overflow !== "visible" && cuts(each);
  }
  const mark = (field.dataset.seen ??= String(Math.random()));
  return { colour, cut, mark, name: `${field.tagName} ${field.closest("[id]")?.id} ${field.getAttribute("aria-label") ?? field.innerText ?? ""}`.slice(0, 80) };
}"""
"""A slider that is unseen itself, over a wave, has its outline around both; a dropdown around its frame."""


@pytest.fixture(scope="module", params=["light", pytest.param("dark", marks=pytest.mark.slow)])
def page(request: pytest.FixtureRequest, browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    with open_page(
        browser, opened[1], locale="en-US", viewport={"width": 1280, "height": 900}, reduced_motion="reduce", color_scheme=request.param
    ) as page:
        yield page


def ember(page: Page) -> str:
    dark = page.evaluate("document.body.classList.contains('dark')")
    red, green, blue = bytes.fromhex(PALETTE["ember"][dark][1:])
    return f"rgb({red}, {green}, {blue})"


FILLED = {"shelf": "#h-shelf .h-tools", "models": "#h-models .h-models li", "machine": "#h-plan table"}
"""These come with an answer of the server, after the tab is open."""


@pytest.mark.parametrize("tab", ["speak", *(pytest.param(tab, marks=pytest.mark.slow) for tab in ("paint", "shelf", "models", "machine"))])
def test_what_tab_reaches_shows_its_focus(page: Page, tab: str) -> None:
    go(page, tab)
    page.wait_for_selector(FILLED.get(tab, f"#{tab}-go"))
    page.evaluate("document.querySelectorAll('button.label-wrap:not(.open)').forEach((fold) => fold.offsetParent && fold.click())")
    page.evaluate(SETTLED)
    page.locator(".h-brand").focus()
    reached: dict[str, Any] = {}
    for _ in range(MOST):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED)
        if found is None or found["mark"] in reached:
            break
        reached[found["mark"]] = found
    assert len(reached) >= 10
    assert not [each["name"] for each in reached.values() if each["colour"] != ember(page)]
    assert not [each["name"] for each in reached.values() if each["cut"]], "a ring that what is around it cuts off"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "framed"), [("#speak-text textarea", "#speak-text textarea"), ("#speak-voice input", "#speak-voice .wrap:has(> .wrap-inner)")]
)
def test_the_ring_of_a_field_is_whole_and_around_its_frame(page: Page, field: str, framed: str) -> None:
    box = page.locator(field)
    page.reload()  # a list that the test before has opened would lie over the field
    go(page, "speak")
    page.locator(".h-brand").focus()  # at the top of the page
    around = page.locator(framed).bounding_box()
    assert around
    clip: FloatRect = {"x": around["x"] - 6, "y": around["y"] - 6, "width": around["width"] + 12, "height": around["height"] + 12}

    def shot() -> Image.Image:
        return Image.open(io.BytesIO(page.screenshot(clip=clip, caret="hide"))).convert("RGB")

    before = shot()
    page.keyboard.press("Tab")
    box.focus()
    page.keyboard.press("Escape")  # a dropdown shows its list
    expect(page.locator("ul[role=listbox]")).to_have_count(0)
    changed = np.asarray(ImageChops.difference(before, shot()), dtype=int).sum(axis=2) > 60
    changed[6:-6, 6:-6] = False  # within the frame
    assert changed.sum() > 3 * (around["width"] + around["height"]), "two pixels on each side"


@pytest.mark.slow
def test_a_choice_by_enter_keeps_the_focus(page: Page) -> None:
    go(page, "speak")
    field, listed = page.locator("#speak-voice input"), page.locator("#speak-voice ul[role=listbox]")
    field.focus()
    for _ in range(2):
        before = field.input_value()
        page.keyboard.press("ArrowDown")
        expect(listed).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(listed).to_have_count(0)
        expect(field).to_be_focused()
        expect(field).not_to_have_value(before)
    page.evaluate(SETTLED)
    expect(listed).to_have_count(0)
    page.keyboard.press("Tab")
    expect(field).not_to_be_focused()
    assert page.evaluate("document.activeElement !== document.body")
    page.mouse.click(5, 700)
    expect(field).not_to_be_focused()


COVERED = """() => {
  const field = document.activeElement, box = field.getBoundingClientRect();
  const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return Boolean(top?.closest(".h-going")) && !field.closest(".h-going");
}"""


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["speak", "paint"])
def test_what_tab_reaches_is_not_under_the_bar(page: Page, tab: str) -> None:
    """With a chip on it, too, which makes it higher."""
    page.reload()
    go(page, tab)
    page.evaluate("document.querySelectorAll('button.label-wrap:not(.open)').forEach((fold) => fold.offsetParent && fold.click())")
    page.evaluate("tab => Hearth.inForce(tab, 'seed', 7)", tab)
    page.evaluate(SETTLED)
    page.locator(".h-brand").focus()
    reached, hidden = 0, list[str]()
    for _ in range(MOST):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED)
        if found is None or f"{tab}-go" in found["name"]:
            break
        reached += 1
        if page.evaluate(COVERED):
            hidden.append(found["name"])
    assert reached > 25
    assert not hidden


@pytest.mark.slow
def test_a_list_is_no_stop_and_closes_behind_tab(page: Page) -> None:
    """A list that scrolls took the focus unseen; after something typed it stayed over the page for good."""
    page.reload()
    go(page, "paint")
    unfold(page, "Settings")
    page.locator("#paint-guidance input").focus()
    for place in ("input[role=listbox], input[aria-expanded]", "#paint-seed input"):
        page.keyboard.press("Tab")
        page.evaluate(SETTLED)  # whatever takes the focus away does so by then
        assert page.evaluate("place => document.activeElement.matches(place)", place), place
    preset = page.locator("#paint-preset input")
    preset.click()
    page.keyboard.type("evening")
    expect(page.locator("#paint-preset ul[role=listbox]")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator("ul[role=listbox]")).to_have_count(0)
    expect(preset).to_have_value("evening")


@pytest.mark.slow
def test_arrows_home_and_end_go_from_tab_to_tab(page: Page) -> None:
    """Tab reaches the open one alone, and from there what it holds."""
    go(page, "speak")
    order = ["speak", "paint", "shelf", "models", "machine"]
    tabs = page.get_by_role("tablist").get_by_role("tab")
    reached = "[...document.querySelectorAll('[role=tablist] > [role=tab]')].filter((each) => each.tabIndex === 0).map((each) => each.dataset.tabId)"
    tabs.first.focus()
    for key, now in [("ArrowRight", 1), ("ArrowRight", 2), ("End", 4), ("ArrowRight", 0), ("ArrowLeft", 4), ("Home", 0)]:
        page.keyboard.press(key)
        expect(tabs.nth(now)).to_be_focused()
        expect(tabs.nth(now)).to_have_attribute("aria-selected", "true")
        page.wait_for_function(f"{reached}.join() === '{order[now]}'")
    page.keyboard.press("Alt+ArrowRight")
    expect(tabs.first).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.role !== 'tab' && !document.activeElement.closest('[role=tablist]')")
    page.click('[role=tablist] > [data-tab-id="shelf"]')
    page.wait_for_function(f"{reached}.join() === 'shelf'")


@pytest.mark.slow
def test_the_scroll_bar_is_in_the_pages_light(page: Page) -> None:
    """The page's own is the root's, which is light of itself."""
    dark = page.evaluate("document.body.classList.contains('dark')")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == ("dark" if dark else "normal")


def test_a_list_of_choices_is_named_before_it_opens(page: Page) -> None:
    """As native ones: a screen reader that comes by Tab hears field and value, not an option; the arrow goes on from what is chosen."""
    go(page, "speak")
    voice, listed = page.locator("#speak-voice input"), page.locator("#speak-voice ul[role=listbox]")
    choose(page, "#speak-voice", "New random voice")  # the test of a choice by Enter leaves another
    expect(voice).to_have_value("New random voice")
    page.locator("#h-voices > summary").focus()
    page.keyboard.press("Shift+Tab")
    expect(voice).to_be_focused()
    page.evaluate(SETTLED)
    expect(listed).to_have_count(0)
    expect(voice).not_to_have_attribute("aria-activedescendant", re.compile("."))
    page.keyboard.press("ArrowDown")
    expect(listed).to_be_visible()
    page.keyboard.press("Enter")
    expect(voice).to_have_value("Anna")
    expect(voice).to_be_focused()


NEXT_FRAME = """(card) => {
  window.nextFrame = [];
  card.addEventListener("focusin", () => requestAnimationFrame(() => {
    const { nodeName, ariaLabel } = document.activeElement, menu = card.querySelector(".h-menu").open, fields = card.querySelectorAll(".h-asks");
    nextFrame.push(`${nodeName} ${ariaLabel?.split(":")[0]}, menu ${menu ? "open" : "shut"}, ${fields.length} fields`);
  }));
}"""
"""What has the focus a frame after it moved, and whether that from which it came is still there."""


def test_what_had_the_focus_outlives_it_by_a_frame(page: Page) -> None:
    """A screen reader says nothing of a field if the menu that it was chosen from goes in the frame in which the field gets the focus."""
    go(page, "shelf")
    card = page.locator("#h-shelf .h-creation").first
    menu, fields = card.locator(".h-menu"), card.locator(".h-asks")
    card.locator("summary").press("Enter")
    rename = card.get_by_role("button", name="Rename")
    rename.focus()
    card.evaluate(NEXT_FRAME)
    rename.press("Enter")
    expect(menu).not_to_have_attribute("open", re.compile(""))
    expect(fields.get_by_label("Name of this creation")).to_be_focused()
    page.keyboard.press("Escape")
    expect(fields).to_have_count(0)
    expect(card.locator("summary")).to_be_focused()
    seen = page.evaluate("[...new Set(nextFrame)]")
    assert seen == ["INPUT Name of this creation, menu open, 1 fields", "SUMMARY More, menu shut, 1 fields"]


@pytest.mark.slow
def test_who_names_a_creation_is_back_at_its_menu(page: Page) -> None:
    go(page, "shelf")
    card = page.locator("#h-shelf .h-creation").first
    card.locator("summary").press("Enter")
    card.get_by_role("button", name="Rename").press("Enter")
    page.keyboard.type("Evening")
    page.keyboard.press("Enter")
    expect(card.get_by_role("button", name="Delete: Evening")).to_be_visible()
    expect(card.locator("summary")).to_be_focused()
    page.get_by_role("searchbox", name="Search your creations").fill("hello")
    expect(page.locator("#h-shelf > [role=status].h-count")).to_have_text("2 creations found")
