"""The chunk size as it is told, in a real browser and without an engine: in the strip, on the curve and the charts, and beside the picture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from app.base.paths import Home
from app.compat.machine.chunk_curve import SIZES, Curve, Point, keep_curve
from app.compat.planning.types import AUTO
from app.engine.models.catalog import BY_ID
from app.ui.state.desk import Desk
from app.ui.tabs.curve_view import slider_step
from tests.support.window import choose, go, needs_chromium, open_page, pass_looks, shut_out, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

ALTERED = """(more) => {
  window.asked ??= window.fetch;
  window.fetch = async (url, options) => {
    if (!String(url).includes("hearth/live")) return window.asked(url, options);
    const body = await (await window.asked(url, options)).json();
    for (const [name, value] of Object.entries(more)) body[name] = name === "strip" ? { ...body.strip, ...value } : value;
    return new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
  };
}"""
"""What an engine would tell takes the place of what the server says."""
GIB = 1 << 30
MEMORY = {
    "now": 5 * GIB,
    "highest": 5 * GIB,
    "limit": 6 * GIB,
    "swap": 3 * GIB,
    "process": 3 * GIB,
    "device": 5 * GIB,
    "allocated": 4 * GIB,
    "total": 6 * GIB,
}
BUSY: dict[str, Any] = {
    "job": "x", "model": "Stable Diffusion XL", "doing": "painting picture 2 of 4, step 12 of 20", "rate": "7.4 steps/s", "eta_s": 754,
    "memory": MEMORY, "machine": "NVIDIA GeForce GTX 1060 6GB", "precision": "float16", "attention": "expanded GQA, not chunked (4096 requested)",
    "chunk": "Requested: 4096. The largest call processes 1024 of 1024 queries at a time.",
}  # fmt: skip

IDLE = {
    "job": "",
    "model": "Stable Diffusion 3.5 Medium",
    "doing": "paused",
    "rate": "",
    "eta_s": None,
    "memory": MEMORY,
    "machine": BUSY["machine"],
}
CUT = """() => [...document.querySelectorAll("#h-strip > :not(.h-heard)")].filter((each) => each.offsetParent).filter((each) => {
  const box = each.getBoundingClientRect(), strip = document.querySelector("#h-strip").getBoundingClientRect();
  return each.scrollWidth > each.clientWidth + 1 || box.right > strip.right || box.bottom > strip.bottom + 1;
}).map((each) => each.className)"""


@pytest.fixture
def desk(opened: tuple[Desk, str]) -> Iterator[Desk]:
    yield opened[0]
    opened[0].machine.set_chunk(AUTO)


@pytest.fixture(scope="module", params=[("light", 1280), pytest.param(("dark", 390), marks=pytest.mark.slow)])
def page(request: pytest.FixtureRequest, browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    scheme, width = request.param
    with open_page(browser, opened[1], locale="en-US", color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        yield page


def show(page: Page, **state: Any) -> None:
    page.evaluate(ALTERED, state)


@pytest.mark.slow
def test_the_strip_is_not_cut_off(page: Page) -> None:
    """The device, the way of attention and the chunk were cut off at 1280 px."""
    go(page, "paint")
    show(page, strip=BUSY, queue=[{"id": "1", "place": 1, "text": "a cat", "kind": "picture"}])
    expect(page.locator("#h-strip .h-rate")).to_have_text(BUSY["rate"])
    cut = page.evaluate(CUT)
    assert not [each for each in cut if each not in ("h-doing",) or page.viewport_size["width"] > 640], cut  # type: ignore[index]
    banner, card = page.locator("#h-strip").bounding_box(), page.locator("#h-rooms .h-card:visible").first.bounding_box()
    assert banner and card and banner["y"] + banner["height"] <= card["y"]
    show(page, strip=IDLE, queue=[])
    expect(page.locator("#h-strip .h-model")).to_have_text(str(IDLE["model"]))
    assert not page.evaluate(CUT), "on a phone the model's name and the swap were cut off"
    show(page)


@pytest.mark.slow
def test_speed_memory_and_a_slider_stand_beside_the_picture(page: Page, desk: Desk) -> None:
    go(page, "paint")
    show(page, strip=BUSY)
    tuning = page.locator("#h-tuning")
    expect(tuning.locator(".h-figures")).to_have_text("7.4 steps/s \u00b7 5.0 of 6.0 GB, peak 5.0")
    expect(tuning.locator(".h-now")).to_have_text(BUSY["chunk"])
    slider = tuning.get_by_role("slider", name="Chunk size")
    expect(slider).to_have_value("0")
    slider.focus()
    began_s = time.monotonic()
    slider.press("ArrowRight")
    until_seen(page, lambda: desk.keeper.chunk == SIZES[0])
    expect(tuning.locator("b")).to_have_text(str(SIZES[0]))
    print(f"slider to keeper: {time.monotonic() - began_s:.2f} s")
    assert desk.settings.get("choice")["chunk"] == SIZES[0]
    assert not shut_out(page)
    go(page, "machine")
    expect(page.locator("#machine-exact").locator("input, textarea")).to_have_value(str(SIZES[0]))
    expect(page.locator("#machine-chunk input[type=range]")).to_have_value("1")
    show(page)


@pytest.mark.slow
def test_a_size_between_two_places_moves_the_slider_and_stays(page: Page, desk: Desk) -> None:
    """ "Exactly 300" left the slider at automatic, and Tab across it set automatic."""
    go(page, "machine")
    exact, slider = page.locator("#machine-exact").locator("input, textarea"), page.locator("#machine-chunk input[type=range]")
    exact.fill("300")
    exact.press("Enter")
    until_seen(page, lambda: desk.keeper.chunk == 300)
    expect(slider).to_have_value(str(slider_step(300)))
    slider.focus()
    slider.press("Tab")
    slider.press("Shift+Tab")
    pass_looks(page)
    assert desk.keeper.chunk == 300
    go(page, "paint")
    expect(page.locator("#h-tuning b")).to_have_text("300")
    expect(page.locator("#h-tuning input")).to_have_value(str(slider_step(300)))


@pytest.mark.slow
def test_an_earlier_plan_does_not_cover_a_later_one(page: Page, desk: Desk) -> None:
    """The answer for one size came after the answer for the next, and the wrong size stayed marked."""
    go(page, "machine")
    choose(page, "#machine-model", BY_ID["sdxl"].title)
    expect(page.locator("#h-plan")).to_have_attribute("data-seen", "sdxl")
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/hearth/machine?*", lambda route: held.append((route, route.fetch())))
    for size in (64, 512):
        before = len(held)
        desk.machine.set_chunk(size)
        until_seen(page, lambda before=before: len(held) > before)
    for route, answer in reversed(held):
        route.fulfill(response=answer)
        expect(page.locator("#h-curve text.here")).to_have_text("512")
        pass_looks(page)
    page.unroute("**/hearth/machine?*")
    expect(page.locator("#h-curve text.here")).to_have_text("512")


@pytest.mark.slow
def test_the_curve_has_numbers_on_its_axes(page: Page, desk: Desk) -> None:
    place: Home = desk.keeper.home
    keep_curve(place, Curve("sdxl-turbo", tuple(Point(size, 0.004 + 0.2 / size) for size in SIZES), 256))
    go(page, "machine")
    choose(page, "#machine-model", BY_ID["sdxl-turbo"].title)
    expect(page.locator("#h-plan")).to_have_attribute("data-seen", "sdxl-turbo")
    axis = page.locator("#h-curve text.axis")
    expect(axis).to_have_count(5)
    words = axis.all_text_contents()
    assert [each.endswith(" MiB") for each in words] == [True, True, False, True, False] and words[4] == "4.0 ms" and words[2] == "8.0 ms"
    low, middle, high = (float(words[place].split()[0]) for place in (0, 1, 3))
    assert low < middle < high
    assert not shut_out(page)


@pytest.mark.slow
def test_the_charts_mark_each_move_of_the_slider_and_each_fallback(page: Page) -> None:
    go(page, "machine")
    point = {"rate": 2.0, "unit": "steps", "marks": [], **MEMORY}
    points = [dict(point) for _ in range(60)]
    points[20]["marks"] = ["chunk size 64"]
    points[40]["marks"] = ["Attention works in smaller chunks.", "chunk size 300"]
    show(page, charts=points)
    marks = page.locator("#h-charts .h-marks li")
    expect(marks).to_have_text(["chunk size 64", "Attention works in smaller chunks.", "chunk size 300"])
    figures = page.locator("#h-charts figure").count()
    assert figures >= 4 and page.locator("#h-charts line.mark").count() == 3 * figures
    ticks = page.locator("#h-charts figure").first.locator(".h-ticks i")
    assert ticks.all_text_contents() == ["1", "2–3"], "those of one moment stood in one another"
    assert not shut_out(page)
    show(page)


NARROW = """() => {
  const apart = (all) => all.map((each) => each.getBoundingClientRect()).every((box, i, boxes) => !i || box.left >= boxes[i - 1].right + 4);
  const labels = [...document.querySelectorAll("#h-curve svg text:not(.axis):not(.swap)")];
  const of = (all) => all.map((each) => each.textContent);
  const past = (each) => each.getBoundingClientRect().right > each.closest("figure").getBoundingClientRect().right + 1;
  const captions = [...document.querySelectorAll("#h-charts figcaption span, #h-charts figcaption b")].filter((each) => each.offsetParent);
  return {
    apart: apart(labels), sizes: of(labels), marked: of(labels.filter((each) => each.classList.contains("here"))), cut: of(captions.filter(past)),
  };
}"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, *(pytest.param(width, marks=pytest.mark.slow) for width in (390, 1280))])
def test_sizes_and_figures_have_room_on_a_phone(page: Page, desk: Desk, width: int) -> None:
    """The sizes ran into each other, the peak was cut off, and 64 was marked while 77 was in force."""
    before = page.viewport_size
    assert before
    go(page, "machine")
    show(page, charts=[{"rate": 2.0, "unit": "steps", "marks": [], **MEMORY} for _ in range(60)])
    page.set_viewport_size({"width": width, "height": 800})
    choose(page, "#machine-model", BY_ID["pixart-sigma" if width == 390 else "sdxl"].title)  # another one: the curve is drawn anew
    exact = page.locator("#machine-exact").locator("input, textarea")
    for size, marked in (("77", []), ("64", ["64"]), ("2048", ["2048"]), ("", ["auto"])):
        exact.fill(size)
        exact.press("Enter")
        until_seen(page, lambda size=size: str(desk.keeper.chunk) == (size or AUTO))
        until_seen(page, lambda marked=marked: page.evaluate(NARROW)["marked"] == marked)
        seen = page.evaluate(NARROW)
        assert seen["apart"] and not seen["cut"], seen
        assert len(seen["sizes"]) == 9 if width == 1280 else 4 <= len(seen["sizes"]) < 9
    page.set_viewport_size(before)
    show(page)
