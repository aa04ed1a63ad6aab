"""What a screen reader finds on each tab, in its order: the accessibility trees stored in `trees`, which `--accept-trees` writes anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from app.base import extras
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
FIGURES = re.compile(r"(?<!level=)\d+(?:[.,:]\d+)*(?: [AP]M\b)?")
"""What depends on machine and day is one of these, as is much that does not."""
STEADY = 10
"""After so many trees in a row that are alike, all has come."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str]]:
    """A Hearth of its own, of which no other file has left anything."""
    with served(tmp_path_factory.mktemp("trees")) as (desk, address, _):
        desk.keeper.status.set(hardware=CPU, model="")
        yield desk, address


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
    return FIGURES.sub("#", DAYS.sub('"Today"', tree.partition("\n  - tabpanel")[0])) + "\n"


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
    if pytestconfig.getoption("--accept-trees"):
        accept(page, place, stored, home)
    with suppress(AssertionError):
        until(lambda: page.evaluate(SETTLED) is None and read_tree(page, place, home) == stored.read_text("utf-8"))
    assert read_tree(page, place, home) == stored.read_text("utf-8"), (
        "if it is meant to be read so: pytest --accept-trees, and look at the diff"
    )
