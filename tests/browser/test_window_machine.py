"""The Machine tab in a real browser: the plan with its reasons, chunk sizes in the middle of a run, Tune and the self-test as they go."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Page, expect

from app.base.paths import home
from app.compat.machine.chunk_curve import SIZES, Curve, Point, keep_curve
from app.compat.machine.hardware import probe
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, learn, load
from app.engine.models.catalog import BY_ID
from tests.support.waiting import LOADING_S, until
from tests.support.window import LOADING_MS, Open, Visit, choose, go, held, needs_chromium, pass_looks, shut_out, unfold, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.long, needs_chromium]

SIDE = 512
"""A picture of this side has attention with 1024 queries: enough for its scores to be seen in the process's memory."""
SCORES_BYTES = 2 * 4 * 1024 * 1024 * 4
"""One call in one piece takes so many: batch, heads, queries, keys, float32."""


@pytest.mark.slow
def test_the_machine_is_told_with_its_reasons(visit: Visit) -> None:
    page = visit("machine")
    expect(page.locator("#h-plan table").first).to_contain_text("precision")
    expect(page.locator("#h-curve svg")).to_be_visible()
    expect(page.locator("#h-words")).to_contain_text("torch")


def test_what_everybody_needs_stands_first(visit: Visit) -> None:
    page = visit()
    page.evaluate("Hearth.openTab('machine')")
    facts = page.locator("#h-words .h-facts li")
    expect(facts).to_have_count(2)
    expect(facts.first).to_have_text(re.compile(r"^[\d.]+ of \d+ GB are free now\.$"))
    expect(facts.last).to_have_text("Pictures up to 256 x 256, with Starter painter.")
    assert not page.locator("#h-plan, #machine-kernels, #machine-as").count(), "what nobody asked for is folded"
    assert not shut_out(page)


@pytest.mark.slow
def test_another_machine_is_told_apart_from_this_one(visit: Visit) -> None:
    page = visit("machine")
    words, badge = page.locator("#h-words .h-machine-words"), page.locator("#h-words .h-badge")
    here, right = words.inner_text(), badge.get_attribute("class")
    choose(page, "#machine-as", MACHINES["gtx-1060"].name)
    expect(page.locator("#h-plan .h-pretended")).to_contain_text(MACHINES["gtx-1060"].name)
    assert words.inner_text() == here and badge.get_attribute("class") == right
    choose(page, "#machine-as", "this machine")
    expect(page.locator("#h-plan .h-pretended")).to_have_count(0)


def strip(page: Page) -> dict[str, str]:
    seen: dict[str, str] = page.evaluate("async () => (await (await fetch('hearth/live')).json()).strip")
    return seen


def steps(page: Page) -> int:
    done: int = page.evaluate("Math.round((Hearth.live.state.picture?.share ?? 0) * 200)")
    return done


