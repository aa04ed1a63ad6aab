"""What is seldom seen: failures with their cures, an engine that is gone, the queue, two pictures side by side. For everybody, on every screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.window import WAIT_MS, Contexts, Open, await_script, go, needs_chromium, shut_out, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.long, needs_chromium]

ALTERED = """(more) => {
  window.asked ??= window.fetch;
  window.fetch = async (url, options) => {
    if (!String(url).includes("hearth/live")) return window.asked(url, options);
    if (more === null) throw new Error("nobody answers");
    const body = await (await window.asked(url, options)).json();
    for (const [name, value] of Object.entries(more)) body[name] = name === "strip" ? { ...body.strip, ...value } : value;
    return new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
  };
}"""
"""What is given takes the place of what the server says: a machine without memory or an engine that dies cannot be brought about here."""
WORDS = "A sentence of some length that says what was asked for, what stands in the way, and what can be done about it now."


@pytest.fixture(scope="module", params=[pytest.param(("light", 1280), marks=pytest.mark.slow), ("dark", 390)])
def page(request: pytest.FixtureRequest, contexts: Contexts, opened: Open) -> Iterator[Page]:
    """One for all questions on one screen: to load it takes longer than they do."""
    scheme, width = request.param
    page = contexts.of({"color_scheme": scheme, "viewport": {"width": width, "height": 800}}).new_page()
    page.goto(opened.address)
    await_script(page)
    yield page
    page.close()


def alter(page: Page, **more: Any) -> None:
    page.evaluate(ALTERED, more)


def job(kind: str, cure: str = "", **more: Any) -> dict[str, Any]:
    end = {"kind": "failed", "text": WORDS, "cure": cure} if cure else {"kind": "finished", "seconds": 0, "elapsed_s": 2.0}
    said = [{"kind": "adjusted", "text": "The picture is decoded in tiles."}]
    seen = {"job": f"{kind} {cure}", "parts": [], "share": 0.4, "said": said, "end": end, "doing": "", "place": 0, "results": []}
    return {kind: seen | ({"preview": "", "rate": "", "listed": [], "left": []} if kind == "picture" else {"pace": 1.0}) | more}


@pytest.mark.slow
def test_a_script_that_scrolls_is_reached_by_keyboard(page: Page) -> None:
    go(page, "speak")
    box, turns = page.locator("#speak-text textarea"), page.locator(".h-turns")
    before = box.input_value()
    box.fill("\n".join(f"[S{n % 2 + 1}] Hello, how are you?" for n in range(14)))
    expect(turns.locator("li")).to_have_count(14)
    assert not shut_out(page)
    turns.focus()
    page.keyboard.press("End")
    page.wait_for_function("document.querySelector('.h-turns').scrollTop > 0")
    box.fill(before)


@pytest.mark.slow
def test_a_failure_stands_where_it_is_seen_with_its_cure(page: Page) -> None:
    go(page, "paint")
    for tab, kind, area, cure, buttons in (
        ("paint", "picture", "#h-canvas", "smaller", ["Retry smaller", "Free memory", "Choose another model"]),
        ("paint", "picture", "#h-canvas", "get:sd15", ["Download it"]),
        ("speak", "speech", "#h-parts", "report", ["Copy report"]),
        ("speak", "speech", "#h-parts", "go-on", ["Resume", "Copy report"]),
        ("paint", "picture", "#h-canvas", "open-folder", ["Open folder", "Resume"]),
    ):
        go(page, tab)
        alter(page, **job(kind, cure))
        expect(page.locator(f"{area} .h-trouble")).to_have_text(WORDS)
        expect(page.locator(f"{area} .h-cure button")).to_have_text([*buttons, "Why?"])
        assert not shut_out(page)
    go(page, "paint")
    expect(page.locator("#h-canvas .h-easel")).to_be_hidden()  # An empty frame would push it out of sight.


@pytest.mark.slow
def test_an_engine_that_is_gone_covers_nothing(page: Page) -> None:
    go(page, "speak")
    strip = {"doing": "engine restarting", "model": "", "memory": None}
    alter(page, strip=strip, interrupted={"jobs": ["1"], "text": "[S1] " + WORDS})
    expect(page.locator("#h-interrupted")).to_be_visible()
    assert not shut_out(page)
    banner, strip_, card = (page.locator(each).first.bounding_box() for each in ("#h-interrupted", "#h-strip", "#h-rooms .h-card"))
    assert banner and strip_ and card
    assert strip_["y"] + strip_["height"] <= banner["y"] and banner["y"] + banner["height"] <= card["y"]
    page.evaluate(ALTERED, None)
    note = page.locator(".h-away-note")
    expect(note).to_contain_text("Start it again")
    box = note.bounding_box()
    assert box
    middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    assert page.evaluate("([x, y]) => Boolean(document.elementFromPoint(x, y).closest('.h-away-note'))", middle)
    assert not shut_out(page)


@pytest.mark.slow
def test_what_keeps_every_job_from_running_is_told_with_its_buttons(page: Page) -> None:
    go(page, "speak")
    page.route("**/hearth/engine/*", lambda route: route.fulfill(json={"text": ""}))
    alter(page, interrupted={"jobs": ["1"], "text": WORDS}, standing={"text": f"{WORDS} {WORDS}", "cure": "repair"})
    banner = page.locator("#h-interrupted")
    expect(banner).to_have_text(f"{WORDS} {WORDS}Try againRepairCopy report")
    assert not shut_out(page)
    above, below = banner.bounding_box(), page.locator("#h-rooms .h-card").first.bounding_box()
    assert above and below and above["y"] + above["height"] <= below["y"], "it covers nothing"
    for name, act in (("Try again", "again"), ("Repair", "repair")):
        with page.expect_response(f"**/hearth/engine/{act}"):
            banner.get_by_role("button", name=name).click()
    alter(page, standing={"text": WORDS, "cure": ""})
    expect(banner).to_have_text(f"{WORDS}Copy report")
    alter(page, interrupted={"jobs": ["1"], "text": WORDS}, standing=None)
    expect(banner.get_by_role("button", name="Discard")).to_be_visible()
    alter(page, interrupted={"jobs": ["1", "2"], "text": WORDS}, standing=None)
    expect(banner).to_have_text(f"{WORDS}Resume allDiscard all")
    resumed: list[str] = []
    page.route("**/hearth/queue/*/go-on", lambda route: (resumed.append(route.request.url.split("/")[-2]), route.fulfill(json={}))[1])
    banner.get_by_role("button", name="Resume all").click()
    until_seen(page, lambda: resumed == ["1", "2"])
    page.unroute("**/hearth/queue/*/go-on")
    page.unroute("**/hearth/engine/*")


@pytest.mark.slow
def test_the_queue_is_read_and_emptied(page: Page) -> None:
    go(page, "speak")
    waiting = [
        {"id": f"none-{place}", "place": place, "text": f"[S1] {WORDS}", "kind": "speech", "facts": f"Starter voice · Voice {place}"}
        for place in (1, 2, 3)
    ]
    making = {"id": "x", "text": "a boat", "kind": "picture", "facts": "512 x 512"}
    alter(page, queue=waiting, making=making, strip={"job": "x", "doing": "painting, step 12 of 20", "rate": "7.4 steps/s", "eta_s": 34})
    page.locator(".h-waiting").click()
    queue = page.get_by_role("dialog", name="Queue")
    expect(queue.locator("li")).to_have_count(4)
    expect(queue.locator("li .h-number")).to_have_text(["now", "1", "2", "3"])
    expect(queue.locator("li .h-soft")).to_have_text(["512 x 512", *(f"Starter voice · Voice {place}" for place in (1, 2, 3))])
    expect(queue.locator("li").first.get_by_role("button")).to_have_count(0)  # it is stopped in its tab
    words = queue.locator(".h-sounding").first.bounding_box()
    assert words and words["width"] > 200, "there is room for the words"
    assert not shut_out(page)
    queue.get_by_role("button", name="Clear queue").click()
    sure = page.get_by_role("alertdialog")
    expect(sure.get_by_role("button").first).to_be_focused()
    assert not shut_out(page)
    page.keyboard.press("Escape")
    expect(sure).to_have_count(0)
    expect(queue).to_be_visible()
    begun = "The job began before it could be removed, and runs on."
    page.route("**/hearth/queue/none-1/remove", lambda route: route.fulfill(status=409, json={"trouble": begun, "cure": ""}))
    queue.get_by_role("button", name="Remove").first.click()
    expect(queue.get_by_role("status")).to_have_text(begun)
    page.unroute("**/hearth/queue/none-1/remove")
    page.keyboard.press("Escape")
    expect(queue).to_have_count(0)
    expect(page.locator(".h-waiting")).to_be_focused()


@pytest.mark.slow
def test_the_tabs_title_tells_how_far_the_work_is(page: Page) -> None:
    ended = job("picture", "report")
    going = {"picture": ended["picture"] | {"end": None}, "strip": {"job": ended["picture"]["job"], "doing": "painting, step 12 of 20"}}
    ended["strip"] = {"job": "", "doing": "ready"}
    alter(page, **going)
    expect(page).to_have_title("40% · Hearth")
    alter(page, **ended)
    expect(page).to_have_title("Hearth")  # whoever looks sees it
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    alter(page, **going)
    expect(page).to_have_title("40% · Hearth", timeout=WAIT_MS)
    alter(page, **ended)
    expect(page).to_have_title("Done. · Hearth", timeout=WAIT_MS)
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).to_have_title("Hearth", timeout=WAIT_MS)


@pytest.mark.slow
def test_a_busy_strip_cuts_nothing_off_at_any_width(page: Page) -> None:
    """Between 641 and 1,300 px Details stood outside, or a third line below, where a guest's job ran and others waited."""
    doing = "picture 3 of 8, step 12 of 30, decoding tiles"
    strip = {"job": "x", "model": "Stable Diffusion XL inpainting, a_checkpoint_v12_final.safetensors", "of_guest": True,
             "guest_name": "Wilhelmina Charlotte Ott", "attention": "folded GQA", "doing": doing, "eta_s": 5400}  # fmt: skip
    alter(page, strip=strip, queue=[{"id": "a", "place": 1, "text": "x", "kind": "speech", "facts": ""}])
    expect(page.locator("#h-strip .h-doing")).to_have_text(doing)
    expect(page.locator("#h-strip .h-waiting")).to_be_visible()
    before = page.viewport_size
    assert before is not None
    for width in (641, 760, 901, 1041, 1181, 1300, 1441):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("(width) => innerWidth === width", arg=width)
        over = page.locator("#h-strip").evaluate(
            "(strip) => [strip.scrollWidth - strip.clientWidth, strip.scrollHeight - strip.clientHeight]"
        )
        assert over == [0, 0], f"at {width} px"
    page.set_viewport_size(before)


