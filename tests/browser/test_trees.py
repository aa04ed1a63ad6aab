"""What a screen reader finds on each tab and in the dialogs, in its order: the accessibility trees stored in `trees`, which `--accept-trees` writes anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app.base import extras
from app.ui.share import Share
from app.ui.state import disk_desk
from app.ui.state.desk import Desk
from app.ui.state.upkeep import Upkeep
from app.ui.tabs import welcome
from tests.support.both_servers import CPU, served
from tests.support.waiting import until
from tests.support.window import SETTLED, UNFOLD, go, needs_chromium, open_page

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

TREES = Path(__file__).parent / "trees"
TABS = ("speak", "paint", "shelf", "models", "machine")
DAYS = re.compile('"Yesterday"')
"""What was made before midnight."""
RUNS_OUT = re.compile(r"Ends in [^\n]+")
FIGURES = re.compile(r"(?<!level=)\d+(?:[.,:]\d+)*(?: [AP]M\b)?")
"""What depends on machine and day is one of these, as is much that does not."""
STEADY = 10
"""After so many trees in a row that are alike, all has come."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str, Share]]:
    """A Hearth of its own, of which no other file has left anything."""
    with served(tmp_path_factory.mktemp("trees")) as (desk, address, share):
        desk.keeper.status.set(hardware=CPU, model="")
        yield desk, address, share


@pytest.fixture(scope="module")
def opened(shared: tuple[Desk, str, Share]) -> tuple[Desk, str]:
    return shared[:2]


@pytest.fixture(scope="module")
def newcomer(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    """One page for all trees; it is greeted first."""
    desk, address = opened
    desk.settings.put({"greeted": False})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Upkeep, "explain_fixed", lambda self: None)  # neither a clone nor a release
        patch.setattr(extras.Extra, "is_here", False)
        patch.setattr(welcome, "measure_weights_per_s", lambda: 1e12)
        with open_page(browser, address, locale="en-US", viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as page:
            yield page


def read_tree(page: Page, place: str, home: str) -> str:
    tree = page.locator(place).locator("visible=true").first.aria_snapshot().replace(home, "HOME")
    return FIGURES.sub("#", RUNS_OUT.sub("Ends in #", DAYS.sub('"Today"', tree.partition("\n  - tabpanel")[0]))) + "\n"


def accept(page: Page, place: str, stored: Path, home: str) -> None:
    found = list[str]()

    def has_come() -> bool:
        page.evaluate(SETTLED)
        found.append(read_tree(page, place, home))
        return len(found) > STEADY and len(set(found[-STEADY:])) == 1

    until(has_come)
    stored.write_text(found[-1], "utf-8")


@pytest.mark.parametrize(
    ("name", "place"),
    [("greeting", "#h-greeting"), ("head", "main"), *((tab, '[role="tabpanel"]') for tab in TABS), ("help", "dialog.h-help")],
)
def test_what_is_read_is_what_was_looked_at(
    newcomer: Page, opened: tuple[Desk, str], name: str, place: str, pytestconfig: pytest.Config
) -> None:
    page, home, stored = newcomer, str(opened[0].keeper.home.root), TREES / f"{name}.yml"
    look_around = page.get_by_role("button", name="Just look around")
    if name != "greeting" and look_around.is_visible():
        look_around.click()
    if name in TABS:
        go(page, name)
        for fold in page.locator("#h-rooms button.label-wrap").filter(has_not_text="Dictate").locator("visible=true").all():
            fold.evaluate(UNFOLD)  # dictation tells of this machine's microphone
    if name == "help":
        go(page, "machine")  # what is read of it first depends on the tab
        page.locator('[data-h-act="help"]').click()
    compare(page, place, stored, home, pytestconfig)


def compare(page: Page, place: str, stored: Path, home: str, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--accept-trees"):
        accept(page, place, stored, home)
    with suppress(AssertionError):
        until(lambda: page.evaluate(SETTLED) is None and read_tree(page, place, home) == stored.read_text("utf-8"))
    assert read_tree(page, place, home) == stored.read_text("utf-8"), (
        "if it is meant to be read so: pytest --accept-trees, and look at the diff"
    )


@pytest.fixture
def owner(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    """A page of its own: what its dialogs change, no other tree shows."""
    opened[0].settings.put({"greeted": True})
    with open_page(browser, opened[1], locale="en-US", viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as page:
        yield page


def test_the_dialog_of_a_pause(owner: Page, opened: tuple[Desk, str], pytestconfig: pytest.Config) -> None:
    desk, home = opened[0], str(opened[0].keeper.home.root)
    desk.pausing.plan("hours", "00:00", "00:00")
    try:
        owner.locator("#h-strip .h-pause").click()
        compare(owner, "dialog.h-pausing", TREES / "pause.yml", home, pytestconfig)
    finally:
        desk.pausing.plan("any", "00:00", "00:00")


def test_the_dialog_of_a_share_before_it_and_while_it_is_open(
    owner: Page, shared: tuple[Desk, str, Share], monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr("app.ui.share.make_password", lambda: "six words that nobody can guess")
    home = str(shared[0].keeper.home.root)
    shared[2].end()
    try:
        owner.locator("[data-h-share]").click()
        expect(owner.get_by_role("radio", name="Anywhere")).to_be_visible()
        compare(owner, "dialog.h-sharing", TREES / "share.yml", home, pytestconfig)
        owner.get_by_role("radio", name="Anywhere").check()
        owner.get_by_role("button", name="Create link").click()
        expect(owner.get_by_role("button", name="Copy: Link")).to_be_focused()
        owner.locator(".h-sharing summary").click()
        compare(owner, "dialog.h-sharing", TREES / "sharing.yml", home, pytestconfig)
        owner.get_by_role("button", name="Stop sharing").click()
        expect(owner.get_by_role("button", name="Create link")).to_be_focused()
    finally:
        shared[2].end()


@pytest.mark.slow
def test_the_disk_and_the_dialog_that_moves_a_part_of_it(
    owner: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(disk_desk, "can_add", lambda: False)  # the environment is of this machine
    monkeypatch.setattr("app.ui.tabs.disk.read_free_bytes", lambda folder: 5e9)
    desk, home = opened[0], str(opened[0].keeper.home.root)
    loras = desk.keeper.home.loras
    loras.mkdir(exist_ok=True)
    try:
        (loras / "ink.safetensors").write_bytes(bytes(2_000_000))
        go(owner, "machine")
        owner.get_by_role("button", name="Show what takes room").click()
        owner.get_by_role("button", name="Move: LoRAs and embeddings").wait_for()
        compare(owner, "#h-disk", TREES / "disk.yml", home, pytestconfig)
        owner.get_by_role("button", name="Move: LoRAs and embeddings").click()
        compare(owner, "dialog.h-to-disk", TREES / "moving.yml", home, pytestconfig)
    finally:
        (loras / "ink.safetensors").unlink()
        desk.disk.told = desk.disk.uses = desk.disk.doubles = None
