"""An album in an order of its owner's: by buttons, keys and dragging; and two pictures of different shapes compared."""

from __future__ import annotations

import re

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from app.engine.jobs.creation import Creation
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.ui.state.desk import Desk
from tests.support.both_servers import keep_creation
from tests.support.window import go, needs_chromium, open_page, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def open_album(page: Page, desk: Desk, name: str, word: str) -> list[Creation]:
    """An album of three pictures, looked into."""
    made = [keep_creation(desk, PictureRequest(f"{word} {each}"), f"{word} {each}.png") for each in (1, 2, 3)]
    show_album(page, desk, name, made)
    return made


def show_album(page: Page, desk: Desk, name: str, made: list[Creation]) -> None:
    desk.keeper.gallery.put(made, desk.keeper.gallery.make_album(name))
    go(page, "shelf")
    page.get_by_role("combobox", name="Album", exact=True).select_option(label=f"{name} ({len(made)})")


def test_an_album_is_put_in_order_by_buttons_keys_and_dragging(page: Page, opened: tuple[Desk, str]) -> None:
    made = open_album(page, opened[0], "Comic", "page")
    words = page.locator("#h-shelf .h-creation .h-words")
    expect(words).to_have_text(["page 3", "page 2", "page 1"])
    page.get_by_role("button", name="Own order").click()
    expect(words).to_have_text(["page 1", "page 2", "page 3"])
    expect(page.locator("#h-shelf .h-day")).to_have_count(0)
    assert not shut_out(page)
    page.get_by_role("button", name="Move earlier: page 3").click()
    expect(words).to_have_text(["page 1", "page 3", "page 2"])
    page.get_by_role("button", name="Move earlier: page 3").press("Alt+ArrowLeft")
    expect(words).to_have_text(["page 3", "page 1", "page 2"])
    cards = page.locator("#h-shelf .h-creation")
    cards.nth(2).locator("img").drag_to(cards.nth(0))
    expect(words).to_have_text(["page 2", "page 3", "page 1"])
    page.get_by_role("button", name="Select all 3").click()
    expect(page.locator("#h-shelf .h-zip")).to_have_attribute("href", f"hearth/export?ids={made[1].id},{made[2].id},{made[0].id}&album=1")
    page.get_by_role("searchbox").first.fill("page")
    expect(page.get_by_role("button", name="Move earlier")).to_have_count(0)
    page.get_by_role("searchbox").first.fill("")
    page.get_by_role("button", name="Newest first").click()
    expect(words).to_have_text(["page 3", "page 2", "page 1"])


def drag_onto(page: Page, grip: Locator, card: Locator) -> None:
    """Drag by the mouse alone: `drag_to` scrolls once the button is down, and then it is no longer over the grip."""
    here, there = grip.bounding_box(), card.bounding_box()
    assert here and there
    page.mouse.move(here["x"] + here["width"] / 2, here["y"] + here["height"] / 2)
    page.mouse.down()
    page.mouse.move(there["x"] + 30, there["y"] + 30, steps=5)
    page.mouse.up()


@pytest.mark.slow
def test_a_sound_is_dragged_by_its_grip(page: Page, opened: tuple[Desk, str]) -> None:
    """It has no picture to be dragged by."""
    desk = opened[0]
    picture = keep_creation(desk, PictureRequest("cover"), "cover.png")
    sounds = [keep_creation(desk, SpeechRequest(f"chapter {each}"), f"{each}.wav") for each in (1, 2)]
    show_album(page, desk, "Book", [picture, *sounds])
    cards, words = page.locator("#h-shelf .h-creation"), page.locator("#h-shelf .h-creation .h-words")
    grips = cards.locator(".h-grip").locator("visible=true")
    expect(words).to_have_count(3)
    expect(grips).to_have_count(0)
    page.get_by_role("button", name="Own order").click()
    expect(words).to_have_text(["cover", "chapter 1", "chapter 2"])
    drag_onto(page, grips.nth(2), cards.nth(0))
    expect(words).to_have_text(["chapter 2", "cover", "chapter 1"])
    drag_onto(page, grips.nth(2), cards.nth(1))
    expect(words).to_have_text(["chapter 2", "chapter 1", "cover"])


