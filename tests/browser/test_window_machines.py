"""Several machines in a real browser: two windows pair and work together, a helper is killed, and what a keyboard and a screen reader find."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import gradio as gr
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.engine.keeper import worker

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import assets, home
from app.engine.jobs.events import END, Finished
from app.engine.jobs.request import PictureRequest
from app.engine.keeper.keeper import Keeper
from app.machines.nearby import Announcement, Seen
from app.ui import launch, process_limits
from app.ui.launch import LaunchOptions
from app.ui.state.desk import Desk
from app.ui.state.settings import Settings
from tests.support import light_painter
from tests.support.lent import Helper, start
from tests.support.light_painter import pace
from tests.support.waiting import LOADING_S, until
from tests.support.window import WAIT_MS, go, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.long, needs_chromium]
LOADING_MS = LOADING_S * 1000


@contextmanager
def serve(folder: Path) -> Iterator[tuple[Desk, str]]:
    """A window whose engine is the light painter."""
    place = home(folder).create()
    process_limits.prepare_environment(place)
    keeper = Keeper(place)
    desk = Desk(keeper, Settings(place.settings))
    desk.settings.put({"greeted": True})
    try:
        yield desk, launch.start_server(LaunchOptions(place), desk, None, [], launch.build_guards(place)[0])
    finally:
        desk.others.close()
        keeper.close()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[tuple[Desk, str], tuple[Desk, str]]]:
    """A window that is helped, and one that helps."""
    patched, before, folder = worker.main, Path.cwd(), tmp_path_factory.mktemp("two")
    worker.main = light_painter.main
    try:
        with serve(folder / "main") as main, serve(folder / "helper") as helper:
            yield main, helper
    finally:
        gr.close_all(verbose=False)
        worker.main = patched
        os.chdir(before)


@pytest.fixture
def pages(browser: Browser, two: tuple[tuple[Desk, str], tuple[Desk, str]]) -> Iterator[list[Page]]:
    """The Machine tab of each window."""
    contexts = [browser.new_context(locale="en-US", permissions=["clipboard-read", "clipboard-write"]) for _ in two]
    made, faults = list[Page](), list[str]()
    for context, (_, address) in zip(contexts, two, strict=True):
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(address)
        page.wait_for_selector("#h-strip .h-doing:not(:empty)")
        go(page, "machine")
        made.append(page)
    yield made
    for context in contexts:
        context.close()
    assert not faults


def place(page: Page) -> Locator:
    return page.locator("#h-machines")


def switch_on(page: Page) -> None:
    switch = place(page).get_by_role("switch", name="Use other computers")
    if not switch.is_checked():
        switch.focus()
        page.keyboard.press("Space")
    expect(place(page).get_by_role("button", name="Add a computer")).to_be_visible(timeout=LOADING_MS)


def show_code(page: Page) -> str:
    place(page).get_by_role("button", name="Add a computer").click()
    code = place(page).locator(".h-code code")
    expect(code).to_be_visible()
    return code.inner_text()


def paint(desk: Desk, words: str, batch: int) -> str:
    return desk.keeper.submit(PictureRequest(words, model="starter-painter", batch=batch, seed=1)).id


@pytest.mark.slow
def test_two_windows_pair_and_work_together(two: tuple[tuple[Desk, str], tuple[Desk, str]], pages: list[Page]) -> None:
    (main, _), (helper, _) = two
    ours, theirs = pages
    switch_on(ours)
    expect(place(ours)).to_contain_text("No other computer helps yet.")
    code = show_code(ours)
    assert place(ours).locator(".h-qr svg").is_visible()
    assert not shut_out(ours)
    place(ours).locator(".h-code").get_by_role("button", name="Copy").click()
    assert ours.evaluate("navigator.clipboard.readText()") == code

    field = place(theirs).get_by_role("textbox", name="The other computer's code")
    place(theirs).get_by_role("button", name="Help", exact=True).click()
    expect(place(theirs).get_by_role("alert")).to_contain_text("Type the code that the other computer shows")
    field.fill("nonsense")
    field.press("Enter")
    expect(place(theirs).get_by_role("alert")).to_contain_text("nonsense is not a code of Hearth's.")
    field.fill(code)
    field.press("Enter")
    doing, row = place(theirs).locator(".h-doing"), place(ours).locator(".h-helpers li")
    expect(doing).to_contain_text("Ready to help", timeout=LOADING_MS)
    expect(row.locator(".h-badge")).to_have_text("ready", timeout=LOADING_MS)
    expect(row).to_contain_text("light helper")
    expect(place(ours).locator(".h-code")).to_be_hidden()
    expect(place(ours).locator(".h-news")).to_contain_text("can now help.")
    expect(place(theirs).locator(".h-lend")).to_be_hidden()
    assert not shut_out(ours) and not shut_out(theirs)

    for desk in (main, helper):
        pace(desk.keeper.home.root, step_s=0.4)
    job = paint(main, "a red ball", 4)
    expect(row.locator(".h-badge")).to_have_text("working on: a red ball", timeout=LOADING_MS)
    expect(doing).to_contain_text("a red ball")
    place(theirs).get_by_role("button", name="Pause").click()
    expect(row.locator(".h-badge")).to_have_text("busy with its owner's work, or paused there")
    place(theirs).get_by_role("button", name="Go on helping").click()
    row.get_by_role("button", name="Pause").click()
    expect(row.locator(".h-badge")).to_have_text("gets no work")
    expect(doing).to_contain_text("Ready to help")
    row.get_by_role("button", name="Use again").click()
    assert isinstance(next(event for event in main.keeper.follow(job) if isinstance(event, END)), Finished)

    row.get_by_role("button", name="Remove").click()
    ours.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    expect(doing).to_contain_text("no longer uses this computer", timeout=LOADING_MS)
    expect(field).to_be_visible()


@pytest.mark.slow
def test_what_is_found_saves_the_address_and_a_model_is_fetched(
    two: tuple[tuple[Desk, str], tuple[Desk, str]], pages: list[Page], tmp_path: Path
) -> None:
    (main, _), (helper, _) = two
    ours, theirs = pages
    switch_on(ours)
    code = show_code(ours)
    address, _, letters = code.rpartition("/")
    host, _, port = address.rpartition(":")
    assert main.others.nearby is not None
    box = Seen(Announcement("lends", "Box <b>"), ())
    desk = Seen(Announcement("main", "Desk <b>", "0" * 32, 4000, int(port)), (host,))
    with patch.object(main.others.nearby, "list_seen", lambda kind: [box] if kind == "lends" else []):
        expect(place(ours)).to_contain_text("These in this network would help: Box <b>")
    seen = place(theirs).get_by_role("checkbox", name="Show in this network")
    assert not seen.is_checked(), "off by default"
    seen.check()
    expect(seen).to_be_checked()
    until(lambda: helper.others.nearby is not None)  # the box is checked before the server hears of it
    assert helper.others.nearby is not None
    with patch.object(helper.others.nearby, "list_seen", lambda kind: [desk] if kind == "main" else []):
        place(theirs).get_by_role("button", name="Code of Desk <b>").click()
    field = place(theirs).get_by_role("textbox", name="The other computer's code")
    expect(field).to_have_value(f"{address}/")
    assert not shut_out(ours) and not shut_out(theirs)
    field.press_sequentially(letters)
    field.press("Enter")
    expect(place(theirs).locator(".h-doing")).to_contain_text("Ready to help", timeout=LOADING_MS)
    assert helper.others.nearby is None, "it helps one"

    fetches = place(theirs).get_by_role("checkbox", name="Fetch the models that it uses")
    assert not fetches.is_checked(), "off by default"
    fetches.check()
    model = tmp_path / "My painter"
    shutil.copytree(assets() / "starter" / "painter", model)
    pace(main.keeper.home.root, step_s=2.0)
    pace(helper.keeper.home.root, step_s=0.1)
    job = main.keeper.submit(PictureRequest("a local ball", model=str(model), batch=3, seed=1)).id
    row = place(ours).locator(".h-helpers li")
    expect(row.locator(".h-badge")).to_have_text("working on: a local ball", timeout=LOADING_MS)
    assert isinstance(next(event for event in main.keeper.follow(job) if isinstance(event, END)), Finished)
    fetches.uncheck()
    expect(fetches).not_to_be_checked()
    place(theirs).get_by_role("button", name="Help no more").click()
    theirs.get_by_role("alertdialog").get_by_role("button", name="Help no more").click()
    expect(field).to_be_visible()
    row.get_by_role("button", name="Remove").click()
    ours.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


@pytest.mark.slow
def test_a_helper_that_is_killed_is_shown_and_missed_by_nobody(
    two: tuple[tuple[Desk, str], tuple[Desk, str]], pages: list[Page], tmp_path: Path
) -> None:
    (main, _), _ = two
    page = pages[0]
    switch_on(page)
    helpers, rows = list[Helper](), place(page).locator(".h-helpers li")
    try:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            pace(tmp_path / name, step_s=0.3)
            helpers.append(start(tmp_path / name, words=(show_code(page),)))
            expect(rows.filter(has_text=f"light {name}").locator(".h-badge")).to_have_text("ready", timeout=LOADING_MS)
        pace(main.keeper.home.root, step_s=0.3)
        job = paint(main, "a blue ball", 8)
        expect(rows.locator(".h-badge")).to_have_text(["working on: a blue ball"] * 2, timeout=LOADING_MS)
        helpers[0].kill()
        expect(rows.locator(".h-badge").first).to_have_text("not reachable now", timeout=LOADING_MS)
        end = next(event for event in main.keeper.follow(job) if isinstance(event, END))
        assert isinstance(end, Finished) and len(main.keeper.shelf.list_of_job(job)) == 8
    finally:
        for each in helpers:
            each.end()
    place(page).get_by_role("switch", name="Use other computers").click()
    expect(place(page).locator(".h-using")).to_be_hidden()
    assert main.others.hub is None