@pytest.mark.slow
def test_two_pictures_are_compared_by_hand_and_by_key(page: Page) -> None:
    go(page, "paint")
    two = [{"url": f"hearth/static/icon-{side}.png", "id": side, "name": f"{side}.png", "index": side, "seed": 1} for side in (64, 256)]
    alter(page, **job("picture", parts=two, results=two))
    page.get_by_role("button", name="Show picture 1").wait_for()  # not the picture of an earlier test any more
    select = page.get_by_role("button", name="Select to compare")
    for pressed in ("true", "false", "true"):
        select.click()
        expect(select).to_have_attribute("aria-pressed", pressed)
        expect(select).to_be_focused()
    page.get_by_role("button", name="Show picture 1").click()
    page.get_by_role("button", name="Compare with the selected picture").click()
    slider = page.get_by_role("slider", name="Position of the dividing line")
    expect(slider).to_be_focused()
    slider.press("Home")
    over = page.locator(".h-compare img").nth(1)
    expect(over).to_have_css("clip-path", "inset(0px 0px 0px 0%)")
    assert not shut_out(page)
    box, screen = page.locator(".h-compare").bounding_box(), page.viewport_size
    assert box and screen and box["x"] >= 0 and box["x"] + box["width"] <= screen["width"] and box["y"] + box["height"] <= screen["height"]
    page.keyboard.press("Escape")
    expect(page.locator(".h-compare")).to_have_count(0)
    expect(select).to_be_focused()


