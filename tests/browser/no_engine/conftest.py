"""One Hearth without an engine and one Chromium for all files of this folder; each file finds Hearth as after its first start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from app.compat.planning.types import AUTO
from app.engine.jobs.shelf import Search
from app.ui.state.desk import Desk
from tests.support.both_servers import CPU, served
from tests.support.window import chromium, open_page

KEPT = 2
"""So many creations are on the shelf from the beginning, and tests name them by their numbers."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def hearth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str]]:
    with served(tmp_path_factory.mktemp("no engine")) as (desk, address, _):
        yield desk, address


@pytest.fixture(scope="module")
def opened(hearth: tuple[Desk, str]) -> tuple[Desk, str]:
    """Hearth without what an earlier file left: settings, drafts, models, LoRAs, voices, albums, what the disk's card told, the last jobs, results. Who
    greets has been greeted."""
    desk, address = hearth
    desk.settings._values = {}
    desk.settings.put({"greeted": True})
    desk.machine.set_chunk(AUTO)
    desk.jobs.latest.clear()
    desk.book.close()
    desk.keeper.status.set(hardware=CPU, model="")
    home, shelf, gallery = desk.keeper.home, desk.keeper.shelf, desk.keeper.gallery
    for left in (home.models, home.loras, home.controls, home.adapters, home.voices):
        shutil.rmtree(left, ignore_errors=True)
    home.create()
    desk.disk.told = desk.disk.uses = desk.disk.doubles = None
    for album in gallery.list_albums():
        gallery.remove_album(album.id)
    for tag in gallery.list_tags():
        gallery.untag(shelf.find(Search(tag=tag, most=-1)), tag)
    for creation in shelf.find(Search(binned=True)):
        shelf.restore(creation.id)
    for creation in shelf.find(Search()):
        shelf.set_favourite(creation.id, False)
        gallery.name(creation, "")
        if creation.id > KEPT:
            shelf.delete(creation.id)
    shelf.empty_bin()
    return desk, address


@pytest.fixture(scope="module")
def address(opened: tuple[Desk, str]) -> str:
    return opened[1]


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page of a desktop in English; a file that needs another makes its own."""
    options = {"locale": "en-US", "viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", "color_scheme": "light"}
    with open_page(browser, address, **options) as page:
        yield page