def highest_bytes(page: Page, engine: psutil.Process, count: int = 3) -> int:
    """The most that the engine holds within the next steps, as the system itself records it."""
    start = steps(page)
    until(lambda: steps(page) > start)
    Path(f"/proc/{engine.pid}/clear_refs").write_text("5")
    start = steps(page)
    until(lambda: steps(page) >= start + count)
    status = Path(f"/proc/{engine.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024


def chunk(page: Page, size: int) -> None:
    go(page, "machine")
    page.fill("#machine-exact input, #machine-exact textarea", str(size))
    page.keyboard.press("Enter")
    until(lambda: f"chunk {size}" in strip(page)["attention"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the highest memory of a stretch of time is Linux' to tell")
def test_the_chunk_size_acts_in_the_middle_of_a_run(visit: Visit, opened: Open) -> None:
    """Torch's plain arithmetic writes all scores down, so that their memory is seen: it falls at the next step."""
    kept = opened.settings()
    page = visit("machine")
    unfold(page, "Choose by hand")
    page.fill("#machine-kernels input", "math")
    page.keyboard.press("Enter")
    page.click("#machine-use")
    until(lambda: opened.settings().get("choice", {}).get("kernels") == ["math"])
    go(page, "paint")
    unfold(page, "Settings")
    for name, value in (("width", SIDE), ("height", SIDE), ("steps", 200)):
        page.fill(f"#paint-{name} input", str(value))
    page.fill("#paint-prompt textarea", "a slow picture")
    before = len(opened.jobs())
    page.click("#paint-go")
    until(lambda: len(opened.jobs()) > before)
    page.wait_for_function(
        "id => Hearth.live.state.picture?.job === id && Hearth.live.state.picture.share > 0",
        arg=opened.jobs()[-1]["id"],
        timeout=LOADING_MS,
    )
    chunk(page, 1024 - 1)
    engine = opened.engine()
    large = highest_bytes(page, engine)
    chunk(page, 64)
    small = highest_bytes(page, engine)
    go(page, "machine")
    expect(page.locator("#h-chunk-now")).to_have_text("Requested: 64. The largest call processes 64 of 1024 queries at a time.")
    page.evaluate("Hearth.press('paint-stop')")
    until(lambda: opened.jobs()[-1]["state"] not in ("queued", "running"))
    assert opened.jobs()[-1]["state"] == "stopped"
    assert large - small > 0.75 * SCORES_BYTES, f"{large >> 20} MiB at 1023, {small >> 20} at 64"
    chunk_off(page, opened, kept)


def chunk_off(page: Page, opened: Open, kept: dict[str, object]) -> None:
    """As it was before, for the tests that follow."""
    page.fill("#machine-exact input, #machine-exact textarea", "auto")
    page.keyboard.press("Enter")
    page.locator("#machine-kernels input").press("Backspace")
    page.click("#machine-use")
    until(lambda: not opened.settings().get("choice", {}).get("kernels"))


@pytest.mark.slow
def test_the_last_place_of_the_slider_counts(visit: Visit, opened: Open) -> None:
    """Also where it is moved again before the server has answered."""
    page = visit("machine")
    slider = page.locator("#machine-chunk input[type=range]")
    box = slider.bounding_box()
    assert box is not None
    places = []
    first = held(page, lambda values: len(values) == 1 and isinstance(values[0], int) and values[0] > 0)
    for share in (0.3, 0.7):
        slider.click(position={"x": box["width"] * share, "y": box["height"] / 2})
        places.append(int(slider.input_value()))
        until_seen(page, lambda: bool(first))
    first[0].continue_()
    assert places[0] != places[1]
    expect(page.locator("#machine-exact").locator("input, textarea")).to_have_value(str(SIZES[places[1] - 1]))
    assert opened.settings()["choice"]["chunk"] == SIZES[places[1] - 1]
    page.unroute_all()
    page.fill("#machine-exact input, #machine-exact textarea", "auto")
    page.keyboard.press("Enter")
    until(lambda: opened.settings()["choice"]["chunk"] == "auto")


@pytest.mark.slow
def test_a_page_that_is_loaded_anew_shows_what_is_forced(visit: Visit, opened: Open) -> None:
    """An older page that nobody has touched follows; and a field that is only passed by changes nothing."""
    older = visit("machine")
    page = visit("machine")
    exact = "#machine-exact input, #machine-exact textarea"
    page.fill(exact, "512")
    page.keyboard.press("Enter")
    until(lambda: opened.settings().get("choice", {}).get("chunk") == 512)
    unfold(page, "Choose by hand")
    choose(page, "#machine-dtype", "float32")
    page.click("#machine-use")
    until(lambda: opened.settings()["choice"].get("dtype") == "float32")
    page.reload()
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    go(page, "machine")
    expect(page.locator(exact)).to_have_value("512")
    expect(page.locator("#machine-chunk input[type=range]")).to_have_value(str(SIZES.index(512) + 1))
    unfold(page, "Choose by hand")
    expect(page.locator("#machine-dtype input")).to_have_value("float32")
    expect(older.locator(exact)).to_have_value("512")
    sent = list[str]()
    for each in (page, older):
        each.on("request", lambda request: sent.append(request.url) if "/run/predict" in request.url else None)
        each.focus(exact)
        each.keyboard.press("Tab")
        pass_looks(each)
        assert not sent and opened.settings()["choice"]["chunk"] == 512
    page.fill(exact, "600")
    page.keyboard.press("Tab")  # what was typed counts without Enter, too
    until(lambda: opened.settings()["choice"]["chunk"] == 600)
    choose(page, "#machine-dtype", "automatic")
    page.click("#machine-use")
    until(lambda: opened.settings()["choice"].get("dtype") is None)
    page.fill(exact, "")
    page.keyboard.press("Enter")
    until(lambda: opened.settings()["choice"].get("chunk") == "auto")


@pytest.mark.slow
def test_a_page_looks_at_the_model_that_is_loaded(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    unfold(page, "Settings")
    for name, value in (("width", 64), ("height", 64), ("steps", 2)):
        page.fill(f"#paint-{name} input", str(value))
    page.fill("#paint-prompt textarea", "a small picture")
    before = len(opened.jobs())
    page.click("#paint-go")
    until(lambda: len(opened.jobs()) > before and opened.jobs()[-1]["state"] not in ("queued", "running"), LOADING_S)
    again = visit("machine")
    expect(again.locator("#h-plan[data-seen]")).to_be_attached()
    chosen = again.locator("#machine-model input").input_value()
    assert chosen and strip(again)["model"].startswith(chosen)


@pytest.mark.slow
def test_what_broken_runs_taught_can_be_forgotten(visit: Visit, opened: Open) -> None:
    """In both languages; the reason stands beside the button."""
    verdicts, machine = home(opened.home).verdicts, probe()
    taught = Verdict(Subject.fallback("sd15", "float32-decoder"), passed=False, seen=RunFailure("numbers", 4, "bfloat16"))
    learn(verdicts, machine, taught)
    for locale, words in (("zh-CN", "忘掉这些"), ("en-US", "Forget this")):
        page = visit("machine", locale=locale)
        choose(page, "#machine-model", "Stable Diffusion 1.5")
        expect(page.locator("#h-plan")).to_have_attribute("data-seen", "sd15")
        expect(page.locator("#h-plan .h-learned button")).to_have_text(words)
        assert not shut_out(page)
    expect(page.locator("#h-plan .h-learned")).to_contain_text(
        "The decoder computes in float32. bfloat16 produced NaN or infinity at step 4."
    )
    page.locator("#h-plan .h-learned button").click()
    expect(page.locator("#h-plan .h-learned")).to_have_count(0)
    expect(page.locator("#h-plan table").first).to_be_visible()
    assert taught.subject not in load(verdicts, machine)


@pytest.mark.slow
def test_the_knee_is_taken_by_its_button_and_never_by_itself(visit: Visit, opened: Open) -> None:
    for model in ("sdxl-turbo", "dia-1.6b"):
        keep_curve(home(opened.home), Curve(model, tuple(Point(size, 1.0) for size in SIZES), 256))
    kept = opened.settings().get("choice", {}).get("chunk", "auto")
    page = visit("machine")
    choose(page, "#machine-model", BY_ID["dia-1.6b"].title)
    expect(page.locator("#h-curve")).to_contain_text("the chunk size has no effect there")
    assert not page.locator(".h-knee").count(), "it would change nothing"
    choose(page, "#machine-model", BY_ID["sdxl-turbo"].title)
    expect(page.locator(".h-knee button")).to_have_text("Use 256")
    assert opened.settings().get("choice", {}).get("chunk", "auto") == kept
    page.locator(".h-knee button").click()
    expect(page.locator("#machine-exact").locator("input, textarea")).to_have_value("256")
    expect(page.locator(".h-knee")).to_have_count(0)
    until(lambda: opened.settings()["choice"]["chunk"] == 256)
    page.fill("#machine-exact input, #machine-exact textarea", "auto")
    page.keyboard.press("Enter")
    until(lambda: opened.settings()["choice"]["chunk"] == "auto")


@pytest.mark.slow
def test_tune_shows_how_far_it_is_and_draws_the_curve(visit: Visit) -> None:
    page = visit("machine")
    choose(page, "#machine-model", "Stable Diffusion 1.5")
    expect(page.locator("#h-plan")).to_have_attribute("data-seen", "sd15")
    expect(page.locator("#h-curve")).to_contain_text("not measured yet")
    page.click("#machine-tune")
    row = page.locator('.h-measuring[data-kind="Tune"]')
    expect(row).to_contain_text("of ", timeout=LOADING_MS)
    expect(row.get_by_role("button", name="Stop")).to_be_visible()
    row.get_by_role("button", name="Stop").click()
    expect(row).to_contain_text("stopped")


@pytest.mark.slow
def test_a_chunk_that_memory_bounds_is_told_above_the_curve(visit: Visit, opened: Open) -> None:
    """In both languages; the point of the curve is at what runs, the mark below it at what is asked for."""
    lack = RunFailure("memory", 3, chunk_most=256)
    learn(home(opened.home).verdicts, MACHINES["m2-16gb"], Verdict(Subject.fallback("sdxl", "smaller-chunk"), passed=False, seen=lack))
    for locale, begins in (
        ("zh-CN", "注意力一次最多处理 256 个查询。第 3 步时内存用尽。"),
        ("en-US", "Attention processes at most 256 queries at a time. Memory ran out at step 3."),
    ):
        page = visit("machine", locale=locale, viewport={"width": 1280, "height": 900})
        choose(page, "#machine-model", BY_ID["sdxl"].title)
        choose(page, "#machine-as", MACHINES["m2-16gb"].name)
        expect(page.locator("#h-curve .h-runs")).to_contain_text(begins)
        expect(page.locator("#h-curve circle.now")).to_have_count(1)
        points = page.locator("#h-curve svg text").all_text_contents()
        size = page.locator("#h-curve svg text", has_text="256")
        assert "256" in points and page.locator("#h-curve circle.now").get_attribute("cx") == size.get_attribute("x")
        assert page.locator("#h-curve svg text.here").get_attribute("x") != size.get_attribute("x")
        assert not shut_out(page)
