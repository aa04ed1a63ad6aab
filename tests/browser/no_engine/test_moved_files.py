"""Pictures that move while a page looks at them, or are gone: no tab asks for a file that is not there, and the console stays empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from app.engine.jobs.creation import Creation
from app.engine.jobs.events import Finished, PartDone
from app.engine.jobs.request import PictureRequest
from app.engine.keeper.job_folder import move_to_shelf
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from tests.support.window import WAIT_MS, go, needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.fixture
def page(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    """A page whose console must stay empty."""
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(f"{message.text} {message.location['url']}") if message.type == "error" else None)
    page.set_default_timeout(WAIT_MS)
    page.goto(opened[1])
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    yield page
    context.close()
    assert not said


def paint(desk: Desk, count: int = 2) -> tuple[str, tuple[PartDone, ...]]:
    """A job that has painted pictures, which still lie in its folder."""
    job = desk.keeper.journal.queue(PictureRequest("a house", batch=count), desk.machine.read_choice(OWNER))
    desk.keeper.journal.withdraw(job.id)
    (folder := desk.keeper.folder(job.id)).mkdir(parents=True)
    desk.keeper.board.open(job.id)
    parts = tuple(PartDone(each, count, str(folder / f"picture-{each}.png"), "a house", each, 0.0) for each in range(count))
    for part in parts:
        Image.new("RGB", (64, 64), ("red", "blue")[part.index % 2]).save(part.path)
        desk.keeper.board.post(job.id, part)
    desk.jobs.latest[OWNER.name, "picture"] = job.id
    return job.id, parts


def shelve(desk: Desk, job: str, parts: tuple[PartDone, ...]) -> list[Creation]:
    """What the end of a job does."""
    end = Finished(tuple(part.path for part in parts), 1.0, 1.0, "steps", 0)
    row = desk.keeper.journal.get(job)
    end_ = move_to_shelf(desk.keeper.shelf, row, end, desk.keeper.get_progress(job), desk.keeper.folder(job))
    desk.keeper.board.post(job, end_)
    return desk.keeper.shelf.list_of_job(job)


@pytest.mark.slow
def test_a_page_that_was_told_of_a_picture_gets_it_after_it_has_moved(page: Page, opened: tuple[Desk, str]) -> None:
    """The page looks once a second; what it was told the last time lies on the shelf a moment later."""
    desk = opened[0]
    job, parts = paint(desk)
    go(page, "paint")
    page.wait_for_function("Hearth.live.state.picture?.parts.length === 2")
    told = page.evaluate("Hearth.live.state.picture.parts.map((each) => each.url)")
    kept = shelve(desk, job, parts)
    for url, each in zip(told, kept, strict=True):
        got = page.evaluate("async (url) => [...new Uint8Array(await (await fetch(url, { cache: 'reload' })).arrayBuffer())]", url)
        assert bytes(got) == each.path.read_bytes()
    expect(page.locator("#h-canvas .h-easel img")).to_have_attribute("src", f"hearth/creation/{kept[-1].id}")


@pytest.mark.slow
def test_what_was_deleted_for_good_is_asked_for_no_more(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    kept = shelve(desk, *paint(desk))
    go(page, "shelf")
    for each in kept:
        page.locator(f'#h-shelf [data-key="{each.id}"]').get_by_role("button", name="Delete").click()
        expect(page.locator(f'#h-shelf [data-key="{each.id}"]')).to_have_count(0)
    go(page, "paint")
    image = page.locator("#h-canvas .h-easel img")
    expect(image).to_have_attribute("src", f"hearth/creation/{kept[-1].id}")
    page.wait_for_function("document.querySelector('#h-canvas .h-easel img').naturalWidth === 64")  # from the bin
    go(page, "shelf")
    page.get_by_role("checkbox", name="bin").check()
    page.get_by_role("button", name="Empty bin").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Empty bin").click()
    expect(page.locator("#h-shelf .h-creation")).to_have_count(0)
    go(page, "paint")
    expect(page.locator("#h-canvas .h-easel")).to_have_text("Your picture will appear here, starting with the first steps.")
    expect(image).to_be_hidden()
    expect(page.locator("#h-canvas .h-thumb")).to_have_count(0)


@pytest.mark.slow
def test_a_file_taken_away_by_hand_is_told_and_not_asked_for(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    first, second = shelve(desk, *paint(desk))
    go(page, "shelf")
    for each in (first, second):
        expect(page.locator(f'#h-shelf [data-key="{each.id}"] img')).to_be_visible()
    page.wait_for_function("[...document.images].every((each) => each.complete)")  # none is still being fetched
    Path(first.path).unlink()
    page.reload()
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    go(page, "shelf")
    card = page.locator("#h-shelf .h-creation", has_text="file missing")
    expect(card).to_have_count(1)
    expect(card.locator("img, .h-player")).to_have_count(0)
    expect(card.get_by_role("link", name="Download")).to_have_count(0)
    go(page, "paint")
    expect(page.locator("#h-canvas .h-easel img")).to_have_attribute("src", f"hearth/creation/{second.id}")
    expect(page.locator("#h-canvas .h-thumb")).to_have_count(0)
