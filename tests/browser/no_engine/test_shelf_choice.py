"""What is chosen of the Shelf: by days, with words; and all of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app.base import atomic_write
from app.engine.jobs.request import PictureRequest
from app.ui.state.desk import Desk
from app.ui.tabs import albums
from app.ui.tabs.shelf import PAGE
from tests.browser.no_engine.test_after_trouble import show
from tests.support.both_servers import keep_creation
from tests.support.window import go, needs_chromium, open_page, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def dated(opened: tuple[Desk, str]) -> Iterator[None]:
    """Two creations of May 2024; others are of today."""
    desk, made = opened[0], []
    for name, when in (("a fox", datetime(2024, 5, 2, 12)), ("an owl", datetime(2024, 5, 10, 23, 30))):
        made.append(keep_creation(desk, PictureRequest(name), f"{name}.png"))
        desk.keeper.database.write("UPDATE creations SET created_s=? WHERE id=?", when.timestamp(), made[-1].id)
    yield
    for each in made:
        desk.keeper.shelf.delete(each.id)


@pytest.mark.slow
@pytest.mark.usefixtures("dated")
def test_the_days_between_two_are_shown_and_counted(page: Page) -> None:
    go(page, "shelf")
    since, until = page.get_by_label("Show what was made from this day on"), page.get_by_label("Show what was made up to this day")
    found, none, cards = page.locator("#h-shelf .h-count"), page.locator("#h-shelf .h-none"), page.locator("#h-shelf .h-creation")
    expect(cards).to_have_count(4)
    expect(found).to_have_text("")
    since.fill("2024-05-03")
    expect(found).to_have_text("3 creations found")
    until.fill("2024-05-10")
    expect(found).to_have_text("1 creation found")
    expect(cards.locator(".h-words")).to_have_text("an owl")
    until.fill("2024-05-09")
    expect(none).to_have_text("No matching creations.")
    expect(found).to_have_text("")
    until.fill("2024-05-02")  # before the other: what lies between them is meant
    expect(cards.locator(".h-words")).to_have_text("a fox")
    expect(since).to_have_value("2024-05-03")
    page.get_by_role("searchbox", name="Search your creations").fill("fox")
    expect(since).to_have_value("2024-05-02")
    expect(until).to_have_value("2024-05-03")
    expect(found).to_have_text("1 creation found")
    page.get_by_role("searchbox", name="Search your creations").fill("owl")
    expect(none).to_have_text("No matching creations.")
    since.fill("0002-05-02")  # a year that is still being typed
    until.fill("9999-12-31")
    expect(found).to_have_text("1 creation found")


@pytest.mark.slow
@pytest.mark.usefixtures("dated")
def test_two_days_stand_in_one_line_of_a_phone(browser: Browser, address: str) -> None:
    with open_page(browser, address, locale="en-US", viewport={"width": 390, "height": 844}, reduced_motion="reduce") as page:
        go(page, "shelf")
        days = page.locator("#h-shelf .h-days input")
        expect(days).to_have_count(2)
        first, second = (days.nth(place).bounding_box() for place in range(2))
        assert first and second and first["y"] == second["y"] and second["x"] + second["width"] <= 390
        assert not shut_out(page)


def test_all_of_an_album_is_selected_exported_tagged_and_moved(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is on no page yet, in as many steps as it takes."""
    desk = opened[0]
    made = [keep_creation(desk, PictureRequest(f"boat {place}"), f"{place}.png") for place in range(PAGE + 2)]
    desk.keeper.gallery.put(made, desk.keeper.gallery.make_album("Boats"))
    monkeypatch.setattr(albums, "AT_ONCE_MOST", 50)
    go(page, "shelf")
    page.locator(".h-album-pick").select_option("Boats (62)")
    cards, picked, every = page.locator("#h-shelf .h-creation"), page.locator("#h-shelf .h-picked"), page.locator("#h-shelf .h-pick-all")
    expect(cards).to_have_count(PAGE)
    every.get_by_role("button", name="Select all 62").press("Enter")
    expect(picked.locator("p[role=status]")).to_have_text("62 selected")
    expect(every).to_be_hidden()
    expect(picked.get_by_role("button", name="Select none")).to_be_focused()
    links = picked.locator(".h-zip")
    expect(links).to_have_text(["Export 1 to 50 of 62 as a zip", "Export 51 to 62 of 62 as a zip"])
    sent = [links.nth(place).get_attribute("href") or "" for place in range(2)]
    assert sorted(id_ for each in sent for id_ in each.partition("ids=")[2].split(",")) == sorted(str(each.id) for each in made)
    picked.get_by_role("button", name="Add tags").click()
    page.keyboard.type("fleet")
    page.keyboard.press("Enter")
    expect(page.locator(".h-tag-row button")).to_have_text("fleet")
    assert {desk.keeper.gallery.read_marks(made)[each.id].tags for each in made} == {("fleet",)}
    cards.first.get_by_role("checkbox").uncheck()
    expect(every.get_by_role("button", name="Select all 62")).to_be_visible()
    picked.get_by_role("button", name="Delete 61").click()
    expect(cards).to_have_count(1)
    expect(picked).to_be_hidden()
    page.get_by_role("button", name="Undo").click()
    expect(cards).to_have_count(PAGE)
    every.get_by_role("button", name="Select all 62").click()
    picked.get_by_role("button", name="Delete 62").click()
    expect(page.locator("#h-shelf .h-none")).to_have_text("No matching creations.")
    expect(every).to_be_hidden()
    page.locator("#h-shelf .h-bin").check()
    every.get_by_role("button", name="Select all 62").click()
    page.locator("#h-shelf .h-bin").uncheck()
    expect(picked).to_be_hidden()
    page.locator("#h-shelf .h-bin").check()
    every.get_by_role("button", name="Select all 62").click()
    picked.get_by_role("button", name="Restore 62").click()
    expect(page.locator("#h-shelf .h-none")).to_have_text("No matching creations.")
    assert not any(desk.keeper.shelf.get(each.id).binned for each in made)
    page.locator("#h-shelf .h-bin").uncheck()
    expect(cards).to_have_count(PAGE)


