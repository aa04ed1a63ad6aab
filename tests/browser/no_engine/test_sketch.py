"""The starting picture: painted over by mouse, finger and keys, undone, inverted, framed larger, kept over a reload; what Paint then asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Route, expect

from app.engine.jobs.request import PictureRequest
from app.ui.state.desk import Desk
from app.ui.state.models_desk import ModelsDesk
from app.ui.tabs import paint_view
from tests.support.window import asked_by, await_stored, choose, go, needs_chromium, pass_looks, shut_out, unfold, until_seen

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


def note_begun(page: Page, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[PictureRequest]:
    """All that Paint begins from now on, while a start picture is chosen."""
    begun = list[PictureRequest]()
    monkeypatch.setattr(type(desk.jobs), "begin", lambda self, request, person: begun.append(request))
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    unfold(page, "Start from a picture")
    return begun


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
    unfold(page, "Settings")
    for side in ("width", "height"):
        page.fill(f"#paint-{side} input", "64")  # as an earlier picture's settings leave them
    press(page, "Frame")
    sheet.focus()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    expect(chip(page)).to_contain_text("painting beyond its edges")
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
    assert request.masked_only and request.strength == 1, "the picture keeps its pixels, and beyond it nothing is kept"
    await_stored(page, "frame")
    page.reload()
    go(page, "paint")
    expect(chip(page)).to_contain_text("painting beyond its edges")
    expect(page.locator("#paint-prompt textarea")).to_have_value("a boat")  # without words nothing is asked for
    assert masked(asked(page, opened[0], monkeypatch)).size == mask.size


@pytest.mark.slow
def test_a_smaller_frame_takes_a_part_and_marks_nothing(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_picture(page, tmp_path)
    press(page, "Frame")
    page.locator("#h-sketch canvas").focus()
    page.keyboard.press("Alt+Shift+ArrowLeft")
    request = asked(page, opened[0], monkeypatch)
    assert request.image and request.mask is None and not request.masked_only and request.strength == 0.6
    with Image.open(request.image) as sent:
        assert sent.width < SIZE[0] and sent.height == SIZE[1] and sent.getpixel((sent.width - 1, 30)) == (255, 200, 0)
    expect(chip(page)).to_have_text(re.compile("^starting from mine.png *Remove"))


@pytest.mark.slow
def test_a_frame_leaves_the_long_side_of_a_large_picture(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_picture(page, tmp_path)
    Image.new("RGB", (5000, 200), "teal").save(tmp_path / "wide.png")
    page.set_input_files("#h-sketch input[type=file]", tmp_path / "wide.png")
    expect(chip(page)).to_contain_text("wide.png")
    press(page, "Frame")
    page.locator("#h-sketch canvas").focus()
    page.keyboard.press("ArrowDown")
    mask = masked(asked(page, opened[0], monkeypatch))
    assert mask.width == 5000 and mask.height > 200


SLOW = """() => {
  const open = createImageBitmap;
  window.createImageBitmap = async (...given) => {
    if (given[0].size === SLOW_SIZE) await new Promise((done) => (window.goOn = done));
    return open(...given);
  };
}"""


@pytest.mark.slow
def test_a_frame_takes_a_chosen_shape_and_a_typed_size(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of a comic has its shape before it is drawn: by dragging alone none is met exactly."""
    open_picture(page, tmp_path)
    shape, width, height = (
        page.locator("#h-sketch").get_by_label(name, exact=True)
        for name in ("Shape of the frame", "Width of the frame", "Height of the frame")
    )
    expect(shape).to_be_hidden()
    press(page, "Frame")
    expect(width).to_have_value("96")
    shape.select_option("1:1")
    expect(height).to_have_value("96")
    request = asked(page, opened[0], monkeypatch)
    assert request.image and masked(request).size == (96, 96)
    assert masked(request).getpixel((48, 2)) == 255 == masked(request).getpixel((48, 93)), "the picture lies in the middle"
    assert not shut_out(page)
    width.fill("192")
    width.press("Enter")
    height.fill("108")
    height.press("Enter")
    expect(shape).to_have_value("3")  # 16:9
    request = asked(page, opened[0], monkeypatch)
    assert request.image and masked(request).size == (192, 108)
    width.fill("5")
    width.press("Enter")
    width.blur()
    expect(width).to_have_value("64")  # the least
    expect(shape.locator("option:checked")).to_have_text("Own shape")
    press(page, "Undo")
    expect(width).to_have_value("192")
    shape.select_option("Own shape")
    expect(width).to_have_value("96")


