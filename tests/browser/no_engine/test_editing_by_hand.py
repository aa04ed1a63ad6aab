"""A spoken script edited on the page, and words said differently: by keyboard, and heard by whoever does not see it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from app.engine.jobs.request import SpeechRequest
from app.engine.keeper.keeper import Keeper
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from tests.support.waiting import until
from tests.support.window import await_script, go, needs_chromium, open_page, shut_out
from tests.ui.state.test_editing import TEXT, finish, speak_next

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
SCRIPT = "#speak-text textarea"
LOOK = os.environ.get("HEARTH_LOOK")
"""Pictures of the page are saved into this folder."""


@pytest.fixture(scope="module", params=[("light", "en-US", 1280), pytest.param(("dark", "en-US", 390), marks=pytest.mark.slow)])
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    scheme, locale, width = request.param
    with open_page(browser, address, locale=locale, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        yield page


@pytest.fixture
def desk(opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A Hearth whose waiting jobs wait until the test has them spoken."""
    monkeypatch.setattr(Keeper, "stop", lambda self, job: None)
    return opened[0]


def rows(page: Page) -> Locator:
    return page.locator("#h-parts .h-part")


def look(page: Page, name: str) -> None:
    if LOOK:
        page.screenshot(path=f"{LOOK}/{name}-{page.viewport_size['width']}.png")  # type: ignore[index]


def show_spoken(page: Page, desk: Desk, request: SpeechRequest) -> None:
    """Have a script spoken, and open the page anew beside its parts."""
    finish(desk, request)
    page.reload()
    await_script(page)
    go(page, "speak")


def press(page: Page, name: str, within: Locator) -> None:
    """Reach a button as a keyboard does, and press it."""
    within.get_by_role("button", name=name, exact=True).focus()
    page.keyboard.press("Enter")


def test_a_line_is_edited_by_keyboard_and_each_take_stays(page: Page, desk: Desk) -> None:
    finish(desk, SpeechRequest(TEXT))
    go(page, "speak")
    page.fill(SCRIPT, TEXT)
    expect(rows(page)).to_have_count(3)
    press(page, "Edit part 2", page.locator("#h-parts"))
    form = rows(page).nth(1).locator("form")
    words = form.get_by_role("textbox", name="Words of part 2")
    expect(words).to_be_focused()
    expect(words).to_have_value("Two is cold.")
    assert not shut_out(page)
    look(page, "editing")
    words.fill("Two is mild.")
    with page.expect_response("**/hearth/edit/speak"):
        page.keyboard.press("Control+Enter")
    expect(page.locator(SCRIPT)).to_have_value(TEXT.replace("cold", "mild"))
    speak_next(desk)
    expect(page.get_by_role("button", name="Edit part 2")).to_be_focused()
    takes = rows(page).nth(1).locator("details.h-takes")
    takes.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(takes.locator("li")).to_contain_text("Two is cold.")
    assert not shut_out(page)
    look(page, "takes")
    press(page, "Use take 1 of part 2, 0.5 s", takes)
    expect(page.locator(SCRIPT)).to_have_value(TEXT)
    expect(page.locator("#h-parts .h-editing [role=status]")).to_have_text("The take is used; the other one stays beside it.")
    speak_next(desk)
    expect(takes.locator("li")).to_contain_text("Two is mild.")
    editing = page.locator("#h-parts .h-editing")
    page.get_by_role("button", name="Edit part 2").focus()
    page.keyboard.press("Control+z")
    expect(rows(page).nth(1).locator(".h-sounding > p")).to_contain_text("Two is mild.")
    expect(page.get_by_role("button", name="Edit part 2")).to_be_focused()
    page.keyboard.press("Enter")
    words.fill("Two is hot.")
    with page.expect_response("**/hearth/edit/speak"):
        page.keyboard.press("Control+Enter")
    page.locator(SCRIPT).focus()
    speak_next(desk)
    expect(takes.locator("li", has_text="Two is mild.")).to_have_count(1)  # of the new list, which can be edited
    expect(page.locator(SCRIPT)).to_be_focused()  # whoever types there meanwhile goes on
    press(page, "Undo", editing)
    expect(page.locator(SCRIPT)).to_have_value(TEXT.replace("cold", "mild"))
    press(page, "Undo", editing)
    expect(editing.get_by_role("button", name="Undo")).to_be_hidden()
    expect(page.get_by_role("button", name="Edit part 1")).to_be_focused()