@pytest.mark.slow
def test_a_selection_that_can_be_moved_in_part_is_so_far(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo knows what was moved; what stays is still selected."""
    desk, real = opened[0], atomic_write.put_in_place
    made = [keep_creation(desk, PictureRequest(f"barge {each}"), f"barge{each}.png") for each in range(3)]

    def refuse(file: Path, path: Path) -> None:
        if file == made[1].path:
            raise PermissionError(13, "in use")
        real(file, path)

    page.reload()
    go(page, "shelf")
    page.locator("#h-shelf input[type=search]").fill("barge")
    cards, picked = page.locator("#h-shelf .h-creation"), page.locator("#h-shelf .h-picked")
    expect(cards).to_have_count(3)
    page.get_by_role("button", name="Select all 3").click()
    with monkeypatch.context() as patched:
        patched.setattr(atomic_write, "put_in_place", refuse)
        picked.get_by_role("button", name="Delete 3").click()
        expect(cards).to_have_count(1)
    expect(page.locator("#h-shelf .h-trouble")).to_contain_text("could not be moved")
    undo = page.locator("#h-shelf .h-undo")
    expect(undo.get_by_role("status")).to_have_text("Moved to the bin: 2.")  # without the button, whose name the focus says
    expect(undo.get_by_role("button", name="Undo")).to_be_focused()
    expect(picked.locator("p[role=status]")).to_have_text("1 selected")
    undo.get_by_role("button").click()
    expect(cards).to_have_count(3)
    page.route("**/hearth/shelf/all?*", lambda route: route.abort())
    page.get_by_role("button", name="Select all 3").click()
    expect(page.locator("#h-shelf .h-trouble")).to_contain_text("did not respond")
    page.unroute("**/hearth/shelf/all?*")


@pytest.mark.slow
def test_a_guest_takes_back_what_went_to_the_bin(page: Page, opened: tuple[Desk, str]) -> None:
    """By the address that guests have, too."""
    kept = keep_creation(opened[0], PictureRequest("a dinghy"), "dinghy.png")
    page.reload()
    go(page, "shelf")
    show(page, charts=None)
    page.wait_for_function("!Hearth.live.state.charts")
    page.locator("#h-shelf input[type=search]").fill("dinghy")
    card = page.locator("#h-shelf .h-creation")
    expect(card).to_have_count(1)
    with page.expect_request(f"**/hearth/shelf/{kept.id}/delete"):
        card.locator(".h-delete").click()
    with page.expect_request(f"**/hearth/shelf/{kept.id}/restore"):
        page.locator("#h-shelf .h-undo button").click()
    expect(card).to_have_count(1)
    assert not opened[0].keeper.shelf.get(kept.id).binned
