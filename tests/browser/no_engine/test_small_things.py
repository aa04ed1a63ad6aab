"""Scripts and prompts as they are typed, dropped and heard: in a real browser, without an engine."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page, expect

from app.engine.jobs.creation import RunSummary
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.sound import sound
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from tests.support import light_engine
from tests.support.waiting import until
from tests.support.window import await_script, drop, go, needs_chromium, open_page, pass_looks, shut_out, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

SCRIPT, PROMPT = "#speak-text textarea", "#paint-prompt textarea"


@pytest.fixture(scope="module")
def page(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    with open_page(
        browser, opened[1], locale="en-US", viewport={"width": 1280, "height": 800}, reduced_motion="reduce", color_scheme="light"
    ) as page:
        yield page


def underlined(page: Page, field: str) -> Any:
    return page.locator(f"{field} .h-underlines u")


def put_caret(page: Page, field: str, at: int) -> None:
    """As an arrow key does."""
    page.locator(field).evaluate("(box, at) => { box.focus(); box.setSelectionRange(at + 1, at + 1); }", at)
    page.keyboard.press("ArrowLeft")


@pytest.mark.slow
def test_back_opens_the_tab_before_and_closes_what_is_open(page: Page) -> None:
    """It left Hearth, from any tab."""
    for tab in ("speak", "paint", "shelf"):
        go(page, tab)
    box = page.get_by_role("dialog", name="Let others speak and paint here")
    for close in (page.go_back, lambda: page.keyboard.press("Escape")):
        page.click("[data-h-share]")
        expect(box).to_be_visible()
        close()
        expect(box).to_be_hidden()
    until(lambda: page.evaluate("history.state.open") is None)
    for tab in ("paint", "speak"):
        page.go_back()
        expect(page.locator(f'[data-tab-id="{tab}"]').first).to_have_attribute("aria-selected", "true")
    page.go_forward()
    expect(page.locator('[data-tab-id="paint"]').first).to_have_attribute("aria-selected", "true")


LATE = "() => { history.go = (by) => { window.arrive = () => { delete history.go; history.go(by); }; }; }"
"""The browser is back only once a test says so."""


def test_what_is_opened_as_a_dialog_closes_stays(page: Page) -> None:
    """The browser is back a little later: it took back the tab that was opened meanwhile, and closed the dialog."""
    box, speak = page.get_by_role("dialog", name="Let others speak and paint here"), page.locator('[data-tab-id="speak"]').first
    go(page, "paint")
    page.click("[data-h-share]")
    expect(box.locator("[role=img] svg")).to_be_visible()
    expect(box.locator("h2")).to_be_focused()
    page.evaluate(LATE)
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    speak.click()
    page.click("[data-h-share]")
    expect(box).to_be_visible()
    page.evaluate("arrive()")
    page.wait_for_function("history.state.tab === 'speak' && history.state.open === 1")
    expect(box).to_be_visible()
    page.go_back()
    expect(box).to_be_hidden()
    expect(speak).to_have_attribute("aria-selected", "true")
    page.go_back()
    expect(page.locator('[data-tab-id="paint"]').first).to_have_attribute("aria-selected", "true")


def test_a_page_loaded_anew_has_no_place_of_a_dialog_that_was_open(browser: Browser, opened: tuple[Desk, str]) -> None:
    """The first Back after it did nothing."""
    with open_page(browser, opened[1], locale="en-US") as page:
        page.click("[data-h-share]")
        page.wait_for_function("history.state.open === 1")
        page.reload()
        page.wait_for_function("window.Hearth?.openTab && !history.state?.open")


@pytest.mark.slow
def test_a_prompt_of_emoji_is_not_painted_in_silence(page: Page) -> None:
    go(page, "paint")
    page.fill(PROMPT, "\U0001f409\U0001f525")
    problems = page.locator("#h-prompt li")
    expect(problems).to_contain_text("cannot paint: \U0001f409\U0001f525. Try:")
    expect(problems.get_by_role("button")).not_to_have_count(0)


@pytest.mark.slow
def test_unknown_words_of_a_prompt_are_underlined_with_the_nearest_known(page: Page) -> None:
    go(page, "paint")
    page.fill(PROMPT, "\U0001f409 a gren housse beside a xylophone")
    lines, offer = underlined(page, "#paint-prompt"), page.locator("#paint-prompt .h-offer")
    expect(lines).to_have_text(["gren", "housse", "xylophone"])
    box, line = page.locator(PROMPT).bounding_box(), lines.nth(1).bounding_box()
    assert box and line and box["x"] < line["x"] < box["x"] + box["width"] and box["y"] < line["y"] < box["y"] + 60
    clip: FloatRect = {"x": line["x"], "y": line["y"], "width": line["width"], "height": line["height"] + 4}
    with Image.open(io.BytesIO(page.screenshot(clip=clip))) as picture:
        seen = np.asarray(picture.convert("RGB"), dtype=int)
    careful = np.array([0x8A, 0x5A, 0x00])
    assert (np.abs(seen - careful).sum(axis=2) < 60).sum() > line["width"] / 2, "the line is seen"
    page.mouse.click(line["x"] + line["width"] / 2, line["y"] + line["height"] / 2)
    expect(offer.get_by_role("button")).to_have_text(["house", "houses", "horse", "Remove it"])
    assert not shut_out(page)
    offer.get_by_role("button", name="house", exact=True).click()
    expect(page.locator(PROMPT)).to_have_value("\U0001f409 a gren house beside a xylophone")
    expect(lines).to_have_text(["gren", "xylophone"])
    expect(offer).to_have_count(0)
    page.keyboard.press("ControlOrMeta+z")
    expect(page.locator(PROMPT)).to_have_value("\U0001f409 a gren housse beside a xylophone")
    put_caret(page, PROMPT, page.locator(PROMPT).input_value().index("xylophone") + 2)
    expect(offer).to_contain_text("Not known: xylophone")
    page.keyboard.press("Tab")
    expect(offer.get_by_role("button", name="Remove it")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(PROMPT)).to_have_value("\U0001f409 a gren housse beside a ")


def test_what_a_voice_cannot_read_is_underlined_in_the_script(page: Page) -> None:
    go(page, "speak")
    page.fill(SCRIPT, "[whisper] Hello, \u4e16\u754c! (pause long) Caf\u00e9 na\u00efve.")
    lines, offer = underlined(page, "#speak-text"), page.locator("#speak-text .h-offer")
    expect(lines).to_have_text(["[whisper]", "\u4e16\u754c", "(pause long)"])
    put_caret(page, SCRIPT, 2)
    expect(offer.get_by_role("button")).to_have_text(["[S1]", "[S2]", "Remove it"])
    page.keyboard.press("Escape")
    expect(offer).to_have_count(0)
    put_caret(page, SCRIPT, 2)
    offer.get_by_role("button", name="[S2]").click()
    expect(page.locator(SCRIPT)).to_have_value(re.compile(r"^\[S2\] Hello"))
    expect(lines).to_have_text(["\u4e16\u754c", "(pause long)"])
    page.fill(SCRIPT, "[S1] All of this is read.")
    expect(lines).to_have_count(0)


def test_named_speakers_get_a_voice_each_at_a_click(page: Page) -> None:
    go(page, "speak")
    page.fill(SCRIPT, "Anna: Did you sleep well?\nBen: Like a stone.\nHe yawned.\nAnna: Good.")
    page.get_by_role("button", name="Give each a voice").click()
    expect(page.get_by_role("button", name="Give each a voice")).to_have_count(0)
    expect(page.locator(".h-rewritten")).to_contain_text("Lines without a name go to the one who spoke before.")
    said = "Anna: Did you sleep well?\nBen: Like a stone.\nAnna: Good."
    page.fill(SCRIPT, said)
    problem = page.locator("#h-script .h-problems li", has_text="Anna, Ben speak here.")
    problem.get_by_role("button", name="Give each a voice").click()
    box = page.locator(SCRIPT)
    expect(box).to_have_value("[Anna] Did you sleep well?\n[Ben] Like a stone.\n[Anna] Good.")
    expect(page.locator("#h-script .h-turns .h-badge")).to_have_text(["Anna", "Ben", "Anna"])
    told = page.locator(".h-rewritten")
    expect(told.locator("span")).to_have_text("Each name is a tag now. Choose the voices below.")
    assert not shut_out(page)
    told.get_by_role("button", name="Undo").click()
    expect(box).to_have_value(said)
    expect(told).to_have_count(0)
    page.fill(SCRIPT, "Remember: it is late. He said: go home.")
    expect(problem).to_have_count(0)


def test_a_dropped_text_becomes_the_script(page: Page) -> None:
    go(page, "speak")
    box, told = page.locator(SCRIPT), page.locator(".h-rewritten")
    page.fill(SCRIPT, "[S1] Before.")
    for where, content, words in (
        (SCRIPT, b"\xef\xbb\xbf[S1] Caf\xc3\xa9.\r\n[S2] Yes.\r\n", "[S1] Caf\u00e9.\n[S2] Yes."),
        ("#h-strip", "[S1] \u6d77\u8fb9\u7684\u706f\u5854\u3002 Yes.".encode("gb18030"), "[S1] \u6d77\u8fb9\u7684\u706f\u5854\u3002 Yes."),
        ("#h-parts", "[S1] Wide.".encode("utf-16"), "[S1] Wide."),
        ("#h-strip", b"[S1] Caf\xe9, from an old Windows.", "[S1] Caf\u00e9, from an old Windows."),
    ):
        drop(page, where, "a story.txt", content)
        expect(box).to_have_value(words)
    expect(told).to_have_text("The script is now a story.txt. Undo")
    expect(page.locator("#h-script .h-turns li")).to_have_count(1)
    told.get_by_role("button", name="Undo").click()
    expect(box).to_have_value("[S1] Wide.")


@pytest.mark.slow
def test_a_sample_takes_no_script_away(page: Page, opened: tuple[Desk, str]) -> None:
    """One click on a sample was the end of a chapter: Ctrl Z gave a mash of two samples, and the mash was the draft."""
    go(page, "speak")
    box, told, earlier = page.locator(SCRIPT), page.locator(".h-rewritten"), page.locator("#h-scripts .h-earlier")
    chapter = "[S1] " + "The wind came off the fjord, smelling of salt and tar. " * 80
    samples = page.locator("#h-scripts").get_by_role("button")
    for way in ("the note", "the keyboard", "the chip"):
        page.fill(SCRIPT, chapter)
        samples.nth(0).click()
        expect(told).to_have_text("The sample \u201cA good morning\u201d replaced your text. Undo")
        samples.nth(1).click()
        expect(box).to_have_value(re.compile("lighthouse keeper"))
        if way == "the note":
            samples.nth(0).click()  # a sample that goes is nobody's loss
            expect(earlier).to_have_attribute("title", re.compile("^.S1. The wind came"))
            page.fill(SCRIPT, chapter)
            samples.nth(0).click()
            told.get_by_role("button", name="Undo").click()
        elif way == "the keyboard":
            box.focus()
            for _ in range(2):
                page.keyboard.press("Control+z")
        else:
            box.press("x")  # whoever types on loses the note, not the chapter
            expect(told).to_have_count(0)
            page.reload()
            await_script(page)
            earlier.click()
            expect(told.locator("span")).to_have_text("Your earlier text is back.")
        expect(box).to_have_value(chapter)
    desk, _ = opened
    until(lambda: any(each.startswith("x[S1] Once upon a time") for each in desk.settings.get("drafts")["speak-text-earlier"]))
    assert not shut_out(page)


def test_every_text_that_was_replaced_comes_back_press_by_press(page: Page) -> None:
    go(page, "speak")
    box, earlier = page.locator(SCRIPT), page.locator("#h-scripts .h-earlier")
    samples = page.locator("#h-scripts").get_by_role("button")
    page.fill(SCRIPT, "[S1] Written by hand.")
    samples.nth(0).click()
    box.press("End")
    box.press("!")
    changed = box.input_value()
    samples.nth(1).click()
    expect(box).to_have_value(re.compile("lighthouse keeper"))
    for words in (changed, "[S1] Written by hand."):
        earlier.click()
        expect(box).to_have_value(words)


@pytest.mark.slow
def test_what_is_no_text_is_refused_in_a_sentence(page: Page) -> None:
    go(page, "speak")
    page.fill(SCRIPT, "[S1] It stays.")
    chip = page.locator(".h-force").locator("visible=true").locator("li")
    for name, content, why in (
        ("a.pdf", b"%PDF-1.7", "a.pdf is damaged, or no book in a form that Hearth reads"),
        ("b.txt", b"\x00\x01\x02", "b.txt is not a plain text."),
        ("d.txt", b" \n", "d.txt is empty."),
    ):
        drop(page, "#h-parts", name, content, "application/pdf" if name == "a.pdf" else "text/plain")
        expect(chip).to_contain_text(f"Not used: {why}")
        expect(page.locator(SCRIPT)).to_have_value("[S1] It stays.")
    page.reload()
    expect(page.locator(SCRIPT)).to_have_value("[S1] It stays.")
    assert "d.txt" not in page.evaluate("sessionStorage.getItem('hearth_force')"), (
        "it was read, and in another language it would be foreign"
    )
    drop(page, "#h-parts", "e.txt", b"[S1] Taken.")
    expect(chip).to_have_count(0)


@pytest.mark.slow
def test_what_is_dropped_on_another_tab_is_taken_or_told_of(page: Page) -> None:
    """On Paint a text or a PDF vanished without a word."""
    go(page, "paint")
    drop(page, "#h-canvas", "a.pdf", b"%PDF-1.7", "application/pdf")
    chip = page.locator(".h-force").locator("visible=true").locator("li")
    expect(chip).to_contain_text("Not used: a.pdf is not a picture.")
    chip.get_by_role("button", name="Close").click()
    drop(page, "#h-canvas", "a.txt", b"[S1] From Paint.")
    expect(page.locator(SCRIPT)).to_be_visible()
    expect(page.locator(SCRIPT)).to_have_value("[S1] From Paint.")


@pytest.mark.slow
def test_sizes_have_names(page: Page) -> None:
    go(page, "paint")
    expect(page.locator("#paint-size input")).to_have_value("Square 1:1 (256 x 256)")


def test_a_faulty_script_leaves_the_last_result(page: Page, opened: tuple[Desk, str]) -> None:
    desk = opened[0]
    job = desk.keeper.journal.queue(SpeechRequest("[S1] Hello."), desk.machine.read_choice(OWNER))
    desk.keeper.journal.withdraw(job.id)
    (folder := desk.keeper.folder(job.id)).mkdir(parents=True)
    sound.write(folder / "a.wav", np.zeros(16_000, np.float32), 16_000)
    made = RunSummary(model="", seconds=1.0, rate=0.0, unit="", elapsed_s=0.0, highest_bytes=0, whole=True, plan="{}")
    desk.keeper.shelf.keep(job, [str(folder / "a.wav")], made)
    desk.jobs.latest[OWNER.name, "speech"] = job.id
    go(page, "speak")
    expect(page.locator("#h-sound .h-player")).to_be_visible()
    page.fill(SCRIPT, "[S3] (pause 1s)")
    page.click("#speak-go")
    expect(page.locator("#speak-message .h-trouble")).to_contain_text("only tags, pauses")
    pass_looks(page)
    expect(page.locator("#h-sound .h-player")).to_be_visible()
    expect(page.locator("#h-parts .h-trouble")).to_be_hidden()
    assert desk.jobs.find_current("speech", OWNER) == job.id
    page.fill(SCRIPT, "[S1] Mended")
    expect(page.locator("#speak-message .h-trouble")).to_have_count(0)


@pytest.mark.slow
def test_an_earlier_scripts_parts_are_opened_and_only_what_changed_is_spoken(page: Page, opened: tuple[Desk, str]) -> None:
    desk, words = opened[0], ["One is warm.", "Two is cold.", "Three is dry."]
    script = " (pause 0.2s) ".join(words)
    job = desk.keeper.journal.queue(SpeechRequest(f"[S1] {script}", seed=3), desk.machine.read_choice(OWNER))
    desk.keeper.journal.withdraw(job.id)
    for index, text in enumerate(words[:2]):
        light_engine.speak(desk.keeper.folder(job.id), index, f"[S1] {text}")
    sound.write(result := desk.keeper.folder(job.id) / "speech.wav", np.zeros(16_000, np.float32), 16_000)
    desk.keeper.shelf.keep(job, [result], RunSummary("starter-voice", seconds=1.0, whole=False))
    go(page, "shelf")
    expect(page.locator("#h-shelf .h-kept-parts")).to_contain_text(re.compile(r"^Parts of \d+ scripts? are kept"))
    card = page.locator("#h-shelf .h-creation").filter(has_text="Three is dry.")
    card.get_by_role("button", name="Open its parts").click()
    parts = page.locator("#h-parts")
    expect(parts.locator(".h-list").first.locator(".h-part")).to_have_count(2)
    expect(parts.get_by_role("button", name="Play part 2")).to_be_visible()
    expect(parts.get_by_role("button", name="Redo part 2")).to_be_visible()
    expect(parts.locator(".h-resume button")).to_be_visible()
    expect(page.locator(SCRIPT)).to_have_value(f"[S1] {script}")
    offer = page.locator(".h-going .h-force li").filter(has_text="need to be spoken")
    expect(offer).to_have_count(0)
    page.fill(SCRIPT, f"[S1] {script.replace('One', 'None')}")
    expect(offer).to_contain_text("Only 2 of 3 parts need to be spoken; the others can stay as they are")
    expect(page.locator(".h-going .h-force li").locator("visible=true")).to_have_count(1)  # the next script has not this one's seed
    whole, part = offer.bounding_box(), page.locator("#speak-go").bounding_box()
    assert whole and part and 0 < part["y"] - whole["y"] - whole["height"] < 30 and whole["width"] > 500, "a line of its own above Speak"
    assert not shut_out(page)
    offer.get_by_role("button", name="Speak only what changed").click()
    expect(offer).to_have_count(0)
    expect(parts.locator(".h-said")).to_have_text("Spoken for this result: 1, 3. Taken over as they were: 2.")
    request = desk.keeper.journal.get(desk.jobs.find_current("speech", OWNER)).request
    assert isinstance(request, SpeechRequest) and request.only_parts == (0, 2) and "None" in request.text


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pasted by mouse", "Backspace", "a key", "a sample"])
def test_a_trouble_goes_however_the_text_changes(page: Page, way: str) -> None:
    """Gradio calls only a key that writes an input."""
    go(page, "speak")
    page.fill(SCRIPT, "[S3] (pause 1s)")
    page.click("#speak-go")
    trouble = page.locator("#speak-message .h-trouble")
    expect(trouble).to_be_visible()
    pass_looks(page)
    expect(trouble).to_be_visible()
    page.locator(SCRIPT).focus()
    if way == "pasted by mouse":
        page.keyboard.insert_text("Hello. ")
    elif way == "a sample":
        page.locator("#h-scripts button").first.click()
    else:
        page.keyboard.press("Backspace" if way == "Backspace" else "x")
    expect(trouble).to_have_count(0)


ALTERED = """(more) => {
  window.asked ??= window.fetch;
  window.fetch = async (url, options) => {
    if (!String(url).includes("hearth/live")) return window.asked(url, options);
    return new Response(JSON.stringify({ ...(await (await window.asked(url, options)).json()), ...more }));
  };
}"""


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_what_was_finished_of_a_discarded_job_is_told_of(page: Page, kept: bool) -> None:
    let_go = list[str]()
    page.route("**/hearth/queue/*/let-go", lambda route: (let_go.append(route.request.url), route.fulfill(json={}))[1])
    page.evaluate(ALTERED, {"interrupted": {"jobs": ["1"], "text": "This job was interrupted: One.", "kept": kept}})
    banner = page.locator("#h-interrupted")
    banner.get_by_role("button", name="Discard").click()
    until_seen(page, lambda: bool(let_go))
    page.evaluate(ALTERED, {"interrupted": None})
    if kept:
        expect(banner.locator("span")).to_have_text("Discarded. What was finished of it is kept on the Shelf.")
        assert not shut_out(page)
        banner.get_by_role("button", name="OK").click()
    expect(banner).to_have_count(0)
    page.evaluate("window.fetch = window.asked")
    page.unroute("**/hearth/queue/*/let-go")


@pytest.mark.slow
def test_a_very_long_word_is_broken_where_the_script_is_shown(page: Page) -> None:
    go(page, "speak")
    page.fill(SCRIPT, f"[S1] Hello {'donaudampf' * 30}. (pause {'eternally' * 30})")
    expect(page.locator("#h-script .h-turns li")).not_to_have_count(0)
    expect(page.locator("#h-script .h-problems li").filter(has_text="eternally")).to_be_visible()
    shown = page.locator("#h-script .h-turns, #h-script .h-problems")
    assert shown.evaluate_all("(shown) => shown.map((each) => each.scrollWidth - each.clientWidth)") == [0, 0]


@pytest.mark.slow
def test_a_list_that_esc_closed_opens_again_by_a_click(page: Page) -> None:
    """Gradio opens it when its field takes the focus, which Esc had left there."""
    go(page, "paint")
    field, listed = page.locator("#paint-size input"), page.locator("#paint-size ul[role=listbox]")
    field.click()
    expect(listed).to_be_visible()
    page.keyboard.press("Escape")
    expect(listed).to_have_count(0)
    field.click()
    expect(listed).to_be_visible()
    page.keyboard.press("Escape")
