"""The pictures beside the prompt on Paint, one that guides and one to be like: chosen, told beside the button, kept over a reload, sent with Paint, removed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, Route, expect

from app.engine.jobs.request import PictureRequest
from app.engine.pictures.files import picture_settings
from app.ui.state.desk import Desk
from app.ui.tabs.beside_prompt import GUIDE, REFERENCE, Beside
from tests.browser.no_engine.test_sketch import masked, open_picture
from tests.browser.no_engine.test_sketch import press as press_tool
from tests.support.window import asked_by, await_stored, drop, go, needs_chromium, unfold, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium
CONTROL = ("canny", "/controls/canny.safetensors")
ADAPTER = ("style", "/ipadapter/style.safetensors")


def test_a_guide_is_sent_with_paint(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Beside, "list_fitting", lambda self, *_: [CONTROL] if self is GUIDE else [])
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    unfold(page, "Guide with a picture")
    Image.new("RGB", (90, 60), "teal").save(tmp_path / "shape.png")
    page.set_input_files("#h-guide input[type=file]", tmp_path / "shape.png")
    chip = page.locator(".h-force").locator("visible=true").locator("li")
    expect(chip).to_have_text(re.compile("^guided by shape.png"))
    expect(page.locator("#h-guide img")).to_have_attribute("alt", "Guide: shape.png")
    await_stored(page, "background", "guide")
    page.reload()
    go(page, "paint")
    expect(chip).to_have_text(re.compile("^guided by shape.png"))  # though its fold is closed
    expect(page.locator("#paint-prompt textarea")).to_have_value("a boat")
    request = asked_by(page, "#paint-go", opened[0], monkeypatch)
    assert isinstance(request, PictureRequest) and request.guide and request.control == CONTROL[1]
    assert Path(request.guide).name == "guide.png" and request.image is None
    with Image.open(request.guide) as sent:
        assert sent.size == (90, 60)
    chip.get_by_role("button").click()
    expect(chip).to_have_count(0)
    unguided = asked_by(page, "#paint-go", opened[0], monkeypatch)
    assert unguided.guide is None


@pytest.mark.slow
def test_a_picture_dropped_as_a_guide_changes_nothing_else(page: Page, tmp_path: Path) -> None:
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    unfold(page, "Guide with a picture")
    picture_settings.write(Image.new("RGB", (90, 60), "teal"), tmp_path / "shape.png", PictureRequest("a castle"), "starter-painter")
    sent: list[str] = []
    expect(page.locator("#h-guide .h-empty")).to_be_visible()
    page.on("request", lambda request: sent.append(request.url) if "upload" in request.url else None)
    drop(page, "#h-guide", "shape.png", (tmp_path / "shape.png").read_bytes(), "image/png")
    expect(page.locator("#h-guide img")).to_have_attribute("alt", "Guide: shape.png")
    expect(page.locator("#paint-prompt textarea")).to_have_value("a boat")
    assert not sent, "its settings were not asked for"


@pytest.mark.slow
def test_a_reference_is_sent_with_paint(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Beside, "list_fitting", lambda self, *_: [ADAPTER] if self is REFERENCE else [])
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    unfold(page, "Paint like a picture")
    Image.new("RGB", (40, 60), "gold").save(tmp_path / "style.png")
    page.set_input_files("#h-reference input[type=file]", tmp_path / "style.png")
    chip = page.locator(".h-force").locator("visible=true").locator("li")
    expect(chip).to_have_text(re.compile("^like style.png"))
    await_stored(page, "background", "reference")
    page.reload()
    go(page, "paint")
    expect(chip).to_have_text(re.compile("^like style.png"))
    expect(page.locator("#paint-prompt textarea")).to_have_value("a boat")
    request = asked_by(page, "#paint-go", opened[0], monkeypatch)
    assert isinstance(request, PictureRequest) and request.reference and request.adapter == ADAPTER[1] and request.guide is None
    assert Path(request.reference).name == "reference.png" and request.reference_strength == 0.6
    chip.get_by_role("button").click()
    expect(chip).to_have_count(0)
    assert asked_by(page, "#paint-go", opened[0], monkeypatch).reference is None


@pytest.mark.parametrize(
    ("call", "place"),
    [("Hearth.guideBy(far)", GUIDE), pytest.param("Hearth.likeIt(far)", REFERENCE, marks=pytest.mark.slow)],
    ids=["guide", "reference"],
)
def test_a_result_that_comes_slowly_or_not_at_all_is_told(
    call: str, place: Beside, page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing was seen while it came, Paint began without it, and one that was gone stayed away without a word."""
    begun = list[PictureRequest]()
    monkeypatch.setattr(type(opened[0].jobs), "begin", lambda self, request, person: begun.append(request))
    monkeypatch.setattr(Beside, "list_fitting", lambda self, *_: [CONTROL if self is GUIDE else ADAPTER] if self is place else [])
    page.reload()  # a model to read it with is chosen as the page comes
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    Image.new("RGB", (90, 60), "teal").save(tmp_path / "far.png")
    held = list[Route]()
    page.route("**/hearth/creation/7", lambda route: held.append(route))
    chips = page.locator(".h-force").locator("visible=true").locator("li")
    for answer in ("gone", "silent", "there"):
        page.evaluate(f"(far) => {{ {call}; }}", {"id": 7, "name": "far.png", "url": "hearth/creation/7"})
        until_seen(page, lambda: bool(held))
        expect(chips.first).to_have_text(re.compile("^reading far.png…"))
        page.click("#paint-go")
        expect(chips.filter(has_text="sending the picture")).to_be_visible()
        if answer == "gone":
            held.pop().fulfill(status=404)
        elif answer == "silent":
            held.pop().abort()
        else:
            held.pop().fulfill(path=tmp_path / "far.png")
        if answer != "there":
            expect(chips.filter(has_text="far.png is no longer there" if answer == "gone" else "Hearth did not respond")).to_be_visible()
            expect(chips.filter(has_text="sending")).to_have_count(0)
            assert not begun, "nothing starts without it"
    until_seen(page, lambda: len(begun) == 1)
    assert begun[0].guide if place is GUIDE else begun[0].reference


