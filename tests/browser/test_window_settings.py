"""What stays: drafts, settings and presets over a restart, models that come while the window is open; the first start; asking for less."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.support.hub import cached
from tests.support.waiting import LOADING_S, until
from tests.support.window import (
    LOADING_MS,
    Open,
    Visit,
    choices,
    choose,
    end,
    go,
    held,
    needs_chromium,
    pass_looks,
    shut_out,
    small_voice,
    start,
    unfold,
    until_seen,
)

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.long, needs_chromium]


@pytest.fixture
def begin() -> Iterator[Callable[[Path, Path], Open]]:
    """Starts a Hearth that does not outlive a test that fails."""
    begun: list[Open] = []

    def begin(home: Path, audit: Path) -> Open:
        begun.append(start(home, audit))
        return begun[-1]

    yield begin
    for each in begun:
        each.process.kill()
        each.process.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)  # two starts, a load, a picture and the whole check of a machine, for which other programs leave little
def test_a_first_start_paints_with_one_click_and_what_is_written_outlives_a_restart(
    visit: Visit, tmp_path: Path, begin: Callable[[Path, Path], Open], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on the machine of whoever installs it: what it computes is checked while nothing runs."""
    monkeypatch.delenv("HEARTH_SKIP_CHECK")
    home, audit = tmp_path / "home", tmp_path / "audit"
    home.mkdir()
    first = begin(home, audit)
    page = visit("speak", first.address)
    expect(page.locator("#h-greeting")).to_contain_text("Welcome")
    narrow = visit("speak", first.address, color_scheme="dark", viewport={"width": 390, "height": 900})
    for seen in (narrow, page):
        expect(seen.locator("#h-greeting li .h-badge.right")).not_to_have_count(0, timeout=LOADING_MS)
        assert not shut_out(seen)
    narrow.close()
    page.get_by_role("button", name="Paint something").click()
    expect(page.locator("#h-canvas .h-acts a")).to_be_visible(timeout=LOADING_MS)
    assert first.jobs()[-1]["state"] == "finished" and "house" in first.jobs()[-1]["request"]["prompt"]
    assert first.settings()["greeted"] is True
    page.fill("#paint-negative textarea, #paint-negative input", "rain")
    go(page, "machine")
    badge, tables = page.locator("#h-words .h-badge"), page.locator("#h-selftest summary")
    expect(badge).to_contain_text(re.compile(r"^checking this machine while idle: \d+ of \d+$|^checked: (\d+) of \1 right$"))
    expect(badge).to_contain_text(re.compile(r"^checked: (\d+) of \1 right$"), timeout=LOADING_MS)
    expect(tables.filter(has_text="paths of attention")).to_be_visible()
    go(page, "speak")
    expect(page.locator("#h-greeting")).to_be_hidden()
    page.fill("#speak-text textarea", "[S1] A draft that nobody has spoken yet.")
    choose(page, "#speak-voice", "Callum")
    unfold(page, "Settings")
    page.fill("#speak-seed input", "77")
    page.fill("#speak-speed input[type=number]", "1.25")
    page.keyboard.press("Tab")
    page.fill("#speak-preset input", "evening")
    page.keyboard.press("Tab")
    page.click("#speak-preset-save")
    until(lambda: "evening" in first.settings().get("presets", {}).get("speak", {}))
    until(lambda: first.settings()["speak"]["speed"] == 1.25)
    until(lambda: (first.settings()["speak"]["voice"], first.settings()["speak"]["seed"]) == ("Callum", 77))
    assert not {"voice", "seed", "model"} & {*first.settings()["presets"]["speak"]["evening"]}
    until(lambda: first.settings().get("drafts", {}).get("paint-negative") == "rain")
    page.goto("about:blank")
    end(first, audit)

    second = begin(home, audit)
    page = visit("speak", second.address)
    expect(page.locator("#h-greeting")).to_have_count(0)
    expect(page.locator("#speak-text textarea")).to_have_value("[S1] A draft that nobody has spoken yet.")
    expect(page.locator("#speak-voice input")).to_have_value("Callum")
    expect(page.locator(".h-force").locator("visible=true")).to_contain_text("seed 77")
    unfold(page, "Settings")
    expect(page.locator("#speak-speed input[type=number]")).to_have_value("1.25")
    expect(page.locator("#speak-seed input")).to_have_value("77")
    choose(page, "#speak-preset", "Recommended")
    expect(page.locator("#speak-speed input[type=number]")).to_have_value("1")
    choose(page, "#speak-preset", "evening")
    expect(page.locator("#speak-speed input[type=number]")).to_have_value("1.25")
    page.click("#speak-preset-delete")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("#speak-preset-delete")).to_be_focused()
    assert second.settings()["presets"]["speak"], "Esc is no"
    page.click("#speak-preset-delete")
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    until(lambda: not second.settings()["presets"]["speak"])
    go(page, "paint")
    expect(page.locator("#paint-negative textarea, #paint-negative input")).to_have_value("rain")
    page.goto("about:blank")
    end(second, audit)


@pytest.mark.slow
def test_a_model_that_comes_is_offered_without_a_restart(visit: Visit, opened: Open, tmp_path: Path) -> None:
    page = visit()
    unfold(page, "Settings")
    assert "late voice" not in choices(page, "#speak-model")
    voice = small_voice(tmp_path / "late voice")
    body = json.dumps({"value": str(voice)})
    added = page.request.post(f"{opened.address}hearth/models/add", data=body, headers={"content-type": "application/json"})
    assert added.ok, added.text()
    go(page, "models")
    go(page, "speak")
    until(lambda: "late voice" in choices(page, "#speak-model"))
    page.request.post(f"{opened.address}hearth/models/forget", data=body, headers={"content-type": "application/json"})


