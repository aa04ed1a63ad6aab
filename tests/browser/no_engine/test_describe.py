"""Words from a picture: offered for the prompt, added behind what is written and taken back, and told where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from app.engine.models.picture_readers import DESCRIBER
from app.ui.state.desk import Desk
from app.ui.tabs import see_picture
from tests.browser.no_engine.test_sketch import open_picture, press
from tests.support.tiny_ears import place_for
from tests.support.tiny_readers import save_florence
from tests.support.window import go, needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
PROMPT, PLACE = "#paint-prompt textarea", "#h-prompts .h-described"


@pytest.mark.slow
def test_what_is_missing_or_no_picture_is_told(page: Page, tmp_path: Path) -> None:
    go(page, "paint")
    (tmp_path / "notes.png").write_text("no picture at all")
    page.set_input_files("#h-prompts input[type=file]", tmp_path / "notes.png")
    expect(page.locator(f"{PLACE} .h-trouble")).to_contain_text("notes.png cannot be opened as a picture")
    Image.new("RGB", (40, 30), "teal").save(tmp_path / "sea.png")
    page.set_input_files("#h-prompts input[type=file]", tmp_path / "sea.png")
    expect(page.locator(f"{PLACE} .h-trouble")).to_contain_text("Hearth needs Florence-2 base")
    with page.expect_request("**/hearth/offer?model=florence-2-base"):
        page.locator(PLACE).get_by_role("button", name="Download it").click()
    expect(page.get_by_role("alertdialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("alertdialog")).to_have_count(0)
    page.locator(PLACE).get_by_role("button", name="Close", exact=True).click()
    expect(page.locator(PLACE)).to_be_hidden()


def test_words_are_added_behind_what_is_written(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_florence(place_for(opened[0].keeper.home, DESCRIBER.id))
    monkeypatch.setattr(see_picture, "look", lambda *_: b"A red boat.")
    open_picture(page, tmp_path)
    press(page, "Put into words")
    expect(page.locator(f"{PLACE} [role=status]")).to_have_text("It shows: “A red boat.”")
    expect(page.locator(PROMPT)).to_have_value("a boat")  # offered, not written
    page.locator(PLACE).get_by_role("button", name="Add to the prompt").click()
    expect(page.locator(PROMPT)).to_have_value("a boat, A red boat.")
    expect(page.locator(PLACE)).to_be_hidden()
    page.locator(".h-rewritten").get_by_role("button", name="Undo").click()
    expect(page.locator(PROMPT)).to_have_value("a boat")
    assert not shut_out(page)