@pytest.mark.slow
def test_a_line_is_moved_as_far_as_there_are_lines(page: Page, desk: Desk) -> None:
    show_spoken(page, desk, SpeechRequest(TEXT))
    page.fill(SCRIPT, TEXT)
    press(page, "Edit part 1", page.locator("#h-parts"))
    first = rows(page).first.locator("form")
    expect(first.get_by_role("button", name="Move up")).to_be_disabled()
    expect(first.get_by_role("button", name="Move down")).to_be_enabled()
    press(page, "Move down", first)
    moved = page.get_by_role("button", name="Edit part 2")
    expect(moved).to_be_focused()
    expect(page.locator(SCRIPT)).to_have_value("[S1] Two is cold.\n\nOne is warm.\n\nThree is dry.")
    page.keyboard.press("Alt+ArrowDown")
    expect(page.get_by_role("button", name="Edit part 3")).to_be_focused()
    page.keyboard.press("Enter")
    last = rows(page).nth(2).locator("form")
    expect(last.get_by_role("button", name="Move down")).to_be_disabled()
    expect(last.get_by_role("button", name="Move up")).to_be_enabled()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit part 3")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(page.locator(SCRIPT)).to_have_value("[S1] Two is cold.\n\nOne is warm.\n\nThree is dry.")
    expect(page.get_by_role("button", name="Edit part 2")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(page.locator(SCRIPT)).to_have_value(TEXT)


@pytest.mark.slow
def test_what_was_typed_into_a_line_is_there_again_however_its_form_closed(page: Page, desk: Desk) -> None:
    show_spoken(page, desk, SpeechRequest(TEXT))
    page.fill(SCRIPT, TEXT)
    says = page.locator("#h-parts .h-editing [role=status]")
    press(page, "Edit part 1", page.locator("#h-parts"))
    first = page.get_by_role("textbox", name="Words of part 1")
    first.fill("One was warm.")
    page.keyboard.press("Escape")
    expect(says).to_have_text("What you typed in part 1 is kept: Edit shows it again.")
    press(page, "Edit part 3", page.locator("#h-parts"))
    page.get_by_role("textbox", name="Words of part 3").fill("Three rained.")
    press(page, "Edit part 1", page.locator("#h-parts"))
    expect(first).to_have_value("One was warm.")
    press(page, "Move down", rows(page).nth(0).locator("form"))
    expect(says).to_have_text("The part is moved down. What you typed in part 1 is kept: Edit shows it again.")
    expect(page.get_by_role("button", name="Edit part 2")).to_be_focused()  # the list has the new order only once the script is checked
    press(page, "Edit part 3", page.locator("#h-parts"))
    expect(page.get_by_role("textbox", name="Words of part 3")).to_have_value("Three rained.")
    press(page, "Edit part 2", page.locator("#h-parts"))
    second = page.get_by_role("textbox", name="Words of part 2")
    expect(second).to_have_value("One was warm.")
    press(page, "Change only the script", rows(page).nth(1).locator("form"))
    expect(page.locator(SCRIPT)).to_have_value("[S1] Two is cold.\n\nOne was warm.\n\nThree is dry.")
    press(page, "Edit part 3", page.locator("#h-parts"))
    third = page.get_by_role("textbox", name="Words of part 3")
    third.fill("Three is dry.")
    page.keyboard.press("Escape")
    expect(third).to_have_count(0)
    press(page, "Edit part 3", page.locator("#h-parts"))
    expect(third).to_have_value("Three is dry.")


@pytest.mark.slow
def test_what_was_typed_into_a_line_is_discarded_at_a_button(page: Page, desk: Desk) -> None:
    show_spoken(page, desk, SpeechRequest(TEXT))
    page.fill(SCRIPT, "My own words, of which no part knows.")
    expect(page.get_by_role("button", name="Put the script of these parts back to edit them")).to_be_visible()
    page.fill(SCRIPT, TEXT)
    press(page, "Edit part 2", page.locator("#h-parts"))
    form, words = rows(page).nth(1).locator("form"), page.get_by_role("textbox", name="Words of part 2")
    discard = form.get_by_role("button", name="Discard", exact=True)
    expect(words).to_be_focused()
    expect(discard).to_be_hidden()  # nothing is typed yet
    words.fill("Two was hot.")
    page.keyboard.press("Escape")
    press(page, "Edit part 2", page.locator("#h-parts"))
    expect(words).to_have_value("Two was hot.")
    assert not shut_out(page)
    press(page, "Discard", form)
    expect(page.locator("#h-parts .h-editing [role=status]")).to_have_text("What you typed in part 2 is discarded.")
    expect(page.get_by_role("button", name="Edit part 2")).to_be_focused()
    page.keyboard.press("Enter")
    expect(words).to_have_value("Two is cold.")
    expect(page.locator(SCRIPT)).to_have_value(TEXT)


def test_of_two_equal_lines_only_the_one_has_what_was_typed_into_it(page: Page, desk: Desk) -> None:
    equal = "[S1] It is cold.\n\nIt is cold.\n\nThree is dry."
    show_spoken(page, desk, SpeechRequest(equal))
    page.fill(SCRIPT, equal)
    expect(rows(page).filter(has_text="It is cold.")).to_have_count(2)
    press(page, "Edit part 1", page.locator("#h-parts"))
    page.get_by_role("textbox", name="Words of part 1").fill("It is mild.")
    press(page, "Edit part 2", page.locator("#h-parts"))
    expect(page.get_by_role("textbox", name="Words of part 2")).to_have_value("It is cold.")
    look(page, "kept")
    press(page, "Edit part 1", page.locator("#h-parts"))
    expect(page.get_by_role("textbox", name="Words of part 1")).to_have_value("It is mild.")


@pytest.mark.slow
def test_undo_brings_the_pronunciations_back_and_keeps_the_script_it_replaces(page: Page, desk: Desk) -> None:
    show_spoken(page, desk, SpeechRequest(TEXT, pronunciations=(("cold", "kohld"),)))
    own = "My own words, of which no part knows."
    page.fill(SCRIPT, own)
    page.locator("#speak-says textarea, #speak-says input").evaluate(
        "(field) => { field.value = '{\"words\": \"wurds\"}'; field.dispatchEvent(new Event('input')); }"
    )
    press(page, "Put the script of these parts back to edit them", page.locator("#h-parts"))
    expect(page.locator(SCRIPT)).to_have_value(TEXT)
    field = page.locator("#speak-says textarea, #speak-says input")
    expect(field).to_have_value('{"cold": "kohld"}')
    press(page, "Undo", page.locator("#h-parts .h-editing"))
    expect(page.locator(SCRIPT)).to_have_value(own)
    expect(field).to_have_value('{"words": "wurds"}')
    page.fill(SCRIPT, "")
    page.get_by_role("button", name="Earlier text").first.click()
    expect(page.locator(SCRIPT)).to_have_value(own)
    field.evaluate("(field) => { field.value = ''; field.dispatchEvent(new Event('input')); }")


@pytest.mark.slow
def test_the_shelf_has_one_card_for_a_script_that_is_edited(page: Page, desk: Desk) -> None:
    finish(desk, SpeechRequest(TEXT))
    for words in ("mild", "hot"):
        desk.jobs.speak_changed(TEXT.replace("cold", words), OWNER)
        speak_next(desk)
    go(page, "shelf")
    cards = page.locator("#h-shelf .h-creation", has_text="Two is")
    expect(cards.first).to_be_visible()
    before = cards.count()
    page.get_by_role("button", name="2 earlier results").first.focus()
    page.keyboard.press("Enter")
    fold = page.get_by_role("button", name="2 earlier results").first
    expect(fold).to_have_attribute("aria-expanded", "true")
    expect(fold).to_be_focused()
    expect(cards).to_have_count(before + 2)
    for card, words in enumerate(("hot", "mild", "cold")):
        expect(cards.nth(card).locator(".h-words")).to_contain_text(f"Two is {words}.")
    assert not shut_out(page)
    look(page, "earlier")
    held: list[Route] = []
    page.route("**/hearth/shelf?earlier=*", lambda route: held.append(route))
    page.locator("#h-shelf .h-star").first.click()  # draws the page anew, and asks again for what is unfolded
    until(lambda: page.wait_for_timeout(50) or bool(held))
    fold.focus()
    page.keyboard.press("Enter")
    expect(cards).to_have_count(before)
    expect(fold).to_have_attribute("aria-expanded", "false")
    with page.expect_response("**/hearth/shelf?earlier=*") as late:
        held[0].continue_()
    late.value.finished()
    page.unroute("**/hearth/shelf?earlier=*")
    page.evaluate("new Promise((settled) => setTimeout(settled))")
    expect(cards).to_have_count(before)
    expect(fold).to_be_focused()


def test_a_word_is_said_differently_by_keyboard(page: Page, desk: Desk) -> None:
    page.route("**/hearth/says/hear", lambda route: route.fulfill(body=b"RIFF", content_type="audio/wav"))
    go(page, "speak")
    page.fill(SCRIPT, "[Anna] It is late. [Ben] Then Siobhan came. She is here.")
    script = page.locator(SCRIPT)
    script.focus()
    script.evaluate("field => { const at = field.value.indexOf('Siobhan'); field.setSelectionRange(at, at + 7); }")
    offer = page.get_by_role("button", name="Say \u201cSiobhan\u201d differently")
    expect(offer).to_be_visible()
    page.keyboard.press("Tab")
    expect(offer).to_be_focused()
    page.keyboard.press("Enter")
    shelf = page.locator("#h-says")
    expect(shelf.get_by_role("textbox", name="Word")).to_have_value("Siobhan")
    spoken = shelf.get_by_role("textbox", name="Spoken as")
    expect(spoken).to_be_focused()
    page.keyboard.type("Shivawn")
    with page.expect_request("**/hearth/says/hear") as heard:
        press(page, "Hear it", shelf.locator("form"))
    asked = heard.value.post_data_json
    assert asked is not None and asked["near"] == "[Ben] Then Siobhan came." and asked["at"] == 30 and "Anna" in asked["text"]
    spoken.focus()
    page.keyboard.press("Enter")
    expect(shelf.locator(".h-told")).to_contain_text("Siobhan is said so in this script.")
    row = shelf.locator("li")
    expect(row).to_contain_text("Shivawn")
    expect(shelf.locator("summary")).to_have_text("Pronunciations (1 in this script)")
    expect(page.locator(".h-turns")).to_contain_text("Then Shivawn came.")
    assert not shut_out(page)
    look(page, "says")
    press(page, "Delete: Siobhan", shelf)
    expect(row).to_have_count(0)
    press(page, "Undo", shelf.locator(".h-told"))
    expect(row).to_contain_text("Shivawn")
    until(lambda: "Shivawn" in json.dumps(desk.settings.get("speak", {})))
    page.unroute("**/hearth/says/hear")