@pytest.mark.slow
def test_a_press_whose_guide_is_gone_is_given_up_at_once_though_its_start_still_comes(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was "sending" until the start came, which took away why the guide was not used: nothing began, and nothing was said. Another guide, chosen
    meanwhile, was lost with it."""
    begun = list[PictureRequest]()
    monkeypatch.setattr(type(opened[0].jobs), "begin", lambda self, request, person: begun.append(request))
    monkeypatch.setattr(Beside, "list_fitting", lambda self, *_: [CONTROL] if self is GUIDE else [])
    page.reload()  # a model to read it with is chosen as the page comes
    go(page, "paint")
    page.fill("#paint-prompt textarea", "a boat")
    Image.new("RGB", (90, 60), "teal").save(tmp_path / "far.png")
    coming, chips = dict[str, Route](), page.locator(".h-force").locator("visible=true").locator("li")
    page.route(re.compile("/hearth/creation/[78]$"), lambda route: coming.update({route.request.url[-1]: route}))
    for call, number in (("startFrom", 7), ("guideBy", 8)):
        page.evaluate(f"() => {{ Hearth.{call}({{ id: {number}, name: '{call}.png', url: 'hearth/creation/{number}' }}); }}")
    until_seen(page, lambda: len(coming) == 2)
    page.click("#paint-go")
    expect(chips.filter(has_text="sending the picture")).to_be_visible()
    coming.pop("8").fulfill(status=404)
    gone = chips.filter(has_text="guideBy.png is no longer there")
    expect(gone).to_be_visible()
    expect(chips.filter(has_text="sending")).to_have_count(0)
    page.evaluate("() => { Hearth.guideBy({ id: 8, name: 'other.png', url: 'hearth/creation/8' }); }")
    until_seen(page, lambda: "8" in coming)
    page.click("#paint-go")
    expect(chips.filter(has_text="sending the picture")).to_be_visible()
    coming.pop("7").fulfill(path=tmp_path / "far.png")
    expect(chips.filter(has_text="starting from startFrom.png")).to_be_visible()
    expect(gone).to_be_visible()
    coming.pop("8").fulfill(path=tmp_path / "far.png")
    until_seen(page, lambda: len(begun) == 1)
    assert begun[0].image and begun[0].guide
    expect(gone).to_have_count(0)


def test_what_was_dropped_in_vain_is_told_until_a_picture_comes(page: Page, tmp_path: Path) -> None:
    """It stayed beside the picture that was chosen in its place, until that was sent."""
    go(page, "paint")
    drop(page, "#h-canvas", "a.pdf", b"%PDF-1.7", "application/pdf")
    chips = page.locator(".h-force").locator("visible=true").locator("li")
    expect(chips.filter(has_text="a.pdf is not a picture")).to_be_visible()
    open_picture(page, tmp_path)
    expect(chips.filter(has_text="starting from mine.png")).to_be_visible()
    expect(chips.filter(has_text="a.pdf is not a picture")).to_have_count(0)


@pytest.mark.slow
def test_a_press_that_waits_for_its_guide_keeps_the_start_it_was_pressed_with(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the start was removed while the guide came, the press painted without it; what was drawn meanwhile came into it."""
    begun = list[PictureRequest]()
    monkeypatch.setattr(type(opened[0].jobs), "begin", lambda self, request, person: begun.append(request))
    monkeypatch.setattr(Beside, "list_fitting", lambda self, *_: [CONTROL] if self is GUIDE else [])
    page.reload()  # a model to read it with is chosen as the page comes
    sheet = open_picture(page, tmp_path)
    press_tool(page, "Frame")
    sheet.focus()
    page.keyboard.press("Shift+ArrowRight")
    chips, coming = page.locator(".h-force").locator("visible=true").locator("li"), list[Route]()
    started = chips.filter(has_text="starting from mine.png")
    expect(started).to_contain_text("painting beyond its edges")
    page.route("**/hearth/creation/7", lambda route: coming.append(route))
    page.evaluate("() => { Hearth.guideBy({ id: 7, name: 'far.png', url: 'hearth/creation/7' }); }")
    until_seen(page, lambda: bool(coming))
    page.click("#paint-go")
    expect(chips.filter(has_text="sending the picture")).to_be_visible()
    started.get_by_role("button").click()
    expect(started).to_have_count(0)
    Image.new("RGB", (90, 60), "teal").save(tmp_path / "far.png")
    coming[0].fulfill(path=tmp_path / "far.png")
    until_seen(page, lambda: bool(begun))
    assert begun[0].guide and begun[0].image and begun[0].masked_only and begun[0].strength == 1
    with Image.open(begun[0].image) as sent:
        assert masked(begun[0]).size == sent.size
