"""Answers that come late: what a person did meanwhile stays, and a press that is answered badly can be made again. The tests hold the answers back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.keeper.keeper import Keeper
from app.ui.state.desk import Desk
from tests.browser.no_engine.test_after_trouble import part, show, speech
from tests.support.books import save_epub
from tests.support.both_servers import CPU, keep_creation
from tests.support.window import WAIT_MS, end_answers, go, needs_chromium, open_page, pass_looks, unfold, until_seen
from tests.ui.state.test_editing import TEXT, finish

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.slow, needs_chromium]
SCRIPT, PROMPT = "#speak-text textarea", "#paint-prompt textarea"
SILENT = "Hearth did not respond"
TOLD = "</p><p>".join(f"\u201c{words},\u201d said {name}." for words, name in [("Yes", "Ben"), ("No", "Anna")] * 2)


class Held:
    """The answers to what a page asks for, held back until `release`. `fetched`: the server is asked at once, so that its answer is one of now."""

    def __init__(
        self, page: Page, pattern: str, which: Callable[[Route], bool] = lambda route: True, most: int = 99, fetched: bool = False
    ) -> None:
        self.page, self.pattern, self.which, self.most, self.fetched = page, pattern, which, most, fetched
        self.held: list[tuple[Route, APIResponse | None]] = []
        self.count = 0
        page.route(pattern, self.take)

    def take(self, route: Route) -> None:
        if not self.which(route) or self.count == self.most:
            route.fallback()
            return
        self.count += 1
        self.held.append((route, route.fetch() if self.fetched else None))

    def wait(self, count: int = 1) -> None:
        until_seen(self.page, lambda: len(self.held) >= count)

    def release(self) -> None:
        """Let the answers come, and the page draw what it makes of them."""
        self.wait()
        self.most = len(self.held)
        for route, answer in self.held:
            if answer is None:
                route.continue_()
            else:
                route.fulfill(response=answer)
        for route, _ in self.held:
            sent = route.request.response()
            assert sent
            sent.finished()
        pass_looks(self.page)


def show_lines(page: Page, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the lines of a script that was spoken."""
    monkeypatch.setattr(Keeper, "stop", lambda self, job: None)
    finish(desk, SpeechRequest(TEXT))
    go(page, "speak")
    page.fill(SCRIPT, "My own words, of which no part knows.")
    expect(page.get_by_role("button", name="Put the script of these parts back to edit them")).to_be_visible()
    page.fill(SCRIPT, TEXT)
    expect(page.get_by_role("button", name="Edit part 3")).to_be_visible()  # not before it was compared


