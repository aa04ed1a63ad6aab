"""Pick by a click on the starting picture: by pointer and by keys, added and taken away, undone; offered where its model is not here, and told."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Page, expect

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.tasks import Pick
from app.engine.models.picture_readers import PICKER
from app.ui.state.desk import Desk
from app.ui.tabs import see_picture
from tests.browser.no_engine.test_after_trouble import show
from tests.browser.no_engine.test_sketch import SIZE, asked, drag, masked, open_picture, painted, press
from tests.support.tiny_ears import place_for
from tests.support.tiny_readers import save_sam
from tests.support.window import needs_chromium, shut_out

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
THING = (24, 16, 72, 48)
"""What is found, a quarter of the picture."""


@pytest.fixture
def looked(opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> list[Pick]:
    """The model is here, and finds the same thing everywhere but at the left edge."""
    save_sam(place_for(opened[0].keeper.home, PICKER.id))
    found = list[Pick]()

    def look(keeper: object, ask: see_picture.Ask, sent: str) -> bytes:
        task = ask(see_picture.keep(opened[0].keeper, sent))
        assert isinstance(task, Pick)
        found.append(task)
        if task.x < 0.2:
            raise Trouble(say("x.y", "Nothing is there."))
        made, file = Image.new("L", SIZE), io.BytesIO()
        made.paste(255, THING)
        made.save(file, "PNG")
        return file.getvalue()

    monkeypatch.setattr(see_picture, "look", look)
    return found


def said(page: Page) -> str:
    return page.locator("#h-sketch .h-picking [role=status]").inner_text()


@pytest.mark.slow
def test_the_model_is_asked_for_before_it_comes(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    sheet = open_picture(page, tmp_path)
    press(page, "Pick by a click")
    drag(page, sheet, (0.5, 0.5))
    expect(page.locator("#h-sketch .h-picking .h-trouble")).to_contain_text("Hearth needs SlimSAM")
    with page.expect_request("**/hearth/offer?model=slimsam"):
        page.locator("#h-sketch .h-picking").get_by_role("button", name="Download it").click()
    page.keyboard.press("Escape")


def test_a_click_paints_the_whole_thing(
    page: Page, opened: tuple[Desk, str], looked: list[Pick], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = open_picture(page, tmp_path)
    press(page, "Pick by a click")
    drag(page, sheet, (0.5, 0.5))
    expect(page.locator("#h-sketch .h-picking [role=status]")).to_have_text("Added. 25% of the picture is painted over now.")
    assert [looked[0].x, looked[0].y] == pytest.approx([0.5, 0.5], abs=0.02)
    request = asked(page, opened[0], monkeypatch)
    right = Image.new("L", SIZE)
    right.paste(255, THING)
    assert ImageChops.difference(masked(request), right).getbbox() is None, "it is what was found"
    press(page, "Invert")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(0.75, abs=0.01)
    press(page, "Take away")
    press(page, "Invert")
    drag(page, sheet, (0.5, 0.5))
    expect(page.locator("#h-sketch .h-picking [role=status]")).to_have_text("Taken away. 0% of the picture is painted over now.")
    assert asked(page, opened[0], monkeypatch).mask is None
    press(page, "Undo")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(0.25, abs=0.01) and said(page) == ""
    assert len({each.picture for each in looked}) == 1 and not shut_out(page)


@pytest.mark.slow
def test_by_keys_and_after_the_eraser(
    page: Page, opened: tuple[Desk, str], looked: list[Pick], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = open_picture(page, tmp_path)
    sheet.focus()
    page.keyboard.press("p")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#h-sketch .h-picking [role=status]")).to_contain_text("Added.")
    assert looked[0].x > 0.55 and looked[0].y == pytest.approx(0.5)
    page.keyboard.press("Alt+Enter")
    expect(page.locator("#h-sketch .h-picking [role=status]")).to_contain_text("Taken away.")
    page.keyboard.press("Control+z")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(0.25, abs=0.01)
    sheet.focus()
    page.keyboard.press("e")
    page.keyboard.press("p")
    expect(page.locator("#h-sketch").get_by_role("button", name="Take away", exact=True)).to_have_attribute("aria-pressed", "true")
    for _ in range(9):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#h-sketch .h-picking .h-trouble")).to_have_text("Nothing is there.")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(0.25, abs=0.01), "nothing is lost"


@pytest.mark.slow
def test_a_guest_has_no_such_tool(page: Page, tmp_path: Path) -> None:
    sheet = open_picture(page, tmp_path)
    tool = page.locator("#h-sketch [data-tool=pick]")
    expect(tool).to_be_visible()
    show(page, charts=None)
    page.wait_for_function("() => !Hearth.live.state.charts")
    sheet.focus()
    page.keyboard.press("b")
    expect(tool).to_be_hidden()
    page.keyboard.press("p")
    expect(page.locator("#h-sketch").get_by_role("button", name="Brush", exact=True)).to_have_attribute("aria-pressed", "true")
