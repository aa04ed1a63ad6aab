"""What is chosen of the Shelf: by days, with words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from playwright.sync_api import Browser, Page, expect

from app.engine.jobs.request import PictureRequest
from app.ui.state.desk import Desk
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


@pytest.mark.usefixtures("dated")
def test_the_days_between_two_are_shown_and_counted(page: Page) -> None:
    go(page, "shelf")
    since, until = page.get_by_label("Show what was made from this day on"), page.get_by_label("Show what was made up to this day")
    found, none, cards = page.locator("#h-shelf .h-found"), page.locator("#h-shelf .h-none"), page.locator("#h-shelf .h-creation")
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


@pytest.mark.usefixtures("dated")
def test_two_days_stand_in_one_line_of_a_phone(browser: Browser, address: str) -> None:
    with open_page(browser, address, locale="en-US", viewport={"width": 390, "height": 844}, reduced_motion="reduce") as page:
        go(page, "shelf")
        days = page.locator("#h-shelf .h-days input")
        expect(days).to_have_count(2)
        first, second = (days.nth(place).bounding_box() for place in range(2))
        assert first and second and first["y"] == second["y"] and second["x"] + second["width"] <= 390
        assert not shut_out(page)