@pytest.mark.slow
def test_a_picture_is_compared_with_one_of_an_earlier_run(page: Page) -> None:
    """The one selected was forgotten as soon as the next was painted."""
    go(page, "paint")
    for side in (64, 256):
        one = [{"url": f"hearth/static/icon-{side}.png", "id": side, "name": f"{side}.png", "index": 0, "seed": 1}]
        alter(page, **job("picture", parts=one, results=one, job=f"of {side}"))
        expect(page.locator("#h-canvas .h-easel img")).to_have_attribute("src", str(one[0]["url"]))
        page.get_by_role("button", name="Select to compare" if side == 64 else "Compare with the selected picture").click()
    expect(page.locator(".h-compare img").first).to_have_attribute("src", "hearth/static/icon-64.png")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Select to compare")).to_have_attribute("aria-pressed", "false")


def test_no_space_stands_between_chinese_words(page: Page) -> None:
    """As `fill` of app/base/sentence.py has it: a value that turned out Chinese kept the space that stands beside Latin letters."""
    say = "([template, title]) => Hearth.t('none', template, { title })"
    assert page.evaluate(say, ["\u4e0b\u8f7d {title} \u540e", "\u8bed\u97f3"]) == "\u4e0b\u8f7d\u8bed\u97f3\u540e"
    assert page.evaluate(say, ["\u4e0b\u8f7d {title} \u540e", "Dia 1.6B"]) == "\u4e0b\u8f7d Dia 1.6B \u540e"