@pytest.mark.slow
@pytest.mark.parametrize("first_in_its_row", [False, True])
def test_a_menu_opens_above_its_button_and_no_further_left_than_its_card(
    first_in_its_row: bool, browser: Browser, opened: tuple[Desk, str]
) -> None:
    """The buttons of a sound in an album stand in three rows: the menu opened above the first one, far from its own."""
    sound = keep_creation(opened[0], SpeechRequest("Kapitel"), "Kapitel.wav")
    with open_page(browser, opened[1], locale="de-DE", viewport={"width": 1400, "height": 900}) as page:
        show_album(page, opened[0], f"Buch {first_in_its_row}", [sound])
        page.get_by_role("button", name="Eigene Reihenfolge").click()
        button = page.locator("#h-shelf .h-menu summary")
        expect(page.get_by_role("button", name="Nach vorn: Kapitel")).to_be_visible()
        if first_in_its_row:
            page.add_style_tag(content=".h-menu { order: -1; }")
        button.click()
        menu = page.locator("#h-shelf .h-menu > div")
        above, below, around = (each.bounding_box() for each in (menu, button, page.locator("#h-shelf .h-does")))
        assert above and below and around
        assert above["y"] + above["height"] == pytest.approx(below["y"] - 6, abs=1)
        expect(menu).to_have_attribute("style", re.compile("--h-right"))
        above = menu.bounding_box()
        assert above
        end, least = below["x"] + below["width"], around["x"] + above["width"]
        assert above["x"] + above["width"] == pytest.approx(max(end, least), abs=1)


def test_a_menu_that_opens_above_what_is_seen_is_scrolled_to(page: Page, opened: tuple[Desk, str]) -> None:
    """Nothing was seen to happen where a card's buttons were at the window's upper edge."""
    made = [keep_creation(opened[0], SpeechRequest(f"part {each}"), f"{each}.wav") for each in range(9)]
    show_album(page, opened[0], "Parts", made)
    button = page.locator("#h-shelf .h-menu summary").first
    page.set_viewport_size({"width": 1280, "height": 500})
    button.evaluate("button => button.scrollIntoView({ block: 'start' })")
    button.press("Enter")
    expect(page.locator("#h-shelf .h-menu > div > *").locator("visible=true").first).to_be_in_viewport(ratio=1)


@pytest.mark.slow
def test_what_is_typed_or_selected_on_a_card_moves_nothing(page: Page, opened: tuple[Desk, str]) -> None:
    """Option with an arrow goes on by a word on a Mac, and a press on the words selects them."""
    open_album(page, opened[0], "Sheets", "sheet")
    page.get_by_role("button", name="Own order").click()
    cards, words = page.locator("#h-shelf .h-creation"), page.locator("#h-shelf .h-creation .h-words")
    expect(words).to_have_text(["sheet 1", "sheet 2", "sheet 3"])
    box = words.nth(1).bounding_box()
    assert box
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 40, box["y"] + box["height"] / 2, steps=6)
    page.mouse.up()
    assert page.evaluate("String(getSelection())").strip()
    menu = cards.nth(1).locator("summary")
    menu.press("Alt+ArrowLeft")
    menu.click()
    cards.nth(1).get_by_role("button", name="Rename").click()
    field = cards.nth(1).locator("form.h-asks input[type=text]")
    field.fill("two words")
    field.press("Alt+ArrowLeft")
    expect(field).to_have_value("two words")
    page.get_by_role("button", name="Move earlier: sheet 3").click()
    expect(words).to_have_text(["sheet 1", "sheet 3", "sheet 2"])
    page.get_by_role("button", name="Newest first").click()
    expect(words).to_have_text(["sheet 3", "sheet 2", "sheet 1"])


@pytest.mark.slow
def test_two_pictures_of_different_shapes_stand_side_by_side(page: Page, opened: tuple[Desk, str]) -> None:
    """The one lay beyond the other's edge, and a tall one left the screen."""
    desk = opened[0]
    wide, tall = (keep_creation(desk, PictureRequest(words), f"{words}.png") for words in ("wide", "tall"))
    for each, size in ((wide, (160, 90)), (tall, (90, 260))):
        Image.new("RGB", size, "teal").save(each.path)
    go(page, "shelf")
    for each in (wide, tall):
        page.locator(f'#h-shelf [data-key="{each.id}"] .h-pick input').check()
    page.get_by_role("button", name="Compare", exact=True).click()
    pair = page.locator("dialog.h-compare")
    expect(pair.get_by_role("slider")).to_be_hidden()
    first, second = (image.bounding_box() for image in pair.locator("img").all())
    assert first and second and first["x"] + first["width"] <= second["x"] and second["y"] + second["height"] <= 800
    expect(pair.locator("img").nth(1)).to_have_css("clip-path", "none")
    assert not shut_out(page)
