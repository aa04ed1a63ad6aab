"""The starting picture: painted over by mouse, finger and keys, undone, inverted, framed larger, kept over a reload; what Paint then asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from app.engine.jobs.request import PictureRequest
from app.ui.state.desk import Desk
from tests.support.window import asked_by, go, needs_chromium, pass_looks, shut_out, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
SIZE = (96, 64)


def asked(page: Page, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> PictureRequest:
    """What a press of Paint asks for."""
    request = asked_by(page, "#paint-go", desk, monkeypatch)
    assert isinstance(request, PictureRequest)
    return request


def masked(request: PictureRequest) -> Image.Image:
    assert request.mask
    with Image.open(request.mask) as mask:
        return mask.convert("L")


def painted(request: PictureRequest) -> float:
    """The share of the picture that is painted anew."""
    mask = masked(request)
    return sum(mask.histogram()[128:]) / (mask.width * mask.height)


def open_picture(page: Page, folder: Path) -> Locator:
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    unfold(page, "Start from a picture")
    picture = Image.new("RGB", SIZE, "teal")
    picture.paste((255, 200, 0), (SIZE[0] - 8, 0, *SIZE))
    picture.save(folder / "mine.png")
    page.set_input_files("#h-sketch input[type=file]", folder / "mine.png")
    sheet = page.locator("#h-sketch canvas")
    expect(sheet).to_be_visible()
    sheet.evaluate("sheet => sheet.scrollIntoView({ block: 'center' })")  # from under the bar that stays
    return sheet


def press(page: Page, name: str) -> None:
    page.locator("#h-sketch").get_by_role("button", name=name, exact=True).click()


def drag(page: Page, sheet: Locator, *points: tuple[float, float]) -> None:
    """Draw over the sheet, by shares of its width and height."""
    sheet.evaluate("sheet => sheet.scrollIntoView({ block: 'center' })")  # a press of Paint may have scrolled
    box = sheet.bounding_box()
    assert box
    (first, *rest) = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*first)
    page.mouse.down()
    for point in rest:
        page.mouse.move(*point, steps=6)
    page.mouse.up()


def chip(page: Page) -> Locator:
    return page.locator(".h-force").locator("visible=true").locator("li").first


def test_what_is_painted_is_the_mask(page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = open_picture(page, tmp_path)
    expect(chip(page)).to_have_text(re.compile("^starting from mine.png *Remove"))
    plain = asked(page, opened[0], monkeypatch)
    assert plain.image and plain.mask is None
    with Image.open(plain.image) as sent:
        assert sent.size == SIZE and sent.getpixel((1, 1)) == (0, 128, 128)
    drag(page, sheet, (0.45, 0.5), (0.5, 0.55))
    expect(chip(page)).to_contain_text("changing only the painted area")
    stroke = painted(asked(page, opened[0], monkeypatch))
    assert 0 < stroke < 0.1
    press(page, "Lasso")
    drag(page, sheet, (0.3, 0.2), (0.7, 0.2), (0.7, 0.8), (0.3, 0.8))
    area = painted(asked(page, opened[0], monkeypatch))
    assert area > 3 * stroke
    press(page, "Undo")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(stroke, abs=0.005)
    press(page, "Redo")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(area, abs=0.005)
    press(page, "Invert")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(
        1 - area, abs=0.05
    )  # what is half covered at the edge counts both times
    press(page, "Clear all")
    expect(chip(page)).to_have_text(re.compile("^starting from mine.png *Remove"))
    assert asked(page, opened[0], monkeypatch).mask is None
    assert not shut_out(page)
    press(page, "Remove")
    expect(page.locator("#h-sketch .h-empty")).to_be_visible()
    assert asked(page, opened[0], monkeypatch).image is None


def test_a_larger_frame_is_painted_beyond_the_picture(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = open_picture(page, tmp_path)
    press(page, "Frame")
    sheet.focus()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    expect(chip(page)).to_contain_text("changing only the painted area")
    request = asked(page, opened[0], monkeypatch)
    mask = masked(request)
    assert request.image and mask.width > SIZE[0] and mask.height == SIZE[1]
    with Image.open(request.image) as sent:
        assert sent.size == mask.size
        assert sent.getpixel((1, 30)) == (0, 128, 128), "the picture stays where it was"
        assert sent.getpixel((mask.width - 1, 30)) == (255, 200, 0), "beyond it stands what its edge is like"
    assert mask.getpixel((mask.width - 1, 30)) == 255 and mask.getpixel((SIZE[0] - 8, 30)) == 0
    assert mask.getpixel((SIZE[0] - 1, 30)) == 255, "a little of the edge is painted, too, so that no seam stays"
    assert (request.width, request.height) == (None, None), "it has the shape of the frame"
    page.reload()
    go(page, "paint")
    expect(chip(page)).to_contain_text("changing only the painted area")
    expect(page.locator("#paint-prompt textarea")).to_have_value("a boat")  # without words nothing is asked for
    assert masked(asked(page, opened[0], monkeypatch)).size == mask.size


def test_by_keys_alone(page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_picture(page, tmp_path).focus()
    page.keyboard.press("]")
    page.keyboard.press("Space")
    once = painted(asked(page, opened[0], monkeypatch))
    page.locator("#h-sketch canvas").focus()
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Space")
    twice = painted(asked(page, opened[0], monkeypatch))
    assert 0 < once < twice
    page.locator("#h-sketch canvas").focus()
    page.keyboard.press("Control+z")
    assert painted(asked(page, opened[0], monkeypatch)) == pytest.approx(once, abs=0.005)
    page.locator("#h-sketch canvas").focus()
    page.keyboard.press("e")
    expect(page.locator("#h-sketch").get_by_role("button", name="Eraser", exact=True)).to_have_attribute("aria-pressed", "true")


def test_what_is_no_picture_is_told_and_changes_nothing(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    open_picture(page, tmp_path)
    (tmp_path / "notes.png").write_text("no picture at all")
    page.set_input_files("#h-sketch input[type=file]", tmp_path / "notes.png")
    expect(page.locator(".h-force").locator("visible=true").locator("li.wrong")).to_contain_text("notes.png cannot be opened as a picture")
    expect(chip(page)).to_contain_text("starting from mine.png")


def test_what_the_browser_shows_is_painted_from(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AVIF, BMP and GIF were shown, and refused at Paint."""
    open_picture(page, tmp_path)
    for name in ("a.avif", "b.bmp", "c.gif"):
        Image.new("RGB", (48, 32), "teal").save(tmp_path / name)
        page.set_input_files("#h-sketch input[type=file]", tmp_path / name)
        expect(chip(page)).to_contain_text(f"starting from {name}")
        request = asked(page, opened[0], monkeypatch)
        assert request.image
        with Image.open(request.image) as sent:
            assert sent.size == (48, 32) and abs(sent.convert("RGB").getpixel((9, 9))[1] - 128) < 3  # type: ignore[index]
    (tmp_path / "IMG_1.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    page.set_input_files("#h-sketch input[type=file]", tmp_path / "IMG_1.HEIC")
    expect(page.locator(".h-force").locator("visible=true").locator("li.wrong")).to_contain_text("IMG_1.HEIC is a HEIC picture")


def test_a_picture_that_cannot_be_sent_starts_nothing(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_picture(page, tmp_path)
    begun: list[object] = []
    monkeypatch.setattr(type(opened[0].jobs), "begin", lambda self, request, person: begun.append(request))
    page.route("**/gradio_api/upload**", lambda route: route.fulfill(status=507, body="The disk is full."))
    page.click("#paint-go")
    expect(page.locator(".h-force").locator("visible=true")).to_contain_text("The disk is full.")
    pass_looks(page)
    assert not begun
    page.unroute("**/gradio_api/upload**")
    assert asked(page, opened[0], monkeypatch).image
