"""The window's main ways in a real browser, its engine in a real process, tiny models in the place of large ones."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image
from playwright.sync_api import Page, Route, expect

from tests.support.hub import cached
from tests.support.waiting import LOADING_S, until
from tests.support.window import (
    LOADING_MS,
    LONG_SCRIPT,
    SCRIPT,
    SETTLED,
    Open,
    Visit,
    choose,
    go,
    held,
    needs_chromium,
    pass_looks,
    unfold,
    until_seen,
)

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.long, needs_chromium]


def speak(page: Page, opened: Open, text: str) -> str:
    return asked(page, opened, "speech", "#speak-text", text)


def paint(page: Page, opened: Open, prompt: str) -> str:
    return asked(page, opened, "picture", "#paint-prompt", prompt)


def asked(page: Page, opened: Open, kind: str, field: str, words: str) -> str:
    """Typed and begun by the keyboard; the job, once the page shows it and no longer an earlier one."""
    before = len(opened.jobs())
    page.fill(f"{field} textarea", words)
    page.keyboard.press("Control+Enter")
    until(lambda: len(opened.jobs()) > before)
    job: str = opened.jobs()[-1]["id"]
    page.wait_for_function("([kind, job]) => Hearth.live.state[kind]?.job === job", arg=[kind, job])
    return job


def ended(opened: Open, state: str = "finished") -> None:
    until(lambda: opened.jobs()[-1]["state"] not in ("queued", "running"), LOADING_S)
    job = opened.jobs()[-1]
    assert job["state"] == state, job


def test_a_script_is_checked_spoken_and_a_part_done_again(visit: Visit, opened: Open) -> None:
    page = visit()
    page.fill("#speak-text textarea", SCRIPT + " [S3] Who?")
    expect(page.locator("#h-script .h-check .h-badge")).to_have_class(re.compile("careful"))  # two voices at a time are kept
    expect(page.locator("#h-script .h-turns li").first).to_contain_text("warm")
    expect(page.locator("#h-script .h-turns .h-badge")).to_have_text(["S1", "S2", "S3"])
    expect(page.locator("#h-script .h-turns .h-badge").nth(2)).to_have_class("h-badge s3")
    speak(page, opened, SCRIPT)
    expect(page.locator("#h-sound .h-player")).to_be_visible(timeout=LOADING_MS)
    expect(page.locator("#h-parts .h-part")).to_have_count(2)
    expect(page.locator("#h-parts .h-number.right")).to_have_count(2)
    href = page.locator("#h-sound a[download]").first.get_attribute("href")
    sound = page.request.get(f"{opened.address.rstrip('/')}/{href}")
    assert sound.ok and sound.body()[:4] == b"RIFF"
    page.select_option("#h-sound .h-format", "flac")
    href = page.locator("#h-sound a[download]").get_attribute("href")
    assert page.request.get(f"{opened.address.rstrip('/')}/{href}").body()[:4] == b"fLaC"
    first = opened.jobs()[-1]
    page.locator("#h-parts .h-again").nth(1).press("Enter")
    until(lambda: opened.jobs()[-1]["id"] != first["id"])
    ended(opened)
    again = opened.jobs()[-1]["request"]
    assert again["only_parts"] == [1] and len(again["keep"]) == 2
    expect(page.locator("#h-parts .h-number.right")).to_have_count(2)  # the part that was kept can still be played and redone
    expect(page.locator("#h-parts .h-again").locator("visible=true")).to_have_count(2)
    expect(page.locator("#h-parts .h-again").nth(1)).to_be_focused()  # whoever goes by keyboard is where they were


@pytest.mark.slow
@pytest.mark.parametrize(("tab", "field", "words"), [("speak", "speak-text", "(laughs)"), ("paint", "paint-prompt", "dragon")])
def test_what_a_starter_cannot_do_is_told_while_it_is_typed(visit: Visit, opened: Open, tab: str, field: str, words: str) -> None:
    """Of the model that is chosen, and no longer once another is."""
    page, kept = visit(tab), opened.settings()[tab]["model"]
    problems = page.locator({"speak": "#h-script .h-problems li", "paint": "#h-prompt li"}[tab]).filter(has_text=words)
    if tab == "speak":
        unfold(page, "Settings")
    mine = page.locator(f"#{tab}-model input").input_value()
    page.fill(f"#{field} textarea", f"a red {words}")
    choose(page, f"#{tab}-model", {"speak": "Starter voice", "paint": "Starter painter"}[tab])
    expect(problems).to_be_visible()
    expect(problems.get_by_role("button", name="Download it")).to_be_visible()
    page.fill(f"#{field} textarea", "a red house")
    expect(problems).to_have_count(0)
    page.fill(f"#{field} textarea", f"a big {words}")
    expect(problems).to_have_count(1)
    choose(page, f"#{tab}-model", mine)
    expect(problems).to_have_count(0)
    until(lambda: opened.settings()[tab]["model"] == kept)  # for the tests that follow


@pytest.mark.slow
def test_what_the_starter_paints_instead_is_named_and_taken_with_a_press(visit: Visit, opened: Open) -> None:
    page, kept = visit("paint"), opened.settings()["paint"]["model"]
    mine = page.locator("#paint-model input").input_value()
    prompt, problems = page.locator("#paint-prompt textarea"), page.locator("#h-prompt li")
    choose(page, "#paint-model", "Starter painter")
    prompt.fill("a yacht on the lake")
    expect(problems).to_have_text("Painting: the sea with a boat.")
    prompt.fill("quarterly report")
    offered = problems.filter(has_text="cannot paint: quarterly, report.").get_by_role("button")
    expect(offered).to_have_count(4)  # three captions, and a model that paints anything
    words = offered.nth(1).text_content() or ""
    offered.nth(1).click()
    expect(prompt).to_have_value(words)
    expect(problems).to_have_count(0)
    prompt.fill("two red circles and a blue star")
    expect(problems).to_have_count(0)
    prompt.fill("two red circles and a dragon")
    nearest = "two red circles"
    expect(problems.filter(has_text=nearest)).to_contain_text("Changed or left out: dragon.")
    paint(page, opened, "two red circles and a dragon")
    ended(opened)
    expect(page.locator("#h-canvas .h-easel img")).to_be_visible()
    said = page.locator("#h-canvas .h-said")
    expect(said).not_to_contain_text("Painting:")  # it stands under the prompt
    prompt.fill("a yacht on the lake")
    expect(said).to_contain_text(f"Painting: {nearest}.")  # of the picture that is shown
    prompt.fill("two red circles and a dragon")
    problems.get_by_role("button", name="Use this caption").click()
    expect(prompt).to_have_value(nearest)
    expect(problems).to_have_count(0)
    choose(page, "#paint-model", mine)
    until(lambda: opened.settings()["paint"]["model"] == kept)  # for the tests that follow


LARGER = {
    "speak": ("nari-labs/Dia-1.6B-0626", "descript/dac_44khz"),
    "paint": ("stable-diffusion-v1-5/stable-diffusion-v1-5", "latent-consistency/lcm-lora-sdv1-5"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tab", "field", "words", "title"),
    [("speak", "speak-text", "(laughs)", "Dia 1.6B"), ("paint", "paint-prompt", "dragon", "Stable Diffusion 1.5")],
)
def test_a_larger_model_that_is_here_is_used_and_not_got(visit: Visit, opened: Open, tab: str, field: str, words: str, title: str) -> None:
    """It comes while the words stand there, and is looked for when the tab is opened again."""
    page, kept = visit(tab), opened.settings()[tab]["model"]
    problems = page.locator({"speak": "#h-script .h-problems li", "paint": "#h-prompt li"}[tab]).filter(has_text=words)
    if tab == "speak":
        unfold(page, "Settings")
    mine = page.locator(f"#{tab}-model input").input_value()
    page.fill(f"#{field} textarea", f"a {words}")
    choose(page, f"#{tab}-model", {"speak": "Starter voice", "paint": "Starter painter"}[tab])
    expect(problems.get_by_role("button", name="Download it")).to_be_visible()
    whole, beside = (cached(opened.home / "models", repo) for repo in LARGER[tab])
    if tab == "speak":
        for folder in (whole, beside):
            shutil.copytree(kept, folder, dirs_exist_ok=True)
    else:
        shutil.copytree(kept, whole, dirs_exist_ok=True)
        for weights in whole.rglob("*.safetensors"):
            weights.rename(weights.with_suffix(".fp16.safetensors"))
        (beside / "pytorch_lora_weights.safetensors").touch()
    go(page, "models")
    go(page, tab)
    problems.get_by_role("button", name="Use it").click()
    expect(page.locator(f"#{tab}-model input")).to_have_value(title)
    expect(problems).to_have_count(0)
    choose(page, f"#{tab}-model", mine)
    until(lambda: opened.settings()[tab]["model"] == kept)
    for each in LARGER[tab]:
        shutil.rmtree(cached(opened.home / "models", each).parents[1])


LISTEN = """() => new MutationObserver((_, watcher) => {
  const button = document.querySelector("#h-parts .h-live:not([hidden])");
  if (!button) return;
  watcher.disconnect();
  window.heard = [...document.querySelectorAll("#h-parts .h-part")].indexOf(button.closest(".h-part"));
  button.click();
}).observe(document.body, { subtree: true, childList: true, attributes: true })"""
"""It clicks faster than a person could: the tiny voice speaks a part within a second."""


@pytest.mark.slow
def test_a_part_is_heard_to_its_end_while_it_is_made(visit: Visit, opened: Open) -> None:
    page = visit()
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url.rsplit("/", 1)[-1].split("?")[0]))
    page.evaluate(LISTEN)
    speak(page, opened, " (pause 0.2s) ".join([SCRIPT] * 4))
    page.wait_for_function("window.heard >= 0", timeout=LOADING_MS)
    index = page.evaluate("window.heard")
    expect(page.locator("#h-parts .h-number").nth(index)).to_have_class(re.compile("right"))
    expect(page.locator("#h-parts .h-live").nth(index)).to_be_hidden()
    ended(opened)
    mine = [each for each in fetched if each.endswith(".wav") and each.split("-")[1][:3] == f"{index:03d}"]
    assert mine[0] == f"sound-{index:03d}-000.wav" and mine[-1] == f"part-{index:03d}.wav", "piece by piece, then the rest"


def test_stop_keeps_what_is_there(visit: Visit, opened: Open) -> None:
    page = visit()
    speak(page, opened, LONG_SCRIPT)
    page.wait_for_selector("#h-parts .h-number.right", timeout=LOADING_MS)
    page.keyboard.press("Escape")
    ended(opened, "stopped")
    kept = opened.rows(f"SELECT path, whole FROM creations WHERE job='{opened.jobs()[-1]['id']}'")
    assert len(kept) == 1 and not kept[0][1] and Path(kept[0][0]).stat().st_size > 44, kept


@pytest.mark.slow
def test_a_job_outlives_the_page_and_a_killed_engine(visit: Visit, opened: Open) -> None:
    page = visit()
    job = speak(page, opened, " (pause 0.2s) ".join([SCRIPT] * 6))
    parts = opened.home / "scratch" / "jobs" / job
    until(lambda: (parts / "part-000.json").is_file(), LOADING_S)
    opened.engine().kill()
    made = (parts / "part-000.wav").stat().st_mtime_ns
    page.reload()
    expect(page.locator("#h-parts .h-part")).to_have_count(12)
    assert opened.jobs()[-1]["state"] in ("queued", "running"), "the page was to be loaded in the middle of the run"
    expect(page.locator("#h-parts .h-said")).to_contain_text("stopped the engine")
    expect(page.locator("#h-sound .h-player")).to_be_visible(timeout=LOADING_MS)
    ended(opened)
    assert opened.jobs()[-1]["attempts"] == 2
    assert (parts / "part-000.wav").stat().st_mtime_ns == made, "what was finished is not done again"


def test_a_picture_is_painted_and_its_settings_come_back_from_its_file(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    unfold(page, "Settings")
    expect(page.locator("#paint-steps input")).to_have_value("4")
    for own in ("seed", "guidance"):
        expect(page.locator(f"#paint-{own} input")).to_have_value("")
    paint(page, opened, "a small boat at sunset")
    ended(opened)
    expect(page.locator("#h-canvas .h-acts a")).to_be_visible()
    painted = opened.jobs()[-1]["request"]
    assert painted["prompt"] == "a small boat at sunset" and painted["steps"] == 4 and painted["seed"] is None
    ((file,),) = opened.rows(f"SELECT path FROM creations WHERE job='{opened.jobs()[-1]['id']}'")
    page.fill("#paint-prompt textarea", "something else")
    page.set_input_files("#paint-dropped input[type=file]", file)
    expect(page.locator("#paint-prompt textarea")).to_have_value("a small boat at sunset")
    expect(page.locator("#paint-seed input")).to_have_value(re.compile(r"^\d+$"))
    page.fill("#paint-prompt textarea", "something else again")
    page.set_input_files("#paint-dropped input[type=file]", file)  # and it takes another
    expect(page.locator("#paint-prompt textarea")).to_have_value("a small boat at sunset")
    for side in ("width", "height"):
        expect(page.locator(f"#paint-{side} input")).to_have_value("128")
    page.focus("#paint-size input")
    page.keyboard.press("Tab")  # which chooses nothing
    pass_looks(page)
    expect(page.locator("#paint-width input")).to_have_value("128")
    page.click("#paint-size input")
    page.get_by_role("listbox").get_by_role("option").first.click()  # what is chosen counts, and not what came with the picture
    for side in ("width", "height"):
        expect(page.locator(f"#paint-{side} input")).to_have_value("")


@pytest.mark.slow
def test_a_mask_is_painted_over_a_picture(visit: Visit, opened: Open, tmp_path: Path) -> None:
    start = tmp_path / "start.png"
    Image.new("RGB", (128, 128), "teal").save(start)
    page = visit("paint")
    unfold(page, "Start from a picture")
    page.set_input_files("#h-sketch input[type=file]", start)
    canvas = page.locator("#h-sketch canvas")
    expect(canvas).to_be_visible()
    canvas.evaluate("canvas => canvas.scrollIntoView({ block: 'center' })")  # from under the bar that stays
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 10, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 20, box["y"] + box["height"] / 2 + 10, steps=6)
    page.mouse.up()
    before = len(opened.jobs())
    page.fill("#paint-prompt textarea", "a red ball")
    page.click("#paint-go")
    until(lambda: len(opened.jobs()) > before)
    request = opened.jobs()[-1]["request"]
    assert request["image"] and request["mask"], request
    with Image.open(request["mask"]) as mask:
        light = sum(mask.histogram()[128:])
        assert 0 < light < mask.width * mask.height / 2
    ended(opened)


def test_a_voice_is_kept_from_a_recording(visit: Visit, opened: Open, tmp_path: Path) -> None:
    """The recorder is fetched when its drawer is opened."""
    clip = tmp_path / "clip.wav"
    soundfile.write(clip, 0.2 * np.sin(np.arange(6 * 16000) * 0.08), 16000)
    page = visit()
    unfold(page, "Create a voice from a recording")
    page.set_input_files("#speak-clip input[type=file]", clip)
    expect(page.locator("#speak-clip [data-testid^=waveform]").first).to_be_visible()
    page.get_by_label("Exactly what is said in the recording").fill("[S1] Six seconds of one tone.")
    page.get_by_label("Name", exact=True).first.fill("Tone")
    page.locator("button.secondary", has_text="Save voice").click()
    expect(page.locator("#speak-voice input")).to_have_value("Tone")
    assert [each.name for each in (opened.home / "voices").glob("*.wav")] == ["tone.wav"]
    page.locator("button.secondary", has_text="Save voice").click()
    expect(page.locator("#speak-message .h-trouble")).to_contain_text("A voice named Tone already exists")
    drop, asked = page.locator("#speak-voice-delete"), page.get_by_role("alertdialog")
    no = held(page, lambda values: values[:1] == [None])
    drop.press("Enter")
    expect(asked).to_contain_text("Tone")
    page.keyboard.press("Escape")
    expect(drop).to_be_focused()
    until_seen(page, lambda: bool(no))
    drop.click()  # and is heard, though the server has not yet been told of the no
    no[0].continue_()
    expect(asked).to_contain_text("Tone")
    assert (opened.home / "voices" / "tone.wav").is_file(), "Esc is no"
    asked.get_by_role("button", name="Delete").click()
    expect(page.locator("#speak-voice input")).to_have_value("New random voice")
    expect(drop).to_be_hidden()
    assert not list((opened.home / "voices").iterdir())


def test_the_shelf_finds_favours_bins_and_restores(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    paint(page, opened, "a lighthouse under a red sea")
    ended(opened)
    go(page, "shelf")
    cards = page.locator("#h-shelf .h-creation")
    expect(cards.first).to_be_visible()
    page.fill("#h-shelf input[type=search]", "lighthouse")
    expect(cards).to_have_count(1)
    cards.first.get_by_role("button", name="favourite").click()
    expect(cards.first.get_by_role("button", name="favourite")).to_have_attribute("aria-pressed", "true")
    cards.first.get_by_role("checkbox", name="Select for export").check()
    expect(page.locator("#h-shelf .h-zip")).to_have_text("Export 1 as a zip")
    cards.first.get_by_role("button", name="delete").click()
    expect(cards).to_have_count(0)
    expect(page.locator("#h-shelf .h-zip")).to_be_hidden()  # nothing is counted that is not to be seen
    page.check("#h-shelf .h-bin")
    expect(page.locator("#h-shelf .h-undo")).to_contain_text("Moved to the bin: 1.")
    cards.first.get_by_role("button", name="restore").click()
    expect(page.locator("#h-shelf .h-undo")).to_be_empty()
    page.uncheck("#h-shelf .h-bin")
    expect(cards).to_have_count(1)
    cards.first.get_by_role("button", name="reuse").click()
    expect(page.locator("#paint-prompt textarea")).to_have_value("a lighthouse under a red sea")


@pytest.mark.slow
def test_the_answer_to_an_earlier_search_does_not_replace_a_later_one(visit: Visit) -> None:
    page = visit("shelf")
    search, earlier = page.locator("#h-shelf input[type=search]"), list[Route]()
    page.route(re.compile("hearth/shelf.*words=earlier"), lambda route: earlier.append(route))
    search.fill("earlier")
    until_seen(page, lambda: bool(earlier))
    search.fill("a later search")
    expect(page.locator("#h-shelf .h-none")).to_have_text("No matching creations.")
    with page.expect_response(re.compile("words=earlier")):
        earlier[0].fulfill(json={"creations": [], "models": [{"id": "late", "title": "Too late"}], "more": False})
    page.evaluate(SETTLED)
    expect(page.locator("#h-shelf .h-model-pick option", has_text="Too late")).to_have_count(0)


@pytest.mark.slow
def test_what_is_reused_is_not_written_over_by_an_older_draft(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    prompt = page.locator("#paint-prompt textarea")
    paint(page, opened, "a mill beside a river")
    ended(opened)
    prompt.fill("a draft of this morning")
    until(lambda: opened.settings().get("drafts", {}).get("paint-prompt") == "a draft of this morning")
    page.close()
    page = visit("shelf")  # its Paint was never open
    page.fill("#h-shelf input[type=search]", "mill beside")
    page.locator("#h-shelf .h-creation").first.get_by_role("button", name="reuse").click()
    prompt = page.locator("#paint-prompt textarea")
    expect(prompt).to_have_value("a mill beside a river")
    until(lambda: opened.settings().get("drafts", {}).get("paint-prompt") == "a mill beside a river")
    expect(prompt).to_have_value("a mill beside a river")
    told = page.locator(".h-rewritten").locator("visible=true")
    expect(told.locator("span")).to_have_text("The text of an earlier creation replaced yours.")
    told.get_by_role("button", name="Undo").click()
    expect(prompt).to_have_value("a draft of this morning")
    prompt.fill("a second draft")  # now that Paint is open
    go(page, "shelf")
    page.locator("#h-shelf .h-creation").first.get_by_role("button", name="reuse").click()
    expect(prompt).to_have_value("a mill beside a river")
    expect(told.locator("span")).to_have_text("The text of an earlier creation replaced yours.")
    prompt.press("End")
    prompt.press("!")
    expect(told).to_have_count(0)
    page.locator("#h-samples .h-earlier").click()
    expect(prompt).to_have_value("a second draft")
    told.get_by_role("button", name="Undo").click()
    prompt.fill("a mill beside a river")
    until(lambda: opened.settings().get("drafts", {}).get("paint-prompt") == "a mill beside a river")
    page.close()
    expect(visit("paint").locator("#paint-prompt textarea")).to_have_value("a mill beside a river")


@pytest.mark.slow
def test_two_windows_keep_their_own_drafts(visit: Visit, opened: Open) -> None:
    """A reload brought what the other window had typed last, and what stood here was gone."""
    pages = [visit("paint"), visit("paint")]
    for name, page in zip(("one", "two"), pages, strict=True):
        page.fill("#paint-prompt textarea", f"a boat of window {name}")
        until(lambda name=name: opened.settings().get("drafts", {}).get("paint-prompt") == f"a boat of window {name}")
    for page in pages:
        page.reload()
        page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    for name, page in zip(("one", "two"), pages, strict=True):
        expect(page.locator("#paint-prompt textarea")).to_have_value(f"a boat of window {name}")
    expect(visit("paint").locator("#paint-prompt textarea")).to_have_value("a boat of window two")  # a new one: what was typed last


def test_under_a_panel_no_key_begins_anything(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    page.fill("#paint-prompt textarea", "a tree that nobody asked for yet")
    before = len(opened.jobs())
    page.click("[data-h-share]")
    expect(page.locator("dialog[open]")).to_be_visible()
    page.keyboard.press("Control+Enter")
    pass_looks(page)
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    until(lambda: len(opened.jobs()) > before)
    ended(opened)
    assert len(opened.jobs()) == before + 1, "the first press began one, too"


@pytest.mark.slow
def test_a_late_answer_leaves_the_focus_where_the_person_went(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    paint(page, opened, "a bridge that is deleted late")
    ended(opened)
    go(page, "shelf")
    search, cards, late = page.locator("#h-shelf input[type=search]"), page.locator("#h-shelf .h-creation"), list[Route]()
    search.fill("deleted late")
    expect(cards).to_have_count(1)
    page.route(re.compile("hearth/shelf/.*/delete"), lambda route: late.append(route))
    cards.get_by_role("button", name="Delete").click()
    search.focus()
    until_seen(page, lambda: bool(late))
    late[0].continue_()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    expect(cards).to_have_count(0)
    expect(search).to_be_focused()


@pytest.mark.slow
def test_what_can_be_undone_is_not_asked_about_and_what_cannot_is(visit: Visit, opened: Open) -> None:
    page = visit("paint")
    paint(page, opened, "a tower that nobody needs")
    ended(opened)
    go(page, "shelf")
    page.fill("#h-shelf input[type=search]", "nobody needs")
    cards = page.locator("#h-shelf .h-creation")
    expect(cards).to_have_count(1)
    cards.get_by_role("button", name="Delete").press("Enter")
    expect(cards).to_have_count(0)
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    undo.press("Enter")
    expect(cards.get_by_role("button", name="Delete")).to_be_focused()
    expect(undo).to_have_count(0)
    cards.get_by_role("button", name="Delete").click()
    expect(undo).to_be_focused()
    page.check("#h-shelf .h-bin")
    empty = page.locator("#h-shelf .h-empty-bin")
    expect(empty).to_be_visible()
    expect(cards).to_have_count(1)
    empty.press("Enter")
    asked = page.get_by_role("alertdialog")
    expect(asked).to_contain_text("Permanently")
    for _ in range(5):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('.gradio-container')"), "the focus stays in the dialog"
    page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    expect(empty).to_be_focused()
    expect(cards).to_have_count(1)
    empty.click()
    asked.get_by_role("button", name="Empty bin").click()
    expect(cards).to_have_count(0)
    expect(page.locator("#h-shelf .h-bin")).to_be_focused()
    assert not opened.rows("SELECT id FROM creations WHERE text LIKE '%nobody needs%'")