@pytest.mark.slow
def test_a_part_soon_done_offers_no_live_listening(page: Page) -> None:
    """The button of each part of a second came and went."""
    go(page, "speak")
    part = {"index": 1, "total": 2, "text": "[S1] Warm.", "state": "now", "seconds": 0.4, "pieces": ["one"], "whole": False}
    first = {**part, "index": 0, "state": "done", "pace": 1.0, "url": "hearth/none", "pieces": [], "whole": True, "peaks": []}
    page.evaluate("""() => {
      new MutationObserver(() => {
        const button = document.querySelectorAll("#h-parts .h-live")[1];
        if (button) window.row ??= performance.now();
      }).observe(document.querySelector("#h-parts"), { subtree: true, childList: true, attributes: true });
      const look = () => {
        const button = document.querySelectorAll("#h-parts .h-live")[1];
        if (!button?.checkVisibility({ visibilityProperty: true })) return requestAnimationFrame(look);
        window.came = performance.now();
      };
      look();
    }""")
    alter(page, **job("speech", parts=[first, part], end=None, job="in short parts", waits=""))
    expect(page.get_by_role("button", name="Listen live")).to_be_visible()
    assert page.evaluate("window.came - window.row") >= 500, "a second, but for what the two are noticed late by"


@pytest.mark.slow
def test_the_name_for_a_voice_is_put_away_by_escape(page: Page) -> None:
    """And stops no job."""
    go(page, "speak")
    one = {"url": "hearth/none", "id": "a voice", "name": "a.wav", "peaks": [0.5] * 9, "seconds": 1.0}
    alter(page, **job("speech", results=[one], end=None))
    opens, name = page.get_by_role("button", name="Save this voice"), page.get_by_label("Name for this voice")
    opens.press("Enter")
    expect(name).to_be_focused()
    name.press("Escape")
    expect(name).to_be_hidden()
    expect(opens).to_be_focused()
    expect(page.locator("button#speak-stop")).to_be_enabled()


