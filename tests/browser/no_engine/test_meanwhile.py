"""What a person does while an answer is on its way: it stays done, whatever that answer says of before. Each answer is held up by the test itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from app.engine.models.voice_limits import DIA
from app.engine.speech.text import voices
from app.ui.state.desk import Desk
from tests.browser.no_engine.test_after_trouble import part, show, speech
from tests.browser.no_engine.test_sketch import SLOW, chip, masked, open_picture, press
from tests.support.window import SETTLED, STORED, await_stored, go, needs_chromium, open_page, pass_looks, unfold, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.slow, needs_chromium]
OPTIONS: dict[str, Any] = {"locale": "en-US", "viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
SCRIPT = "#speak-text textarea"


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    with open_page(browser, address, **OPTIONS) as page:
        yield page


@pytest.fixture
def fresh(browser: Browser, address: str) -> Iterator[Page]:
    """A page of its own, for what changes the browser or loads the page anew."""
    with open_page(browser, address, **OPTIONS) as page:
        yield page


@contextmanager
def held(page: Page, address: str | re.Pattern[str], method: str = "") -> Iterator[list[Route]]:
    """What is asked there stays on its way until the test answers it."""
    waiting = list[Route]()
    page.route(address, lambda route: waiting.append(route) if method in ("", route.request.method) else route.fallback())
    try:
        yield waiting
    finally:
        page.unroute(address)


def await_count(page: Page, waiting: list[Route], count: int) -> None:
    until_seen(page, lambda: len(waiting) >= count)


def answer(page: Page, route: Route, **how: Any) -> None:
    """Let an answer come, and the page do what it does with it."""
    with page.expect_response(lambda came: came.request == route.request) as told:
        route.fulfill(**how) if how else route.continue_()
    told.value.finished()
    page.evaluate(SETTLED)


def test_help_leaves_the_focus_with_whoever_types(page: Page) -> None:
    go(page, "speak")
    page.locator("#speak-go").focus()
    with held(page, "**/hearth/help") as waiting:
        page.keyboard.press("?")
        await_count(page, waiting, 1)
        page.keyboard.type("xylo")
        answer(page, waiting[0])
    page.keyboard.type("phone")
    search = page.get_by_role("searchbox", name="Search the help")
    expect(search).to_be_focused()
    expect(search).to_have_value("xylophone")
    expect(page.locator("dialog.h-help").get_by_role("status")).to_have_text("Nothing is said of that here.")
    for _ in range(2):
        page.keyboard.press("Escape")
    expect(page.locator("dialog.h-help")).to_have_count(0)


SHUT = {"open": False, "hours": [1], "limits": {"letters": 100}, "ways": ["home", "link"]}
SHARED = {"open": True, "limits": {"letters": 100}, "address": "http://192.168.1.2:7861/", "qr": "", "left_s": 3600, "lost": "",
          "at_home": True, "advice": "", "guests": []}  # fmt: skip


def test_the_password_of_a_share_is_not_lost_to_an_older_answer(page: Page) -> None:
    """It is sent once: an answer of before the share took it away, and no other brought it back."""
    panel = page.get_by_role("dialog", name="Let others speak and paint here")
    begin = panel.locator(".h-begin button")
    with held(page, "**/hearth/share") as looks, held(page, "**/hearth/share/*") as acts:
        page.click("[data-h-share]")
        await_count(page, looks, 1)
        answer(page, looks[0], json=SHUT)
        panel.get_by_role("button", name="Close").click()
        page.click("[data-h-share]")
        await_count(page, looks, 2)
        begin.click()
        await_count(page, acts, 1)
        expect(begin).to_have_text("Creating the link…")
        panel.locator("summary").click()
        panel.get_by_label("Characters in a script").fill("200")
        panel.get_by_label("Characters in a script").press("Tab")
        await_count(page, acts, 2)
        answer(page, acts[1], json=SHUT)
        expect(begin).to_be_disabled()  # another answer does not end it
        answer(page, acts[0], json={**SHARED, "password": "one two three"})
        expect(panel.locator(".h-secret code")).to_have_text("one two three")
        answer(page, looks[1], json=SHUT)
        expect(panel.locator(".h-secret code")).to_have_text("one two three")
        expect(panel.locator(".h-secret")).to_be_visible()
        panel.get_by_role("button", name="Stop sharing").click()
        await_count(page, acts, 3)
        answer(page, acts[2], json=SHUT)
        begin.click()
        await_count(page, acts, 4)
        acts[3].abort()
        expect(panel.get_by_role("alert").first).to_contain_text("Hearth did not respond")
        expect(begin).to_be_enabled()
        expect(begin).to_have_text("Create link")
        panel.get_by_role("button", name="Close", exact=True).click()


def test_an_older_list_of_models_does_not_cover_a_newer_one(page: Page) -> None:
    go(page, "models")
    where, add = page.locator("#h-models .h-where"), page.locator("#h-models .h-add")
    expect(where).not_to_be_empty()
    page.route("**/hearth/models/add", lambda route: route.fulfill(json={}))
    with held(page, "**/hearth/models") as waiting:
        go(page, "speak")
        pass_looks(page)  # the page has seen that the tab is shut
        go(page, "models")
        await_count(page, waiting, 1)
        view = waiting[0].fetch().json()
        add.get_by_role("textbox").fill("/the/first")
        add.get_by_role("button", name="Add").click()
        await_count(page, waiting, 2)
        add.get_by_role("textbox").fill("/the/second")
        answer(page, waiting[1], json={**view, "folder": "/newer"})
        expect(where).to_contain_text("/newer")
        answer(page, waiting[0], json={**view, "folder": "/older"})
        expect(where).to_contain_text("/newer")
    page.unroute("**/hearth/models/add")
    expect(add.get_by_role("textbox")).to_have_value("/the/second")


def test_two_presses_of_download_ask_once(page: Page) -> None:
    go(page, "models")
    get = page.locator("#h-models").get_by_role("button", name=re.compile("^Download: ")).first
    offer = {"title": "A model", "bytes": 1e9, "licence": "", "seconds": 60, "measured": False, "trouble": ""}
    with held(page, "**/hearth/offer?*") as waiting:
        get.click()
        get.click()
        await_count(page, waiting, 2)
        for each in waiting:
            answer(page, each, json=offer)
    expect(page.get_by_role("alertdialog")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("alertdialog")).to_have_count(0)


def found(word: str) -> dict[str, Any]:
    return {"rows": [{"word": word, "spoken": f"{word} spoken"}], "found": 1, "all": 9}


def test_words_that_are_said_differently_stay_as_they_were_made(page: Page) -> None:
    go(page, "speak")
    page.fill(SCRIPT, "Anna and Ben came.")
    shelf = page.locator("#h-says")
    with held(page, "**/hearth/says?*") as waiting:
        shelf.locator("summary").click()
        await_count(page, waiting, 1)
        answer(page, waiting[0], json=found("first"))
        for count, words in ((2, "older"), (3, "newer")):
            shelf.get_by_role("searchbox").fill(words)
            await_count(page, waiting, count)
        answer(page, waiting[2], json=found("newer"))
        answer(page, waiting[1], json=found("older"))
        expect(shelf.locator("li")).to_have_text([re.compile("newer spoken")])
    shelf.get_by_role("searchbox").fill("")
    expect(shelf.locator("li")).to_have_count(0)  # the list of this Hearth is empty
    word, spoken, told = shelf.get_by_label("Word"), shelf.get_by_label("Spoken as"), shelf.locator(".h-told")
    hear, put = (shelf.locator("form").get_by_role("button", name=name) for name in ("Hear it", "Say it so"))
    word.fill("Anna")
    spoken.fill("Ahna")
    put.click()
    expect(told).to_contain_text("Anna is said so in this script.")
    with held(page, "**/hearth/says/*") as waiting:
        word.fill("Ben")
        spoken.fill("Benn")
        put.click()
        await_count(page, waiting, 1)
        shelf.get_by_role("button", name="Delete: Anna").click()
        expect(shelf.locator("li")).to_have_count(0)
        word.fill("Siob")
        answer(page, waiting[0])
        expect(shelf.locator("li")).to_have_text([re.compile("Benn")])  # Anna's was taken away meanwhile
        expect(word).to_have_value("Siob")
        hear.click()
        await_count(page, waiting, 2)
        shelf.get_by_role("button", name="Delete: Ben").click()
        expect(told.get_by_role("button", name="Undo")).to_be_visible()
        answer(page, waiting[1], body=b"RIFF", content_type="audio/wav")
        expect(told.get_by_role("button", name="Undo")).to_be_visible()
        hear.click()
        await_count(page, waiting, 3)
        expect(hear).to_be_disabled()
        waiting[2].abort()
        expect(told).to_have_text("Hearth did not respond.")
        expect(hear).to_be_enabled()


def test_a_voice_that_is_removed_by_two_presses_can_be_brought_back(page: Page, opened: tuple[Desk, str]) -> None:
    """The second press was refused, and its refusal took the place of Undo. Then an older list brought the voice back."""
    home, ready = opened[0].keeper.home, voices.list_ready_voices()[0]
    voices.keep_voice(home, "Old Tom", Path(ready.prompt.path), ready.prompt.transcript, DIA)
    go(page, "speak")
    shelf, told = page.locator("#h-voices"), page.locator(".h-voices-said")
    shelf.locator("summary").click()
    remove = shelf.get_by_role("button", name="Remove: Old Tom")
    expect(remove).to_be_visible()
    with held(page, "**/hearth/voices/remove") as waiting, held(page, "**/hearth/voices", "GET") as looks:
        shelf.locator("summary").click()
        expect(remove).to_be_hidden()
        shelf.locator("summary").click()
        await_count(page, looks, 1)
        before = looks[0].fetch().json()
        remove.click()
        remove.click()
        await_count(page, waiting, 1)
        answer(page, waiting[0])
        for each in waiting[1:]:
            answer(page, each)
        await_count(page, looks, 2)
        for each in looks[1:]:
            answer(page, each)
        expect(told).to_contain_text("Old Tom was removed.")
        answer(page, looks[0], json=before)
        expect(remove).to_have_count(0)
    told.get_by_role("button", name="Undo").click()
    expect(remove).to_be_visible()
    shelf.locator("summary").click()
    voices.forget_voice(home, voices.list_voices(home)[0])


def test_an_earlier_press_about_the_phone_says_nothing_of_a_later_one(page: Page) -> None:
    kept = {"address": "https://ntfy.sh/…", "kind": "ntfy", "titles": False}
    page.route("**/hearth/notify", lambda route: route.fulfill(json=kept))
    page.route("**/hearth/notify/keep", lambda route: route.fulfill(json=kept))
    go(page, "machine")
    card = page.locator("#h-notify")
    address, told = card.get_by_label("Address", exact=True), card.get_by_role("status")
    with held(page, "**/hearth/notify/try") as waiting:
        card.get_by_role("button", name="Send a test").click()
        await_count(page, waiting, 1)
        address.fill("https://ntfy.sh/mine")
        card.get_by_role("button", name="Save").click()
        expect(told).to_have_text("Saved.")
        address.fill("https://ntfy.sh/another")
        answer(page, waiting[0], status=409, json={"trouble": "ntfy.sh did not answer."})
    expect(told).to_have_text("Saved.")
    expect(card.get_by_role("alert")).to_be_hidden()
    expect(address).to_have_value("https://ntfy.sh/another")
    for each in ("", "/keep"):
        page.unroute(f"**/hearth/notify{each}")


def test_what_is_cancelled_does_not_come_back_by_an_older_answer(fresh: Page) -> None:
    page = fresh
    with held(page, "**/hearth/upkeep") as looks, held(page, "**/hearth/upkeep/cancel") as presses:
        go(page, "machine")
        await_count(page, looks, 1)
        view = looks[0].fetch().json()
        answer(page, looks[0], json={**view, "work": ["installing packages"]})
        await_count(page, looks, 2)  # while something is made the page asks again
        cancel = page.locator("#h-upkeep").get_by_role("button", name="Cancel")
        cancel.click()
        await_count(page, presses, 1)
        answer(page, presses[0], json=view)
        expect(cancel).to_be_hidden()
        answer(page, looks[1], json={**view, "work": ["installing packages"]})
        expect(cancel).to_be_hidden()


MOVE = """(slider, [step, ends]) => {
  slider.value = step;
  for (const kind of ends ? ["input", "change"] : ["input"]) slider.dispatchEvent(new Event(kind, { bubbles: true }));
}"""


def test_the_slider_beside_the_picture_stays_where_it_was_put(fresh: Page, opened: tuple[Desk, str]) -> None:
    """An answer of before the press took it back, and the answer to the press took it from whoever moved it on."""
    page = fresh
    go(page, "paint")
    slider = page.locator("#h-tuning input")
    expect(slider).to_have_value("0")
    with held(page, "**/hearth/chunk") as presses, held(page, re.compile("hearth/live")) as looks:
        await_count(page, looks, 1)
        before = looks[0].fetch()
        slider.evaluate(MOVE, [2, True])
        await_count(page, presses, 1)
        slider.evaluate(MOVE, [4, False])
        answer(page, presses[0])
        expect(slider).to_have_value("4")
        slider.evaluate(MOVE, [3, True])
        await_count(page, presses, 2)
        answer(page, presses[1])
        answer(page, looks[0], response=before)
        expect(slider).to_have_value("3")
        assert page.evaluate("Hearth.live.state.chunk.step") == 3
        await_count(page, looks, 2)  # and the page goes on asking
    pass_looks(page)
    expect(slider).to_have_value("3")
    slider.evaluate(MOVE, [0, True])
    until_seen(page, lambda: opened[0].keeper.chunk == "auto")


LATE_STORE = """
const open = IDBFactory.prototype.open, let_go = new Promise((go) => (window.openStore = go));
IDBFactory.prototype.open = function (...given) {
  const real = open.apply(this, given), asked = { get result() { return real.result; } };
  real.onupgradeneeded = () => asked.onupgradeneeded?.();
  real.onsuccess = () => let_go.then(() => asked.onsuccess?.());
  return asked;
};
"""


def test_the_picture_of_before_a_reload_does_not_come_over_one_that_is_opened(fresh: Page, tmp_path: Path) -> None:
    page = fresh
    open_picture(page, tmp_path)
    expect(chip(page)).to_contain_text("mine.png")
    await_stored(page, "background")
    page.add_init_script(LATE_STORE)
    page.reload()
    go(page, "paint")
    unfold(page, "Start from a picture")
    Image.new("RGB", (90, 64), "teal").save(tmp_path / "later.png")
    page.evaluate(SLOW.replace("SLOW_SIZE", str((tmp_path / "later.png").stat().st_size)))
    page.set_input_files("#h-sketch input[type=file]", tmp_path / "later.png")
    page.wait_for_function("Boolean(window.goOn)")
    page.evaluate("openStore()")
    pass_looks(page)
    page.evaluate("goOn()")
    expect(chip(page)).to_contain_text("later.png")


def test_a_picture_that_is_removed_while_it_is_kept_is_not_kept(fresh: Page, tmp_path: Path) -> None:
    page = fresh
    open_picture(page, tmp_path)
    await_stored(page, "background")
    page.evaluate("""() => {
      const make = HTMLCanvasElement.prototype.toBlob;
      HTMLCanvasElement.prototype.toBlob = function (...given) { window.goOn = () => make.apply(this, given); };
    }""")
    press(page, "Invert")
    page.wait_for_function("Boolean(window.goOn)")  # it is about to be kept
    press(page, "Remove")
    page.wait_for_function(f"async (given) => !(await ({STORED})(given))", arg=["", "background"])
    page.evaluate("goOn()")
    page.evaluate(SETTLED)
    assert not page.evaluate(STORED, ["", "background"])


def test_paint_sends_what_was_framed_at_its_press(
    fresh: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever drew on while the picture was sent had a mask of another size than the picture."""
    page, begun = fresh, list[Any]()
    monkeypatch.setattr(type(opened[0].jobs), "begin", lambda self, request, person: begun.append(request))
    sheet = open_picture(page, tmp_path)
    press(page, "Frame")
    sheet.focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(chip(page)).to_contain_text("painting beyond its edges")
    with held(page, "**/gradio_api/upload**") as uploads:
        page.click("#paint-go")
        await_count(page, uploads, 1)
        press(page, "Undo")
        expect(chip(page)).to_have_text(re.compile("^starting from mine.png *Remove"))
        answer(page, uploads[0])
        await_count(page, uploads, 2)
        answer(page, uploads[1])
    until_seen(page, lambda: bool(begun))
    with Image.open(begun[0].image) as sent:
        assert masked(begun[0]).size == sent.size
    assert begun[0].masked_only and begun[0].strength == 1


