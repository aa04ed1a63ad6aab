"""What lies behind a second click: a clip, the mask's brush, the plan's sources, a long path, Undo on a phone; and the plan that follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from app.engine.speech.sound import sound
from app.ui.state.desk import Desk
from tests.support.window import choose, go, needs_chromium, open_page, pass_looks, shut_out, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.fixture
def page(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    """A phone."""
    with open_page(
        browser, opened[1], locale="en-US", viewport={"width": 390, "height": 800}, reduced_motion="reduce", has_touch=True, is_mobile=True
    ) as page:
        yield page


SHOWN = "place => getComputedStyle(document.querySelector(place), '::after').content"


@pytest.mark.slow
def test_a_clip_on_a_phone(page: Page, tmp_path: Path) -> None:
    go(page, "speak")
    unfold(page, "Create a voice")
    words = "#speak-clip [data-testid=upload-text]"
    page.wait_for_selector(words)
    assert page.evaluate(SHOWN, words) == '"Tap to choose a file"'
    sound.write(tmp_path / "clip.wav", np.full(16_000 * 6, 0.1, np.float32), 16_000)
    page.locator("#speak-clip input[type=file]").set_input_files(tmp_path / "clip.wav")
    expect(page.locator("#speak-clip #duration")).to_have_text("0:06")
    assert not shut_out(page)


@pytest.mark.slow
def test_the_box_of_a_recording_has_room_for_words_and_finger(page: Page) -> None:
    go(page, "speak")
    unfold(page, "Create a voice from a recording")
    page.wait_for_selector("#speak-clip .source-selection button")
    height = "(each) => each.getBoundingClientRect().height"
    box, said = page.locator("#speak-clip .upload-container"), page.locator("#speak-clip [data-testid=upload-icon]")
    inside = "(each) => each.getBoundingClientRect().top - each.closest('.upload-container').getBoundingClientRect().top"
    assert said.evaluate(inside) >= 6, "the arrow touched the border"
    assert box.evaluate("(each) => each.scrollHeight <= each.clientHeight")
    assert min(each.evaluate(height) for each in page.locator("#speak-clip .source-selection button").all()) >= 40


@pytest.mark.slow
def test_a_starting_picture_by_keyboard_and_the_size_of_its_brush(page: Page, tmp_path: Path) -> None:
    page.on("filechooser", lambda _: None)  # Chromium is told now: told with the key, on a busy machine the key may come first
    go(page, "paint")
    unfold(page, "Start from a picture")
    expect(page.locator("#h-sketch .h-empty")).to_have_text("Tap to choose a file")
    page.locator("#paint-start > button.label-wrap").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#h-sketch .h-empty")).to_be_focused()
    Image.new("RGB", (64, 64), "orange").save(tmp_path / "start.png")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(tmp_path / "start.png")
    expect(page.locator(".h-force").last).to_contain_text("starting from start.png")
    page.get_by_role("slider", name="Brush size").press("End")
    expect(page.get_by_role("slider", name="Brush size")).to_have_value("100")
    assert not shut_out(page)


@pytest.mark.slow
def test_the_sources_of_the_plan_are_told_from_its_words(page: Page) -> None:
    go(page, "machine")
    choose(page, "#machine-as", "Apple M2")
    expect(page.locator("#h-plan .h-pretended")).to_contain_text("Apple M2")
    page.evaluate("document.querySelectorAll('#h-plan details').forEach((each) => (each.open = true))")
    assert not shut_out(page)


@pytest.mark.slow
def test_long_names_stay_within_their_place(page: Page) -> None:
    go(page, "models")
    page.locator("#h-models .h-add input").fill("/nowhere/a/long/path/to/a/model/folder/that/is/not/there")
    page.keyboard.press("Enter")
    told = page.locator("#h-models .h-add .h-trouble")
    expect(told).to_contain_text("not/there")
    assert told.evaluate("(each) => each.scrollWidth <= each.clientWidth")
    broken = """() => [...document.querySelectorAll("#h-models .h-size")].filter((line) => {
      const node = line.firstChild, at = node.data.indexOf("Apache-");
      const range = document.createRange();
      if (at < 0) return false;
      range.setStart(node, at);
      range.setEnd(node, node.data.indexOf("2.0", at) + 3);
      return range.getClientRects().length > 1;
    }).map((line) => line.textContent)"""
    assert page.locator("#h-models .h-size", has_text="Apache-").count()
    for width in range(300, 420, 10):
        page.set_viewport_size({"width": width, "height": 800})
        assert not page.evaluate(broken), width


@pytest.mark.slow
def test_undo_is_one_line_on_a_phone(page: Page) -> None:
    go(page, "shelf")
    page.locator("#h-shelf .h-delete").first.click()
    note = page.locator("#h-shelf .h-undo")
    expect(note).to_contain_text("Moved to the bin: 1.")
    assert note.locator("span").evaluate("(each) => each.getBoundingClientRect().height") < 30
    note.get_by_role("button").click()


@pytest.mark.slow
def test_the_plan_follows_what_is_loaded_until_somebody_chooses(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]

    def loaded(route: Route) -> None:
        answer = route.fetch()
        state = answer.json()
        state["strip"]["model"] = desk.keeper.state.model
        route.fulfill(response=answer, json=state)

    page.route("**/hearth/live*", loaded)
    go(page, "machine")
    field = page.locator("#machine-model input")
    desk.keeper.status.set(model="sd15")
    expect(field).to_have_value("Stable Diffusion 1.5")
    expect(page.locator("#h-plan")).to_have_attribute("data-seen", "sd15")
    choose(page, "#machine-model", "Dia 1.6B")
    desk.keeper.status.set(model="sdxl")
    pass_looks(page)
    expect(field).to_have_value("Dia 1.6B")