def test_a_line_is_moved_by_each_press_however_quick(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second press moved the line that stood in its place by then."""
    show_lines(page, opened[0], monkeypatch)
    held = Held(page, "**/hearth/check")
    page.get_by_role("button", name="Edit part 1").focus()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator(SCRIPT)).to_have_value("[S1] Two is cold.\n\nOne is warm.\n\nThree is dry.")
    page.keyboard.press("Alt+ArrowDown")
    pass_looks(page)
    held.release()
    expect(page.locator(SCRIPT)).to_have_value("[S1] Two is cold.\n\nThree is dry.\n\nOne is warm.")


def test_a_pause_and_words_set_at_once_are_both_kept(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The press that follows takes the focus from the pause, which is set only then."""
    show_lines(page, opened[0], monkeypatch)
    page.get_by_role("button", name="Edit part 2").click()
    page.get_by_role("textbox", name="Words of part 2").fill("Two is mild.")
    held = Held(page, "**/hearth/edit/pause")
    page.get_by_role("spinbutton", name="Pause after, s").fill("2")
    page.get_by_role("button", name="Change only the script").click()
    held.wait()
    pass_looks(page)
    held.release()
    expect(page.locator(SCRIPT)).to_have_value(re.compile(r"Two is mild\.\s+\(pause 2(\.0)?s\)"))


def test_whoever_goes_on_in_the_form_while_a_pause_is_set_stays_there(
    page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show_lines(page, opened[0], monkeypatch)
    page.get_by_role("button", name="Edit part 2").click()
    before, after = page.get_by_label("Pause before, s"), page.get_by_label("Pause after, s")
    before.fill("2")
    held = Held(page, "**/hearth/edit/pause")
    page.keyboard.press("Tab")
    held.wait()
    expect(after).to_be_focused()
    held.release()
    expect(page.locator("#h-parts .h-editing [role=status]")).to_have_text("The pause is set.")
    expect(page.get_by_role("button", name="Join anew")).to_be_visible()  # the list was drawn after the answer
    expect(after).to_be_focused()
    assert "(pause 2s)" in page.input_value(SCRIPT)


def test_what_is_typed_while_a_line_is_moved_stays(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    show_lines(page, opened[0], monkeypatch)
    held = Held(page, "**/hearth/edit/down")
    page.get_by_role("button", name="Edit part 1").focus()
    page.keyboard.press("Alt+ArrowDown")
    held.wait()
    page.fill(SCRIPT, f"{TEXT} And four.")
    held.release()
    expect(page.locator(SCRIPT)).to_have_value(f"{TEXT} And four.")


def test_a_form_that_opens_late_takes_no_focus(page: Page, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    show_lines(page, opened[0], monkeypatch)
    held = Held(page, "**/hearth/edit/line")
    page.get_by_role("button", name="Edit part 1").click()
    held.wait()
    page.locator(SCRIPT).focus()
    held.release()
    expect(page.get_by_role("textbox", name="Words of part 1")).to_be_visible()
    expect(page.locator(SCRIPT)).to_be_focused()


@pytest.fixture
def nobody_greeted(opened: tuple[Desk, str]) -> Iterator[None]:
    """Nobody was greeted yet, and the machine is not known yet."""
    desk = opened[0]
    desk.settings.put({"greeted": False})
    desk.keeper.status.set(hardware=None)
    yield
    desk.settings.put({"greeted": True})
    desk.keeper.status.set(hardware=CPU)


@pytest.mark.usefixtures("nobody_greeted")
def test_a_greeting_that_was_left_stays_away(browser: Browser, opened: tuple[Desk, str]) -> None:
    """The machine became known as somebody left it: the answer opened it again."""
    desk, address = opened
    with open_page(browser, address, locale="en-US") as page:
        greeting = page.locator("#h-greeting")
        expect(greeting.locator(".h-badge").first).to_have_text("...")
        held = Held(page, "**/hearth/greeting", lambda route: route.request.method == "GET", fetched=True)
        desk.keeper.status.set(hardware=CPU)
        held.wait()
        greeting.get_by_role("button", name="Just look around").click()
        expect(greeting).to_be_hidden()
        held.release()
        expect(greeting).to_be_hidden()


@pytest.mark.usefixtures("nobody_greeted")
def test_a_greeting_that_failed_comes_with_the_next_look(browser: Browser, address: str) -> None:
    """Nothing else could be reached on the page until it came."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.route("**/hearth/greeting", lambda route: route.abort(), times=1)
    page.goto(address)
    expect(page.locator("#h-greeting").get_by_role("button", name="Just look around")).to_be_visible()
    context.close()


def send_found(route: Route, reading: bool = False) -> None:
    """Answer with one model, called as what is searched."""
    words = parse_qs(urlsplit(route.request.url).query).get("words", ["all"])[0]
    file = {"path": words, "title": words, "facts": "", "bytes": 0, "here": False, "trouble": "", "usable": True}
    tools = [{"root": "/comfy", "words": "ComfyUI"}]
    route.fulfill(json={"allowed": True, "looked": True, "reading": reading, "tools": tools, "files": [file], "left": 0, "more": 0})


def test_an_older_search_comes_not_over_a_newer_one(page: Page) -> None:
    held: list[Route] = []
    page.route("**/hearth/found?*", lambda route: held.append(route) if route.request.url.endswith("=f") else send_found(route))
    go(page, "models")
    page.get_by_role("button", name="ComfyUI").click()
    found = page.locator("#h-models .h-found-file b")
    expect(found).to_have_text("all")
    page.get_by_role("searchbox", name="Search these models").fill("f")
    until_seen(page, lambda: bool(held))
    page.get_by_role("searchbox", name="Search these models").fill("flux")
    expect(found).to_have_text("flux")
    send_found(held[0])
    pass_looks(page)
    expect(found).to_have_text("flux")


def test_a_look_for_models_goes_on_after_an_answer_that_failed(page: Page) -> None:
    """Its button stayed disabled, as it waited for an answer that was never asked for."""
    asked: list[str] = []

    def send(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 2:
            route.abort()
        else:
            send_found(route, reading=len(asked) == 1)

    page.route("**/hearth/found?*", send)
    go(page, "models")
    until_seen(page, lambda: len(asked) > 1)
    expect(page.locator("#h-models .h-found-does button")).to_be_enabled()


def test_an_older_look_at_the_disk_takes_back_no_press(page: Page) -> None:
    """It showed what was no longer so, and nothing asked again."""
    moving: dict[str, Any] = {"moving": {"title": "LoRAs", "done": 1, "total": 2}}
    asked, held = list[str](), list[Route]()

    def send(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 2:
            held.append(route)
        else:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), **moving})

    page.route("**/hearth/disk", send)
    page.route(
        "**/hearth/disk/cancel", lambda route: route.fulfill(json=page.request.get(route.request.url.removesuffix("/cancel")).json())
    )
    go(page, "machine")
    stop = page.locator("#h-disk .h-cancel")
    expect(stop).to_be_visible()
    until_seen(page, lambda: bool(held))
    stop.click()
    expect(stop).to_be_hidden()
    answer = held[0].fetch()
    held[0].fulfill(response=answer, json={**answer.json(), **moving})
    pass_looks(page)
    expect(stop).to_be_hidden()


def test_the_disk_is_asked_again_after_an_answer_that_failed(page: Page) -> None:
    page.route("**/hearth/disk", lambda route: route.abort(), times=1)
    go(page, "machine")
    expect(page.get_by_role("button", name="Show what takes room")).to_be_visible()


def choose_book(page: Page, tmp_path: Path, name: str, told: str = "It rained.") -> None:
    file = save_epub(tmp_path / f"{name}.epub", {"one.xhtml": f"<h1>{name}</h1><p>{told}</p>", "two.xhtml": "<h1>End</h1><p>So.</p>"}, None)
    page.set_input_files(".h-book-file", file)


@pytest.fixture
def no_book(opened: tuple[Desk, str]) -> None:
    opened[0].book.close()


@pytest.fixture
def speaking(no_book: None, page: Page) -> Page:
    """The page at Speak, opened without a book."""
    go(page, "speak")
    page.fill(SCRIPT, "")
    expect(page.get_by_role("button", name="Open a book")).to_be_visible()
    return page


def test_the_book_that_was_chosen_last_is_open(speaking: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    page = speaking
    held = Held(page, "**/hearth/book", lambda route: route.request.method == "POST", most=1)
    choose_book(page, tmp_path, "Slow")
    held.wait()
    choose_book(page, tmp_path, "Quick")
    pass_looks(page)
    held.release()
    expect(page.get_by_role("checkbox", name="Quick")).to_be_visible()
    pass_looks(page)
    expect(page.get_by_role("checkbox", name="Quick")).to_be_visible()
    book = opened[0].book.book
    assert book and book.chapters[0].title == "Quick"


def test_who_has_a_voice_is_what_was_ticked_last(speaking: Page, tmp_path: Path) -> None:
    page = speaking
    choose_book(page, tmp_path, "One", TOLD)
    who = page.get_by_role("group", name="Who speaks")
    who.get_by_role("button", name="Give each a voice").click()
    ben, anna = (who.get_by_role("checkbox", name=name) for name in ("Ben", "Anna"))
    expect(anna).to_be_checked()
    held = Held(page, "**/hearth/book/voices", most=1, fetched=True)
    ben.uncheck()
    held.wait()
    with page.expect_response("**/hearth/book/voices") as answered:
        anna.evaluate("box => box.click()")
    answered.value.finished()
    expect(who.get_by_role("checkbox")).to_have_count(0)
    held.release()
    expect(who.get_by_role("checkbox")).to_have_count(0)


def test_a_book_that_could_not_be_saved_can_be_saved_again(speaking: Page, tmp_path: Path) -> None:
    page = speaking

    def send(route: Route) -> None:
        if route.request.method == "POST":  # its file would not come along
            route.fallback()
            return
        answer = route.fetch()
        view = answer.json()
        if view:
            view["chapters"][0] |= {"state": "done", "creation": 1}
        route.fulfill(response=answer, json=view)

    page.route("**/hearth/book", send)
    page.route("**/hearth/export?*", lambda route: route.abort())
    choose_book(page, tmp_path, "One")
    save = page.locator("#h-book").get_by_role("button", name="Save as an audiobook")
    save.click()
    expect(page.locator("#h-book .h-trouble")).to_contain_text(SILENT)
    expect(save).to_be_enabled()


def test_a_book_that_closes_late_takes_no_focus(speaking: Page, tmp_path: Path) -> None:
    page = speaking
    choose_book(page, tmp_path, "One")
    held = Held(page, "**/hearth/book/close")
    page.get_by_role("button", name="Close the book").click()
    held.wait()
    page.locator(SCRIPT).focus()
    held.release()
    expect(page.locator("#h-book")).to_be_hidden()
    expect(page.locator(SCRIPT)).to_be_focused()


def test_a_book_that_nobody_answers_for_is_told_of(speaking: Page, tmp_path: Path) -> None:
    """Reading … stood there for good."""
    page = speaking
    page.route("**/hearth/book", lambda route: route.abort() if route.request.method == "POST" else route.fallback())
    choose_book(page, tmp_path, "One")
    expect(page.locator(".h-force").locator("visible=true").locator("li.wrong")).to_contain_text(SILENT)
    expect(page.locator("#h-book .h-reading")).to_be_empty()


def test_a_prompt_typed_while_its_picture_comes_is_not_typed_over(page: Page, opened: tuple[Desk, str]) -> None:
    boat = keep_creation(opened[0], PictureRequest("a boat to change", seed=7), "b.png")
    go(page, "paint")
    page.fill(PROMPT, "a boat")
    go(page, "shelf")
    card = page.locator(f'#h-shelf [data-key="{boat.id}"]')
    card.locator(".h-menu summary").click()
    held = Held(page, f"**/hearth/creation/{boat.id}", lambda route: route.request.resource_type == "fetch")
    card.get_by_role("button", name="Change by words").click()
    held.wait()
    page.locator(PROMPT).press("End")
    held.release()
    expect(page.locator(".h-force").locator("visible=true")).to_contain_text("starting from")
    page.keyboard.type(" at sea")
    expect(page.locator(PROMPT)).to_have_value("a boat at sea")


def test_a_refused_file_is_told_of_where_it_was_chosen(page: Page) -> None:
    go(page, "speak")
    unfold(page, "Create a voice")
    held: list[Route] = []
    page.route("**/gradio_api/upload?*", lambda route: held.append(route))
    page.locator("#speak-clip input[type=file]").set_input_files({"name": "a.wav", "mimeType": "audio/wav", "buffer": b"no sound"})
    until_seen(page, lambda: bool(held))
    go(page, "paint")
    held[0].fulfill(status=400, body="a.wav is broken.")
    pass_looks(page)
    chip = page.locator(".h-force").locator("visible=true").locator("li.wrong")
    expect(chip).to_have_count(0)
    go(page, "speak")
    expect(chip).to_contain_text("a.wav is broken.")


def test_enlarge_pressed_twice_asks_once_and_can_be_pressed_again(page: Page, opened: tuple[Desk, str]) -> None:
    boat = keep_creation(opened[0], PictureRequest("a boat pressed twice", seed=7), "b.png")
    go(page, "shelf")
    card = page.locator(f'#h-shelf [data-key="{boat.id}"]')
    card.locator(".h-menu summary").click()
    held = Held(page, "**/hearth/enlarge")
    card.get_by_role("button", name="Enlarge", exact=True).evaluate("button => (button.click(), button.click())")
    held.release()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_have_count(1)
    page.route("**/hearth/enlarge/begin", lambda route: route.abort())
    dialog.get_by_role("button", name="Enlarge", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text(SILENT)
    expect(dialog.get_by_role("button", name="Enlarge", exact=True)).to_be_enabled()


def test_an_older_broken_picture_says_nothing_over_a_newer_one(page: Page, tmp_path: Path) -> None:
    go(page, "paint")
    page.evaluate("""() => {
      const open = window.createImageBitmap;
      const held = new Promise((_, fail) => (window.letGo = fail));
      window.createImageBitmap = () => ((window.createImageBitmap = open), held);
    }""")
    Image.new("RGB", (40, 30), "teal").save(tmp_path / "sea.png")
    for name in ("first.png", "sea.png"):
        page.set_input_files(
            "#h-prompts input[type=file]", {"name": name, "mimeType": "image/png", "buffer": (tmp_path / "sea.png").read_bytes()}
        )
    trouble = page.locator("#h-prompts .h-described .h-trouble")
    expect(trouble).to_contain_text("Hearth needs Florence-2 base")
    page.evaluate("letGo()")
    pass_looks(page)
    expect(trouble).to_contain_text("Hearth needs Florence-2 base")


def test_an_older_reading_takes_back_no_words(page: Page) -> None:
    said = {"begin": 0.0, "end": 1.0, "text": "The sea."}
    held: list[Route] = []

    def send(route: Route) -> None:
        if held:
            route.fulfill(json={"sentences": [{**said, "words": [["The", 0.0, 0.4], ["sea.", 0.5, 1.0]]}]})
        else:
            held.append(route)

    number = 7007  # no earlier test's result has it: one that is drawn already would not be drawn anew
    page.route(f"**/hearth/along/{number}", send)
    result = {"url": "hearth/creation/1", "peaks": [], "name": "said.wav", "id": number, "seconds": 60.0, "subtitles": True}
    go(page, "speak")
    for words in (False, True):
        spoken = part(0, "done") | {"whole": True, "doubt": "", "marks": None}
        show(
            page,
            speech=speech([spoken], {"kind": "finished", "elapsed_s": 2.0}, said=[], results=[{**result, "words": words}], listening={}),
        )
        if not words:
            page.locator("#h-sound .h-along summary").click()
            until_seen(page, lambda: bool(held))
    spans = page.locator("#h-sound .h-along [role=button] span")
    expect(spans).to_have_count(2)
    held[0].fulfill(json={"sentences": [{**said, "words": []}]})
    pass_looks(page)
    expect(spans).to_have_count(2)


def test_the_voices_to_choose_from_are_those_of_the_model(page: Page) -> None:
    held: list[tuple[Route, str]] = []

    def send(route: Route) -> None:
        model = parse_qs(urlsplit(route.request.url).query)["model"][0]
        if model == "dia-1.6b":
            route.fulfill(json={"models": [{"id": model, "title": "Dia", "voices": [{"name": "New one", "formerly": []}]}]})
        else:
            held.append((route, model))

    page.route("**/hearth/cast?*", send)
    go(page, "speak")
    page.fill(SCRIPT, "[S1] Good evening. [S2] Hello.")
    until_seen(page, lambda: bool(held))
    page.evaluate("Hearth.spokenBy('dia-1.6b')")
    voices = page.locator("#h-cast .h-who-voice").first.locator("option")
    expect(voices).to_have_text(["Automatic", "New one"])
    for route, model in held:
        route.fulfill(json={"models": [{"id": model, "title": "Starter", "voices": [{"name": "Old one", "formerly": []}]}]})
    pass_looks(page)
    expect(voices).to_have_text(["Automatic", "New one"])


def test_a_name_that_is_saved_late_takes_no_focus(page: Page) -> None:
    go(page, "shelf")
    card = page.locator("#h-shelf .h-creation").first
    card.locator("summary").press("Enter")
    card.get_by_role("button", name="Rename").press("Enter")
    page.keyboard.type("Evening")
    held = Held(page, "**/hearth/albums/name")
    page.keyboard.press("Enter")
    held.wait()
    search = page.get_by_role("searchbox", name="Search your creations")
    search.focus()
    held.release()
    expect(card.get_by_role("button", name="Delete: Evening")).to_be_visible()
    expect(card.locator("form")).to_have_count(0)
    expect(search).to_be_focused()


@pytest.fixture
def album(page: Page, opened: tuple[Desk, str]) -> int:
    """An album of both creations, looked into."""
    gallery, shelf = opened[0].keeper.gallery, opened[0].keeper.shelf
    for each in gallery.list_albums():
        gallery.remove_album(each.id)
    made = gallery.make_album("Sea")
    gallery.put([shelf.get(1), shelf.get(2)], made)
    go(page, "shelf")
    page.locator(".h-album-pick").select_option("Sea (2)")
    expect(page.locator(".h-album h2")).to_have_text("Sea")
    return made


@pytest.mark.usefixtures("album")
def test_what_is_ticked_while_others_leave_an_album_stays_ticked(page: Page) -> None:
    boxes = [page.locator(f'#h-shelf [data-key="{number}"] .h-pick input') for number in (1, 2)]
    boxes[0].check()
    held = Held(page, "**/hearth/albums/take")
    page.get_by_role("button", name="Take out of this album").click()
    held.wait()
    boxes[1].check()
    held.release()
    expect(boxes[0]).to_have_count(0)
    expect(boxes[1]).to_be_checked()


def test_an_album_is_renamed_though_it_changes_meanwhile(page: Page, opened: tuple[Desk, str], album: int) -> None:
    desk = opened[0]
    page.get_by_role("button", name="Rename album").click()
    page.keyboard.press("End")
    page.keyboard.type(" and")
    desk.keeper.gallery.take([desk.keeper.shelf.get(1)], album)
    page.locator("#h-shelf .h-star").first.evaluate("star => star.click()")  # draws the Shelf anew
    expect(page.locator(".h-album-pick option").last).to_have_text("Sea (1)")
    page.keyboard.type(" sky")
    page.keyboard.press("Enter")
    expect(page.locator(".h-album h2")).to_have_text("Sea and sky")


@pytest.mark.usefixtures("album")
def test_drafts_that_were_refused_are_not_said_to_be_kept(page: Page) -> None:
    page.route("**/hearth/albums/keep", lambda route: route.fulfill(json={"trouble": "The disk is full."}))
    page.get_by_role("button", name="Keep my drafts in it").click()
    expect(page.locator("#h-shelf .h-trouble")).to_have_text("The disk is full.")
    pass_looks(page)
    expect(page.locator(".h-album p")).to_contain_text("An album.")


def test_an_album_keeps_also_what_is_still_being_saved(page: Page, opened: tuple[Desk, str], album: int) -> None:
    go(page, "speak")
    held = Held(page, "**/hearth/drafts", lambda route: route.request.method == "POST", most=1)
    page.fill(SCRIPT, "Mine, typed last.")
    held.wait()
    go(page, "paint")
    page.fill(PROMPT, "a boat")  # is saved by itself
    go(page, "shelf")
    page.get_by_role("button", name="Keep my drafts in it").click()
    pass_looks(page)
    held.release()
    expect(page.locator(".h-album p")).to_contain_text("are kept in it")
    drafts = opened[0].keeper.gallery.get_album(album).drafts["drafts"]
    assert (drafts["speak-text"], drafts["paint-prompt"]) == ("Mine, typed last.", "a boat")


def test_a_draft_that_comes_late_is_still_filled_in(browser: Browser, opened: tuple[Desk, str]) -> None:
    """An earlier text kept before it came was taken for all the drafts there are."""
    desk, address = opened
    desk.settings.put({"drafts": {"paint-prompt": "a red house"}})
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    held = Held(page, "**/hearth/drafts", lambda route: route.request.method == "GET", most=1)
    page.goto(address)
    held.wait()
    go(page, "speak")
    page.fill(SCRIPT, "Mine.")
    page.locator("#h-scripts button").first.click()
    go(page, "paint")
    held.release()
    expect(page.locator(PROMPT)).to_have_value("a red house")
    end_answers(page)
    context.close()


def test_texts_replaced_before_the_drafts_come_stand_before_the_older_ones(page: Page, opened: tuple[Desk, str]) -> None:
    opened[0].settings.put({"drafts": {"speak-text": "", "speak-text-earlier": ["An older one."]}})
    held = Held(page, "**/hearth/drafts", lambda route: route.request.method == "GET")
    page.reload()
    go(page, "speak")
    page.fill(SCRIPT, "Mine.")
    page.locator("#h-scripts button").first.click()
    expect(page.locator(SCRIPT)).not_to_have_value("Mine.")
    held.release()
    for words in ("Mine.", "An older one."):
        page.locator("#h-scripts .h-earlier").click()
        expect(page.locator(SCRIPT)).to_have_value(words)


def test_a_refused_address_is_not_covered_by_a_test_of_the_older_one(page: Page, opened: tuple[Desk, str]) -> None:
    go(page, "machine")
    card = page.locator("#h-notify")
    address, save = card.get_by_label("Address", exact=True), card.get_by_role("button", name="Save")
    address.fill("https://ntfy.sh/hearth")
    save.click()
    expect(card.get_by_role("status")).to_have_text("Saved.")
    tries: list[Route] = []
    page.route("**/hearth/notify/try", lambda route: (tries.append(route), route.fulfill(json={}))[1])
    held = Held(page, "**/hearth/notify/keep")
    address.fill("ntfy.sh/hearth")
    save.click()
    held.wait()
    card.get_by_role("button", name="Send a test").click()
    held.release()
    expect(card.get_by_role("alert")).to_contain_text("This is no web address.")
    pass_looks(page)
    assert not tries
    card.get_by_role("button", name="Send a test").click()
    until_seen(page, lambda: bool(tries))


def test_a_style_typed_while_another_is_saved_stays(page: Page) -> None:
    go(page, "paint")
    page.get_by_role("combobox", name="Styles").select_option("Save and change styles…")
    dialog = page.get_by_role("dialog", name="Styles")
    dialog.get_by_label("Name").fill("Late")
    dialog.get_by_label("Text").fill("late {prompt}")
    held = Held(page, "**/hearth/styles/keep")
    dialog.get_by_role("button", name="Save").click()
    held.wait()
    dialog.get_by_label("Name").fill("Next")
    held.release()
    dialog.get_by_role("button", name="Late", exact=True).wait_for()
    expect(dialog.get_by_label("Name")).to_have_value("Next")


def test_an_export_and_a_project_that_nobody_answers_for_are_told_of(page: Page, opened: tuple[Desk, str], tmp_path: Path) -> None:
    made = [keep_creation(opened[0], SpeechRequest(f"Told {name}."), f"{name}.wav") for name in ("one", "two")]
    page.route("**/hearth/export?*", lambda route: route.abort())
    page.route("**/hearth/project", lambda route: route.abort())
    go(page, "shelf")
    for each in made:
        page.check(f'#h-shelf [data-key="{each.id}"] .h-pick input')
    join = page.locator("#h-shelf .h-audiobook")
    join.click()
    expect(page.locator("#h-shelf .h-trouble")).to_contain_text(SILENT)
    expect(join).to_be_enabled()
    (tmp_path / "a.hearth").write_bytes(b"no matter")
    page.set_input_files("#h-shelf .h-project-file", tmp_path / "a.hearth")
    expect(page.locator("#h-shelf .h-project-note")).to_contain_text(SILENT)
