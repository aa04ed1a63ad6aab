"""Around the prompt: earlier ones by key, styles, a list painted line by line; and the Shelf's albums, tags and pictures in full."""

from __future__ import annotations

import dataclasses

import pytest
from playwright.sync_api import Page, expect

from app.engine.jobs.request import PictureRequest
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER, Person
from app.ui.tabs import paint_view
from tests.support.both_servers import keep_creation
from tests.support.window import go, shut_out, until_seen


@pytest.mark.slow
def test_earlier_prompts_come_back_by_key_after_a_reload(page: Page, opened: tuple[Desk, str]) -> None:
    go(page, "paint")
    field = page.locator("#paint-prompt textarea")
    for words in ("a red fox", "a blue owl"):
        field.fill(words)
        page.click("#paint-go")
        until_seen(page, lambda words=words: words in opened[0].settings.get("drafts", {}).get("paint-prompt-used", []))
    field.fill("half a")
    field.press("Control+ArrowUp")
    expect(field).to_have_value("a blue owl")
    field.press("Alt+ArrowUp")
    expect(field).to_have_value("a red fox")
    field.press("Alt+ArrowUp")  # the oldest
    for words in ("a blue owl", "half a"):
        field.press("Alt+ArrowDown")
        expect(field).to_have_value(words)
    with page.expect_response("**/hearth/drafts"):
        page.reload()
    go(page, "paint")
    field.press("Control+ArrowUp")
    expect(field).to_have_value("a blue owl")


@pytest.mark.slow
def test_a_style_is_saved_and_put_around_the_prompt(page: Page, opened: tuple[Desk, str]) -> None:
    go(page, "paint")
    field, styles = page.locator("#paint-prompt textarea"), page.get_by_role("combobox", name="Styles")
    field.fill("")
    styles.select_option("Save and change styles…")
    dialog = page.get_by_role("dialog", name="Styles")
    dialog.get_by_label("Name").fill("Ink")
    dialog.get_by_label("Text").fill("ink drawing of {prompt}, on paper")
    dialog.get_by_label("Not wanted").fill("colour")
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_role("button", name="Ink", exact=True).wait_for()
    assert not shut_out(page)
    page.keyboard.press("Escape")
    field.fill("a fox")
    styles.select_option("Ink")
    expect(field).to_have_value("ink drawing of a fox, on paper")
    expect(page.locator("#paint-negative :is(textarea, input)")).to_have_value("colour")
    page.locator(".h-rewritten button").click()
    expect(field).to_have_value("a fox")
    assert opened[0].settings.get("styles") == {"Ink": {"prompt": "ink drawing of {prompt}, on paper", "negative": "colour"}}


@pytest.mark.slow
def test_a_style_goes_around_each_line_of_a_list(page: Page, opened: tuple[Desk, str]) -> None:
    """Of a list, the first line had what stands before the prompt, and the last what stands behind it."""
    opened[0].settings.put({"styles": {"Ink": {"prompt": "ink drawing of {prompt}, on paper", "negative": ""}}})
    page.reload()
    go(page, "paint")
    field, styles, note = page.locator("#paint-prompt textarea"), page.get_by_role("combobox", name="Styles"), page.locator(".h-rewritten")
    field.fill("a fox\n\nan owl")
    styles.select_option("Ink")
    expect(field).to_have_value("ink drawing of a fox\n\nan owl, on paper")
    note.get_by_role("button", name="Around each of the 2 lines instead").click()
    expect(field).to_have_value("ink drawing of a fox, on paper\nink drawing of an owl, on paper")
    expect(note.get_by_role("button")).to_have_text(["Undo"])
    note.get_by_role("button", name="Undo").click()
    expect(field).to_have_value("a fox\n\nan owl")
    field.fill("a fox")
    styles.select_option("Ink")
    expect(note.get_by_role("button")).to_have_text(["Undo"])


