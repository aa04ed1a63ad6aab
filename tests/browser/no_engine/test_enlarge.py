"""Enlarge on the Shelf, by keyboard: asked, shown while it runs, stopped, and the larger picture beside its origin."""

from __future__ import annotations

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from app.compat.machine.meter import Reading
from app.engine.jobs.events import Finished, Step
from app.engine.jobs.request import PictureRequest
from app.ui.state.desk import Desk
from tests.support.both_servers import keep_creation
from tests.support.waiting import until
from tests.support.window import go, needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def test_a_picture_of_the_shelf_is_enlarged(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    boat = keep_creation(desk, PictureRequest("a large boat", seed=7), "b.png")
    go(page, "shelf")
    card = page.locator(f'#h-shelf [data-key="{boat.id}"]')
    card.locator(".h-menu summary").click()
    card.get_by_role("button", name="Enlarge", exact=True).click()
    dialog = page.get_by_role("dialog", name="Enlarge")
    expect(dialog.get_by_label("Size")).to_be_focused()
    expect(dialog.get_by_label("Size").locator("option")).to_have_text(["2x: 16 × 16", "4x: 32 × 32"])
    dialog.get_by_label("Size").select_option("4")
    dialog.get_by_label("Enlarger").select_option("")
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Enlarge", exact=True).click()
    expect(dialog).to_have_count(0)
    task = desk.enlarging.tasks[boat.id]
    desk.keeper.board.post(task, Step(1, 4, 1.0, "tiles", 3.0, Reading()))
    expect(card.get_by_role("button", name="Stop enlarging (25%)")).to_be_visible()
    folder = desk.keeper.folder(task)
    folder.mkdir(parents=True)
    Image.new("RGB", (32, 32), "teal").save(folder / "enlarged.png")
    desk.keeper.board.post(task, Finished((str(folder / "enlarged.png"),), 1.0, 0.0, "tiles", 0))
    until(lambda: len(desk.keeper.shelf.list_of_job(boat.job)) == 2)
    made = desk.keeper.shelf.list_of_job(boat.job)[1]
    expect(page.locator(f'#h-shelf [data-key="{made.id}"] .h-facts')).to_contain_text("32 × 32")
    expect(card.locator(".h-larger")).to_have_count(0)


@pytest.mark.slow
def test_enlarging_is_stopped_where_it_is_shown(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    boat = keep_creation(desk, PictureRequest("a boat to leave", seed=7), "b.png")
    desk.enlarging.begin(boat, 2, "")
    go(page, "shelf")
    page.locator(f'#h-shelf [data-key="{boat.id}"]').get_by_role("button", name="Stop enlarging (0%)").click()
    until(lambda: not desk.enlarging.tasks)
    expect(page.locator(f'#h-shelf [data-key="{boat.id}"] .h-larger')).to_have_count(0)
    assert desk.keeper.shelf.list_of_job(boat.job) == [boat]