@pytest.mark.slow
def test_a_model_is_removed_once_it_is_sure(visit: Visit, opened: Open) -> None:
    repos = ("nari-labs/Dia-1.6B-0626", "descript/dac_44khz")
    for repo in repos:
        shutil.copytree(opened.settings()["speak"]["model"], cached(opened.home / "models", repo), dirs_exist_ok=True)
    page = visit("models")
    card = page.locator('#h-models [data-key="dia-1.6b"]')
    card.get_by_role("button", name="Delete").click()
    asked = page.get_by_role("alertdialog", name="Delete Dia 1.6B from this disk?")
    page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    assert all(any(cached(opened.home / "models", repo).iterdir()) for repo in repos), "Esc is no"
    card.get_by_role("button", name="Delete").click()
    asked.get_by_role("button", name="Delete").click()
    expect(card.get_by_role("button", name="Download")).to_be_visible()
    assert not list((opened.home / "models").glob("models--*"))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "tab"), [("picture", "paint"), ("speech", "speak")])
def test_smaller_is_smaller_and_starts_again(visit: Visit, opened: Open, kind: str, tab: str) -> None:
    """Memory cannot be made to run out here: the page is told that it did, all else is real."""
    page = visit(tab)

    def failed(route: Route) -> None:
        answer = route.fetch()
        state = answer.json()
        if state.get(kind, {}).get("job") == told:
            state[kind]["end"] = {"kind": "failed", "text": "Memory ran out.", "cure": "smaller"}
        route.fulfill(response=answer, json=state)

    if kind == "picture":
        unfold(page, "Settings")
        for side in ("width", "height"):
            page.fill(f"#paint-{side} input", "256")
    words = {"picture": "a ball", "speech": "[S1] Now it is warm, I think."}[kind]
    before = len(opened.jobs())
    page.fill({"paint": "#paint-prompt textarea", "speak": "#speak-text textarea"}[tab], words)
    page.keyboard.press("Control+Enter")
    until(lambda: len(opened.jobs()) > before)
    told = opened.jobs()[-1]["id"]
    until(lambda: opened.jobs()[-1]["state"] == "finished", LOADING_S)
    page.route("**/hearth/live*", failed)
    page.get_by_role("button", name="Retry smaller").click()
    until(lambda: opened.jobs()[-1]["id"] != told)
    asked, lesser = (job["request"] for job in opened.jobs()[-2:])
    if kind == "picture":
        assert (asked["width"], lesser["width"], lesser["height"]) == (256, 128, 128)
        expect(page.locator("#paint-width input")).to_have_value(str(lesser["width"]))
    else:
        assert lesser["text"].count("(pause") > asked["text"].count("(pause")
        expect(page.locator("#speak-text textarea")).to_have_value(lesser["text"])
    expect(page.locator(".h-lately:visible")).to_contain_text("Restarted")
    until(lambda: opened.jobs()[-1]["state"] == "finished")


@pytest.mark.slow
def test_settings_are_kept_in_the_order_of_their_changes(visit: Visit, opened: Open) -> None:
    """The first change is held up on its way until the second would have overtaken it."""
    page = visit("paint")
    unfold(page, "Settings")
    model = opened.settings()["paint"]["model"]
    first = held(page, lambda values: values[:1] == [model] and 96 in values)
    page.fill("#paint-width input", "96")
    page.keyboard.press("Tab")
    until_seen(page, lambda: bool(first))
    page.fill("#paint-height input", "160")
    page.keyboard.press("Tab")
    pass_looks(page)
    first[0].continue_()
    until_seen(page, lambda: [opened.settings()["paint"][side] for side in ("width", "height")] == [96, 160])
    page.unroute_all()
    for side in ("width", "height"):
        page.fill(f"#paint-{side} input", "128")
        page.keyboard.press("Tab")
    until(lambda: {opened.settings()["paint"][side] for side in ("width", "height")} == {128})


@pytest.mark.slow
def test_quicker_is_told_used_and_brought_back(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    unfold(page, "Settings")
    page.fill("#paint-steps input", "12")
    page.keyboard.press("Tab")
    choose(page, "#paint-quicker", "Much")
    until(lambda: opened.settings()["paint"].get("quicker") == "much")
    forecast = page.locator(".h-check").locator("visible=true").first
    expect(forecast).to_contain_text(re.compile(r"Quicker saves about [1-9]\d% of the steps' time"))
    page.fill("#paint-prompt textarea", "a ball that is quickly painted")
    before = len(opened.jobs())
    page.keyboard.press("Control+Enter")
    until(lambda: len(opened.jobs()) > before and opened.jobs()[-1]["state"] == "finished", LOADING_S)
    assert opened.jobs()[-1]["request"]["quicker"] == "much"
    choose(page, "#paint-quicker", "Off")
    until(lambda: opened.settings()["paint"]["quicker"] == "off")
    expect(forecast).not_to_contain_text("Quicker saves")
    go(page, "shelf")
    page.locator("#h-shelf .h-creation").first.get_by_role("button", name="reuse").click()
    expect(page.locator("#paint-quicker input")).to_have_value("Much")
    choose(page, "#paint-quicker", "Off")
    page.fill("#paint-steps input", "4")
    page.keyboard.press("Tab")
    until(lambda: [opened.settings()["paint"][each] for each in ("quicker", "steps")] == ["off", 4])