def test_a_thing_is_looked_for_on_the_picture_that_is_there(fresh: Page, tmp_path: Path) -> None:
    page = fresh
    sheet = open_picture(page, tmp_path)
    Image.new("RGB", (90, 64), "teal").save(tmp_path / "other.png")
    press(page, "Pick by a click")
    with held(page, "**/hearth/pick") as waiting:
        sheet.click()
        await_count(page, waiting, 1)
        page.set_input_files("#h-sketch input[type=file]", tmp_path / "other.png")
        expect(chip(page)).to_contain_text("other.png")
        answer_first = {"status": 409, "json": {"trouble": "Nothing is there."}}
        sheet.click()
        await_count(page, waiting, 2)
        answer(page, waiting[0], **answer_first)
        expect(page.locator("#h-sketch .h-picking .h-trouble")).to_be_hidden()
        answer(page, waiting[1], **answer_first)
        expect(page.locator("#h-sketch .h-picking .h-trouble")).to_have_text("Nothing is there.")


def result(number: int) -> dict[str, Any]:
    return {"url": f"hearth/creation/{number}", "peaks": [], "name": "speech.wav", "id": number, "seconds": 3.0}


def test_two_presses_make_one_smaller_job_and_one_voice(fresh: Page) -> None:
    """The second one made the smaller job smaller still, and said of the voice that its name is taken."""
    page = fresh
    go(page, "speak")
    show(page, speech=speech([part(0, "waits")], {"kind": "failed", "text": "Too large.", "cure": "smaller", "code": "no_memory"}))
    smaller = page.locator("#h-parts").get_by_role("button", name="Retry smaller")
    with held(page, "**/hearth/smaller/speech") as waiting:
        smaller.click()
        smaller.click()
        await_count(page, waiting, 1)
        answer(page, waiting[0], json={"trouble": "No smaller one fits."})
        expect(page.locator("#h-parts .h-lately")).to_have_text("No smaller one fits.")
        assert len(waiting) == 1
        smaller.click()
        await_count(page, waiting, 2)
        answer(page, waiting[1], json={"trouble": "No smaller one fits."})
    show(page, speech=speech([part(0, "done")], {"kind": "finished", "elapsed_s": 1.0}, results=[result(7)]))
    page.get_by_role("button", name="Save this voice").click()
    name = page.get_by_label("Name for this voice")
    name.fill("Ada")
    with held(page, "**/hearth/voices", "POST") as waiting:
        name.press("Enter")
        name.press("Enter")
        await_count(page, waiting, 1)
        answer(page, waiting[0], json={})
        expect(page.locator("#h-sound .h-kept")).to_have_text("Saved as Ada. You can choose it under Voice.")
        assert len(waiting) == 1