def test_each_line_of_a_list_becomes_a_picture(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    counted = list[int]()

    def count(desk: Desk, request: PictureRequest, person: Person, spoken: str, lines: int = 1) -> str:
        counted.append(lines)
        return ""

    monkeypatch.setattr(paint_view, "forecast_html", count)
    go(page, "paint")
    desk, offer = opened[0], page.locator("#h-prompts .h-lines")
    page.fill("#paint-prompt textarea", "one fox")
    expect(offer).to_be_hidden()
    page.fill("#paint-prompt textarea", "a grey fox\na grey owl")
    until_seen(page, lambda: counted[-1:] == [2])  # what is told under it is of so many
    page.fill("#paint-prompt textarea", "a grey fox\n\n  a grey owl\na grey cat")
    expect(offer).to_have_text("Paint each of the 3 lines as its own picture")
    offer.click()
    until_seen(page, lambda: len(desk.jobs.listed) == 3)
    asked = [desk.keeper.journal.get(each).request for each in desk.jobs.listed]
    assert [each.words for each in asked] == ["a grey fox", "a grey owl", "a grey cat"]
    assert len({repr(dataclasses.replace(each, prompt="one")) for each in asked if isinstance(each, PictureRequest)}) == 1


@pytest.mark.slow
def test_what_is_left_of_a_stopped_list_goes_on_together(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that was stopped in the middle was gone: what had waited was neither told nor brought back."""
    desk, resumed = opened[0], list[str]()
    monkeypatch.setattr(type(desk.jobs), "resume", lambda _, job: resumed.append(job))
    go(page, "paint")
    desk.jobs.begin_list([PictureRequest(f"a red {each}") for each in ("fox", "owl", "cat")], OWNER)
    for job in reversed(desk.jobs.listed):
        desk.keeper.stop(job)
    left = page.locator(f'#h-canvas .h-resume button[data-job="{",".join(desk.jobs.listed)}"]')  # not the button of the list before
    expect(left).to_have_text("Paint the 3 pictures of the list that are left")
    left.click()
    until_seen(page, lambda: resumed == [*desk.jobs.listed])


@pytest.mark.slow
def test_all_pictures_of_a_list_are_shown_and_one_is_brought_up(page: Page, opened: tuple[Desk, str]) -> None:
    """Only the last line's picture was there when a list had ended."""
    desk = opened[0]
    go(page, "paint")
    desk.jobs.begin_list([PictureRequest(f"a green {each}") for each in ("fox", "owl", "cat")], OWNER)
    until_seen(page, lambda: not desk.keeper.journal.list_waiting())
    fox, owl = (keep_creation(desk, PictureRequest("?"), f"{job}.png", of=job) for job in desk.jobs.listed[:2])
    thumbs, full = page.locator("#h-canvas .h-thumb"), page.locator("#h-canvas .h-easel img")
    expect(thumbs).to_have_count(2)
    expect(full).to_have_attribute("src", f"hearth/creation/{owl.id}")
    thumbs.first.click()
    expect(full).to_have_attribute("src", f"hearth/creation/{fox.id}")
    expect(thumbs.first).to_have_attribute("aria-pressed", "true")
    assert not shut_out(page)
    page.locator("#h-canvas .h-enlarge").click()
    expect(page.get_by_role("dialog", name="Picture in full").get_by_role("status")).to_contain_text("1 of 2")


@pytest.mark.slow
def test_pictures_are_put_into_an_album_and_looked_at_by_key(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    boat, sea = (keep_creation(desk, PictureRequest(words), f"{words}.png") for words in ("boat", "sea"))
    go(page, "shelf")
    cards = page.locator("#h-shelf .h-creation")
    for each in (boat, sea):
        page.locator(f'#h-shelf [data-key="{each.id}"] .h-pick input').check()
    page.get_by_role("combobox", name="Put into an album").select_option("New album…")
    page.get_by_role("textbox", name="Name of the album").fill("Harbour")
    page.keyboard.press("Enter")
    page.get_by_role("combobox", name="Album", exact=True).select_option(label="Harbour (2)")
    expect(cards).to_have_count(2)
    cards.first.get_by_text("More", exact=True).click()
    cards.first.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Name of this creation").fill("At dawn")
    page.keyboard.press("Enter")
    expect(cards.first.locator(".h-named")).to_have_text("At dawn")
    assert not shut_out(page)
    page.locator(f'#h-shelf [data-key="{sea.id}"] .h-look').click()
    full = page.get_by_role("dialog", name="Picture in full")
    expect(full.locator(".h-words")).to_have_text("At dawn")
    page.keyboard.press("ArrowRight")
    expect(full.locator(".h-words")).to_have_text("boat")
    expect(full.get_by_role("status")).to_contain_text("2 of 2 · 8 × 8")
    page.keyboard.press("+")
    expect(full.locator(".h-stage")).to_have_class("h-stage h-zoomed")
    assert not shut_out(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("slider", name="Position of the dividing line").press("Home")
    expect(page.locator(".h-over img").nth(1)).to_have_css("clip-path", "inset(0px 0px 0px 0%)")
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Album", exact=True).select_option(label="all albums")
    expect(page.locator(f'#h-shelf [data-key="{boat.id}"]')).to_be_visible()