@pytest.mark.slow
def test_the_ring_of_the_brush_is_seen_before_the_first_stroke(page: Page, tmp_path: Path) -> None:
    sheet = open_picture(page, tmp_path)
    page.mouse.move(0, 0)
    read = "sheet => sheet.toDataURL()"
    without = sheet.evaluate(read)
    slider = page.locator("#h-sketch").get_by_label("Brush size")
    slider.press("ArrowRight")
    set_ = sheet.evaluate(read)
    assert set_ != without
    slider.press("ArrowRight")
    assert sheet.evaluate(read) not in (set_, without)
    slider.blur()
    assert sheet.evaluate(read) == without
    sheet.hover()
    assert sheet.evaluate(read) != without
    page.mouse.move(0, 0)
    assert sheet.evaluate(read) == without, "it left with the mouse"


GATE = """() => {
  const read = window.createImageBitmap;
  window.createImageBitmap = (...given) => new Promise((go) => (window.letRead = go)).then(() => read(...given));
}"""


def test_what_is_read_and_sent_is_told_at_once_and_a_second_press_counts(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A phone reads a photo for a second or more: a press of Paint meanwhile painted without it, and one while it was sent was lost."""
    begun = note_begun(page, opened[0], monkeypatch)
    Image.new("RGB", SIZE, "teal").save(tmp_path / "photo.png")
    page.evaluate(GATE)
    held = list[Route]()
    page.route("**/gradio_api/upload*", lambda route: held.append(route))
    page.set_input_files("#h-sketch input[type=file]", tmp_path / "photo.png")
    expect(chip(page)).to_have_text(re.compile("^reading photo.png…"))
    page.click("#paint-go")
    expect(page.locator(".h-force li", has_text="sending the picture…").locator("visible=true")).to_be_visible()
    assert not shut_out(page)
    page.evaluate("letRead()")
    until_seen(page, lambda: bool(held))
    page.dblclick("#paint-go")  # of which the second half is no press of its own
    expect(page.locator(".h-force li", has_text="then painting once more").locator("visible=true")).to_be_visible()
    assert not begun
    held[0].continue_()
    until_seen(page, lambda: len(begun) == 2)
    assert all(each.image for each in begun)
    expect(page.locator(".h-force li", has_text="sending")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize("card", ["sketch", "guide"])
def test_a_slow_picture_does_not_come_over_a_newer_one(card: str, page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    go(page, "paint")
    unfold(page, {"sketch": "Start from a picture", "guide": "Guide with a picture"}[card])
    for name, width in (("slow.png", 90), ("quick.png", 40)):
        Image.new("RGB", (width, 64), "teal").save(tmp_path / name)
    page.evaluate(SLOW.replace("SLOW_SIZE", str((tmp_path / "slow.png").stat().st_size)))
    field = f"#h-{card} input[type=file]"
    page.set_input_files(field, tmp_path / "slow.png")
    page.wait_for_function("() => Boolean(window.goOn)")
    page.set_input_files(field, tmp_path / "quick.png")
    expect(chip(page)).to_contain_text("quick.png")
    page.evaluate("goOn()")
    pass_looks(page)
    expect(chip(page)).to_contain_text("quick.png")


@pytest.mark.slow
def test_the_hand_that_holds_the_pen_takes_no_stroke_away(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = open_picture(page, tmp_path).bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    devices = page.context.new_cdp_session(page)

    def pen(kind: str, across: float) -> None:
        devices.send(
            "Input.dispatchMouseEvent",
            {"type": kind, "x": x + across, "y": y, "button": "left", "buttons": 1, "clickCount": 1, "pointerType": "pen"},
        )

    def palm(kind: str) -> None:
        points = [] if kind == "touchEnd" else [{"x": x + 60, "y": y + 40}]
        devices.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    for first, second in (("pen", "palm"), ("palm", "pen")):
        for which in (first, second):
            pen("mousePressed", 0) if which == "pen" else palm("touchStart")
        for across in (10, 20, 30):
            pen("mouseMoved", across)
        palm("touchEnd")
        pen("mouseMoved", 40)
        pen("mouseReleased", 40)
        share = painted(asked(page, opened[0], monkeypatch))
        assert 0.005 < share < 0.2, (first, share)
        page.locator("#h-sketch").get_by_role("button", name="Undo", exact=True).click()
        assert asked(page, opened[0], monkeypatch).mask is None, "one stroke, and no dab of the hand"
        page.locator("#h-sketch canvas").evaluate("sheet => sheet.scrollIntoView({ block: 'center' })")


TURNED = """(sheet, moves) => {
  const { x, y, width, height } = sheet.getBoundingClientRect();
  sheet.setPointerCapture = () => {}; // there is no such pen
  for (const [kind, across, button, buttons] of moves)
    sheet.dispatchEvent(new PointerEvent(kind, { pointerId: 9, pointerType: "pen", button, buttons, clientX: x + across * width, clientY: y + height / 2 }));
}"""


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["Brush", "Lasso"])
def test_the_other_end_of_a_pen_takes_paint_away(
    tool: str, page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = open_picture(page, tmp_path)
    drag(page, sheet, (0.35, 0.5), (0.65, 0.5))
    stroke = painted(asked(page, opened[0], monkeypatch))
    press(page, tool)
    sheet.evaluate(
        TURNED, [("pointerdown", 0.45, 5, 32), ("pointermove", 0.5, -1, 32), ("pointermove", 0.55, -1, 32), ("pointerup", 0.55, 5, 0)]
    )
    assert 0 < painted(asked(page, opened[0], monkeypatch)) < 0.8 * stroke
    expect(page.locator("#h-sketch").get_by_role("button", name=tool, exact=True)).to_have_attribute("aria-pressed", "true")


@pytest.mark.slow
def test_the_forecast_counts_the_picture_and_its_mask(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture of which little is changed was forecast as if all of its steps were computed."""
    weighed: list[PictureRequest] = []

    def note(desk: Desk, request: PictureRequest, *_: object) -> str:
        weighed.append(request)
        return ""

    monkeypatch.setattr(paint_view, "forecast_html", note)
    sheet = open_picture(page, tmp_path)
    until_seen(page, lambda: bool(weighed) and weighed[-1].image == "?" and weighed[-1].mask is None)
    drag(page, sheet, (0.45, 0.5), (0.5, 0.55))
    until_seen(page, lambda: weighed[-1].mask == "?")
    page.fill("#paint-strength input[type=number]", "0.3")
    page.press("#paint-strength input[type=number]", "Tab")
    until_seen(page, lambda: weighed[-1].strength == 0.3)
    press(page, "Frame")
    sheet.focus()
    page.keyboard.press("Shift+ArrowRight")
    until_seen(page, lambda: weighed[-1].strength == 1 and weighed[-1].masked_only)
    press(page, "Remove")
    until_seen(page, lambda: weighed[-1].image is None)


@pytest.mark.slow
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


def test_a_lasso_by_keys(page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Corners are set one by one; Enter fills the area with the cross as its last corner, and Escape takes them back."""
    sheet = open_picture(page, tmp_path)

    def trace(*keys: str) -> None:
        sheet.focus()
        for key in keys:
            page.keyboard.press(key)

    trace("l", "Space", *["Shift+ArrowRight"] * 2, "Enter")
    expect(chip(page)).not_to_contain_text("changing only the painted area")
    trace("Space", "Shift+ArrowUp", "Space", "Escape", "Shift+ArrowUp", "Enter")
    expect(chip(page)).not_to_contain_text("changing only the painted area")
    trace("Space", *["Shift+ArrowDown"] * 3, "Space", *["Shift+ArrowLeft"] * 3, "Enter")
    expect(chip(page)).to_contain_text("changing only the painted area")
    assert 0.005 < painted(asked(page, opened[0], monkeypatch)) < 0.5
    trace("Control+z")
    expect(chip(page)).not_to_contain_text("changing only the painted area")


@pytest.mark.slow
def test_keys_beside_the_sheet_leave_the_prompt_alone(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    """After a press of a tool, Ctrl+Z took letters out of the prompt, out of sight, and left the stroke."""
    sheet, prompt = open_picture(page, tmp_path), page.locator("#paint-prompt textarea")
    prompt.fill("")
    prompt.press_sequentially("a boat")
    drag(page, sheet, (0.45, 0.5), (0.5, 0.55))
    expect(chip(page)).to_contain_text("changing only the painted area")
    press(page, "Eraser")
    page.keyboard.press("Control+z")
    expect(chip(page)).to_have_text(re.compile("^starting from mine.png *Remove"))
    expect(prompt).to_have_value("a boat")
    size = page.get_by_role("slider", name="Brush size")
    size.focus()
    page.keyboard.press("b")
    expect(page.locator("#h-sketch").get_by_role("button", name="Brush", exact=True)).to_have_attribute("aria-pressed", "true")
    before = int(size.input_value())
    page.keyboard.press("ArrowRight")
    expect(size).to_have_value(str(before + 1))


@pytest.mark.slow
def test_what_is_no_picture_is_told_and_changes_nothing(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    open_picture(page, tmp_path)
    (tmp_path / "notes.png").write_text("no picture at all")
    page.set_input_files("#h-sketch input[type=file]", tmp_path / "notes.png")
    expect(page.locator(".h-force").locator("visible=true").locator("li.wrong")).to_contain_text("notes.png cannot be opened as a picture")
    expect(chip(page)).to_contain_text("starting from mine.png")


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_numbers_of_a_frame_are_typed(page: Page, tmp_path: Path) -> None:
    """The sheet's keys took 0, so that 1020 became 12, and Ctrl+Z undid the frame."""
    open_picture(page, tmp_path)
    press(page, "Frame")
    shape, width = (page.locator("#h-sketch").get_by_label(name, exact=True) for name in ("Shape of the frame", "Width of the frame"))
    width.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("1020")
    expect(width).to_have_value("1020")
    page.keyboard.press("Tab")
    expect(width).to_have_value("1020")
    width.focus()
    page.keyboard.press("Control+z")
    page.keyboard.press("e")
    shape.focus()
    page.keyboard.press("e")
    expect(page.locator("#h-sketch").get_by_role("button", name="Frame", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#h-sketch").get_by_role("button", name="Redo", exact=True)).to_be_disabled()
    page.keyboard.press("Control+z")  # no text of its own: what it chose is taken back
    expect(page.locator("#h-sketch").get_by_role("button", name="Redo", exact=True)).to_be_enabled()


def test_a_picture_that_cannot_be_fetched_leaves_paint_to_press(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every later press did nothing, and said nothing."""
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    page.route("**/hearth/creation/7", lambda route: route.abort())
    page.evaluate("Hearth.startFrom({ id: 7, name: 'far.png', url: 'hearth/creation/7' }).catch(() => {})")
    begun = asked(page, opened[0], monkeypatch)
    assert begun.prompt == "a boat" and begun.image is None
    expect(page.locator(".h-force").locator("visible=true").locator("li.wrong")).to_contain_text("Hearth did not respond")
    page.unroute("**/hearth/creation/7")


@pytest.mark.slow
def test_a_frame_keeps_its_shape_at_its_largest_and_its_middle(page: Page, tmp_path: Path) -> None:
    """A square around a tall picture was 5000 x 6325, and each change of an odd width to an even one moved it."""
    open_picture(page, tmp_path)
    press(page, "Frame")
    shape, width, height = (
        page.locator("#h-sketch").get_by_label(name, exact=True)
        for name in ("Shape of the frame", "Width of the frame", "Height of the frame")
    )
    width.fill("97")
    width.press("Enter")
    expect(chip(page)).to_contain_text("painting beyond its edges")
    width.fill("96")
    width.press("Enter")
    expect(chip(page)).to_have_text(re.compile("^starting from mine.png *Remove"))
    for size, chosen, sides in (((1000, 8000), "1:1", ("6324", "6324")), ((64, 8192), "16:9", ("8192", "4608"))):
        Image.new("L", size).save(tmp_path / f"{size[0]}.png")
        page.set_input_files("#h-sketch input[type=file]", tmp_path / f"{size[0]}.png")
        expect(chip(page)).to_contain_text(f"starting from {size[0]}.png")
        shape.focus()  # a field that is typed in is left alone
        shape.select_option(chosen)
        expect(width).to_have_value(sides[0])
        expect(height).to_have_value(sides[1])
        expect(shape.locator("option:checked")).to_have_text(chosen)


@pytest.mark.slow
@pytest.mark.parametrize("other", [False, True], ids=["cancelled", "another one chosen"])
def test_a_press_that_waits_for_a_picture_ends_with_it(
    other: bool, page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for good, and every later press counted as one more."""
    begun = note_begun(page, opened[0], monkeypatch)
    for name, width in (("slow.png", 90), ("quick.png", 40)):
        Image.new("RGB", (width, 64), "teal").save(tmp_path / name)
    page.evaluate(SLOW.replace("SLOW_SIZE", str((tmp_path / "slow.png").stat().st_size)))
    page.set_input_files("#h-sketch input[type=file]", tmp_path / "slow.png")
    expect(chip(page)).to_have_text(re.compile("^reading slow.png…"))
    page.click("#paint-go")
    sending = page.locator(".h-force li", has_text="sending the picture").locator("visible=true")
    expect(sending).to_be_visible()
    page.click("#paint-go")
    expect(sending).to_contain_text("then painting once more")
    if other:
        page.set_input_files("#h-sketch input[type=file]", tmp_path / "quick.png")
        expect(chip(page)).to_contain_text("starting from quick.png")
    else:
        chip(page).get_by_role("button").click()
    expect(sending).to_have_count(0)
    assert not begun, "what was cancelled is not painted without it"
    page.click("#paint-go")
    until_seen(page, lambda: bool(begun))
    assert [bool(each.image) for each in begun] == [other]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "words"),
    [(404, "The picture far.png is no longer there"), (0, "Hearth did not respond"), (500, "Hearth did not respond")],
    ids=["gone", "no answer", "refused"],
)
def test_a_press_that_waits_starts_nothing_without_its_picture(
    status: int, words: str, page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It painted from the words alone, or from the picture before, and told nothing of one that was gone."""
    begun = list[PictureRequest]()
    monkeypatch.setattr(type(opened[0].jobs), "begin", lambda self, request, person: begun.append(request))
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    held = list[Route]()
    page.route("**/hearth/creation/7", lambda route: held.append(route))
    page.evaluate("() => { Hearth.startFrom({ id: 7, name: 'far.png', url: 'hearth/creation/7' }); }")
    until_seen(page, lambda: bool(held))
    page.click("#paint-go")
    sending = page.locator(".h-force li", has_text="sending the picture").locator("visible=true")
    expect(sending).to_be_visible()
    page.click("#paint-go")
    expect(sending).to_contain_text("then painting once more")
    if status:
        held[0].fulfill(status=status)
    else:
        held[0].abort()
    expect(page.locator(".h-force").locator("visible=true").locator("li.wrong")).to_contain_text(words)
    expect(sending).to_have_count(0)
    pass_looks(page)
    assert not begun
    page.click("#paint-go")
    until_seen(page, lambda: len(begun) == 1)


@pytest.mark.slow
def test_what_is_said_of_a_models_strength_goes_with_the_model(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a model that edits does with a picture was still said of the next one."""
    models, offered = ("sd15", "flux2-klein"), ModelsDesk.list_choices
    monkeypatch.setattr(
        ModelsDesk, "list_choices", lambda self, kind: [(each, each) for each in models] if kind == "picture" else offered(self, kind)
    )
    opened[0].settings.put({"paint": {"model": "sd15"}})
    page.reload()
    go(page, "paint")
    unfold(page, "Start from a picture")
    said = page.locator("#paint-strength").get_by_text("It counts where you paint over an area")
    for model, count in (("flux2-klein", 1), ("sd15", 0)):
        choose(page, "#paint-model", model)
        expect(said).to_have_count(count)