SHEET = """() => {
  navigator.canShare = () => true;
  navigator.share = async ({ files: [file] }) => {
    (window.sent ??= []).push(file.type);
  };
}"""


def test_another_format_that_is_chosen_while_a_file_comes_is_fetched_by_the_next_press(fresh: Page) -> None:
    page = fresh
    page.evaluate(SHEET)
    go(page, "speak")
    show(page, speech=speech([part(0, "done")], {"kind": "finished", "elapsed_s": 1.0}, results=[result(7)]))
    send = page.locator("#h-sound").get_by_role("button", name="Send…")
    with held(page, re.compile("creation/7.*download")) as waiting:
        send.click()
        await_count(page, waiting, 1)
        page.locator("#h-sound select.h-format").select_option("mp3")
        answer(page, waiting[0], body=b"RIFF", content_type="audio/wav")
        until_seen(page, lambda: page.evaluate("window.sent") == ["audio/wav"])
        expect(send).to_be_enabled()
        send.click()
        await_count(page, waiting, 2)
        assert "format=mp3" in waiting[1].request.url
        answer(page, waiting[1], body=b"ID3", content_type="audio/mpeg")
    until_seen(page, lambda: page.evaluate("window.sent") == ["audio/wav", "audio/mpeg"])
    pass_looks(page)