def picture(side: int) -> dict[str, Any]:
    return {"url": f"hearth/static/icon-{side}.png", "id": side, "name": f"{side}.png", "index": 0, "seed": 1}


def grid(*results: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    cells = [{"result": each, "failed": each is None, "preview": ""} for each in results]
    sides = {"across": "steps", "columns": [str(2 + i) for i in range(len(results))], "down": "seed", "rows": ["1"]}
    return {**sides, "cells": cells, "stopped": [], "latest": True, **more}


@pytest.mark.slow
def test_a_cell_of_a_grid_is_shown_large_and_a_later_picture_folds_the_grid(page: Page) -> None:
    """The cells could only be looked at, at 128 px, and the grid stood below every later picture."""
    go(page, "paint")
    last = job("picture", parts=[picture(256)], results=[picture(256)], job="the last cell")
    alter(page, grid=grid(picture(64), picture(256)), **last)
    shown = page.locator("#h-canvas .h-easel img")
    expect(shown).to_have_attribute("src", re.compile("icon-256"))
    first = page.get_by_role("button", name="Show the picture at 2, 1")
    first.press("Enter")
    expect(shown).to_have_attribute("src", re.compile("icon-64"))
    expect(page.locator("#h-canvas .h-acts a[download]")).to_have_attribute("href", re.compile("icon-64"))
    expect(first).to_have_attribute("aria-pressed", "true")
    expect(first).to_be_focused()
    assert not shut_out(page)
    alter(page, grid=grid(None, picture(256)), **last)  # it was deleted
    expect(shown).to_have_attribute("src", re.compile("icon-256"))
    later = job("picture", parts=[picture(180)], results=[picture(180)], job="a later one")
    alter(page, grid=grid(picture(64), picture(256), latest=False), **later)
    expect(shown).to_have_attribute("src", re.compile("icon-180"))
    expect(first).to_be_hidden()
    page.locator("#h-grid summary").click()
    expect(first).to_be_visible()
    expect(first).to_have_attribute("aria-pressed", "false")


@pytest.mark.slow
def test_a_stopped_grid_is_gone_on_with(page: Page) -> None:
    go(page, "paint")
    alter(page, grid=grid(picture(64), None, stopped=["one", "two"]))
    resumed: list[str] = []
    page.route("**/hearth/queue/*/go-on", lambda route: (resumed.append(route.request.url.split("/")[-2]), route.fulfill(json={}))[1])
    page.locator("#h-grid").get_by_role("button", name="Resume").click()
    until_seen(page, lambda: resumed == ["one", "two"])
    page.unroute("**/hearth/queue/*/go-on")
    assert not shut_out(page)


def test_a_format_that_was_chosen_stays_for_the_next_sound(page: Page) -> None:
    go(page, "speak")
    for number in (1, 2):
        made: list[Any] = [{"url": f"hearth/creation/{number}", "id": number, "name": "a.wav", "peaks": [], "seconds": 1.0}]
        alter(page, **job("speech", results=made, job=f"sound {number}"))
        link = page.locator("#h-sound a[download]")
        expect(link).to_have_attribute("href", re.compile(f"creation/{number}.*format={'wav' if number == 1 else 'mp3'}$"))
        page.select_option("#h-sound .h-format", "mp3")


HEARD = """() => {
  window.heard = [];
  const live = "[role=status], [role=alert], [aria-live]";
  window.ears?.disconnect();
  window.ears = new MutationObserver((changes) => {
    for (const { target } of changes) {
      const region = (target.closest ? target : target.parentElement)?.closest(live);
      if (region && region.ariaLive !== "off") window.heard.push(region.textContent);
    }
  });
  window.ears.observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


@pytest.mark.slow
def test_a_screen_reader_hears_what_is_new_and_not_every_step(page: Page) -> None:
    go(page, "speak")
    alter(page, strip={"rate": "as it really is"})  # what another file's tests painted is drawn before anybody listens
    expect(page.locator("#h-strip .h-rate")).to_have_text("as it really is")
    page.evaluate(HEARD)
    one = {"index": 0, "text": "[S1] One.", "pace": 1.0, "state": "done", "url": "", "peaks": [], "seconds": 1.0}
    for step in range(4):
        now = {"index": 1, "text": "[S2] Two.", "state": "now", "pieces": [], "seconds": 0.3 * step}
        seen = {**job("speech", parts=[one, now])["speech"], "end": None, "said": [], "job": "heard"}
        strip = {"job": "heard", "doing": f"speaking part 2 of 2, {step}", "rate": f"{step} frames/s"}
        alter(page, speech=seen, strip=strip)
        expect(page.locator("#h-strip .h-rate")).to_have_text(f"{step} frames/s")
    done = job("speech", parts=[one, {**one, "index": 1}])["speech"] | {"job": "heard", "said": []}
    alter(page, speech=done, strip={"job": "", "doing": "ready"})
    expect(page.locator("#h-parts .h-now")).to_have_text("done in 2.0 s")
    heard = page.evaluate("window.heard")
    assert [each for each in heard if each] == ["Part 1 of 2 is ready to play.", "done in 2.0 s"], heard


@pytest.mark.slow
def test_a_part_that_stop_cut_off_does_not_look_finished(page: Page) -> None:
    go(page, "speak")
    parts = [
        {
            "index": index,
            "state": "done",
            "pace": 1.0,
            "text": f"[S1] Part {index}.",
            "seconds": 1.0,
            "whole": not index,
            "url": "data:,",
            "peaks": [0.5],
        }
        for index in range(2)
    ]
    alter(page, **job("speech", parts=parts, end={"kind": "stopped", "seconds": 2.0, "elapsed_s": 2.0}))
    rows = page.locator("#h-parts .h-part")
    expect(rows.locator("p")).to_have_text(["S1 Part 0.", "cut off by the stop: S1 Part 1."])
    for row, look in ((0, "right"), (1, "careful")):
        expect(rows.nth(row).locator(".h-number")).to_contain_class(look)
    assert not shut_out(page)


@pytest.mark.slow
def test_a_part_that_is_likely_wrong_is_marked_in_words(page: Page) -> None:
    go(page, "speak")
    done = {"state": "done", "pace": 1.0, "seconds": 1.0, "whole": True, "url": "data:,", "peaks": [0.5]}
    parts = [{**done, "index": index, "text": f"[S1] Part {index}.", "doubt": doubt} for index, doubt in enumerate(("", "long", "short"))]
    alter(page, **job("speech", parts=parts, end={"kind": "finished", "elapsed_s": 2.0}))
    rows = page.locator("#h-parts .h-part")
    expect(rows.locator("p")).to_have_text(["S1 Part 0.", "⚠ much too long: S1 Part 1.", "⚠ much too short: S1 Part 2."])
    for row, look in ((0, "right"), (1, "careful"), (2, "careful")):
        expect(rows.nth(row).locator(".h-number")).to_contain_class(look)
    parts[1]["doubt"] = ""
    alter(page, **job("speech", parts=parts, end={"kind": "finished", "elapsed_s": 2.0}))
    expect(rows.nth(1).locator("p")).to_have_text("S1 Part 1.")
    assert not shut_out(page)


@pytest.mark.slow
def test_a_stopped_job_tells_of_results_only_where_there_are_some(page: Page) -> None:
    go(page, "paint")
    end, now = {"kind": "stopped"}, page.locator("#h-canvas .h-now")
    alter(page, **job("picture", end=end))
    expect(now).to_have_text("stopped")
    alter(page, **job("picture", end=end, parts=[{"url": "data:,"}]))
    expect(now).to_have_text("stopped; finished results are kept")
    go(page, "speak")
    part = {"index": 0, "state": "waiting", "text": "[S1] Part 0."}
    alter(page, **job("speech", end=end, parts=[part]))
    expect(page.locator("#h-parts .h-now")).to_have_text("stopped")
