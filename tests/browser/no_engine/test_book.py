"""A book dropped on Speak, its chapters ticked, begun, or put into the script: in a real browser, without an engine."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from app.engine.jobs.request import SpeechRequest
from app.engine.speech.sound import sound, stream_encoding
from app.engine.speech.text.turns import ScriptPart, Turn
from app.ui.state.book_desk import BookDesk, Revoiced, Spoken
from app.ui.state.desk import Desk
from tests.support.books import save_epub
from tests.support.window import drop, go, needs_chromium, shut_out, unfold, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

PAGES = {
    "one.xhtml": "<h1>The Ferry</h1>" + "<p>The wind came off the fjord, smelling of salt and tar.</p>" * 30,
    "two.xhtml": "<h1>The Storm</h1><p>Then it rained.</p>",
    "three.xhtml": "<h1>The Shore</h1><p>It was cold and dark. Nobody spoke.</p>",
}
BOOK = "#h-book"


@pytest.fixture
def epub(tmp_path: Path) -> Path:
    return save_epub(tmp_path / "ferry.epub", PAGES, {"one.xhtml": "The Ferry", "two.xhtml": "The Storm", "three.xhtml": "The Shore"})


def open_book(page: Page, path: Path) -> None:
    go(page, "speak")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a book").click()
    chooser.value.set_files(path)


@pytest.mark.slow
def test_its_ticked_chapters_are_begun_one_after_the_other(
    page: Page, opened: tuple[Desk, str], epub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(type(opened[0].jobs), "begin_together", lambda self, requests, person, sources: begun.extend(requests))
    open_book(page, epub)
    group = page.get_by_role("group", name="The Ferry & the Fjord by A. Writer")
    expect(group).to_contain_text(re.compile("3 chapters, about .* of speech"))
    expect(group.get_by_role("checkbox")).to_have_count(3)
    group.get_by_role("checkbox", name="The Storm").uncheck()
    expect(group).to_contain_text(re.compile("2 of 3 chapters, about"))
    group.get_by_role("button", name="Speak 2 chapters").click()
    until_seen(page, lambda: len(begun) == 2)
    assert all(isinstance(each, SpeechRequest) for each in begun)
    assert [each.text.split("\n")[0] for each in begun] == ["The Ferry", "The Shore"]
    assert not shut_out(page)
    page.reload()
    again = page.get_by_role("group", name="The Ferry & the Fjord")
    expect(again.get_by_role("checkbox", name="The Storm")).not_to_be_checked()
    again.get_by_role("button", name="Close the book").click()
    expect(page.locator(BOOK)).to_be_hidden()


def test_who_speaks_is_a_guess_to_confirm_and_each_name_gets_a_row_below(page: Page, tmp_path: Path) -> None:
    told = "<p>\u201cCome in,\u201d said Ben.</p><p>\u201cNo,\u201d said Xiomara.</p><p>\u201cWell,\u201d said Ben.</p><p>\u201cNo,\u201d said Xiomara.</p>"
    story = save_epub(tmp_path / "story.epub", {"one.xhtml": f"<h1>One</h1>{told}", "two.xhtml": "<h1>Two</h1><p>It rained.</p>"}, None)
    page.locator("#speak-text textarea").fill("")
    open_book(page, story)
    who = page.get_by_role("group", name="Who speaks")
    expect(who).to_contain_text("2 names seem to speak in this book, by words such as: said Ben.")
    rows = page.locator("#h-cast").get_by_role("listitem")
    expect(rows).to_have_count(0)
    who.get_by_role("button", name="Give each a voice").click()
    expect(who.get_by_role("checkbox", name="Xiomara (2)")).to_be_checked()
    expect(rows).to_have_count(3)
    expect(page.get_by_role("combobox", name="Voice of Xiomara")).to_be_visible()
    assert not shut_out(page)
    who.get_by_role("checkbox", name="Xiomara (2)").uncheck()
    expect(rows).to_have_count(2)
    page.get_by_role("checkbox", name="Two").uncheck()
    page.get_by_role("button", name="Put into the script").click()
    expect(page.locator("#speak-text textarea")).to_have_value(re.compile(r"\[Ben\] \u201cCome in,\u201d \[Narrator\] said Ben"))
    who.get_by_role("button", name="One voice for all").click()
    expect(who.get_by_role("checkbox")).to_have_count(0)
    page.get_by_role("button", name="Close the book").click()


@pytest.mark.slow
def test_names_that_fill_several_lines_leave_free_what_stands_below_them(page: Page, tmp_path: Path) -> None:
    names = ("Anna", "Ben", "Clara", "Xiomara", "Tobias", "Margarethe", "Bartholomew", "Wilhelmina", "Montgomery", "Konstantin")
    told = "".join(f"<p>\u201cCome in,\u201d said {name}.</p>" * 2 for name in names)
    open_book(page, save_epub(tmp_path / "crowd.epub", {"one.xhtml": f"<h1>One</h1>{told}"}, None))
    who = page.get_by_role("group", name="Who speaks")
    who.get_by_role("button", name="Give each a voice").click()
    expect(who.get_by_role("checkbox")).to_have_count(len(names))
    first, last = (each.bounding_box() for each in (who.locator("label").first, who.locator("label").last))
    below = who.get_by_role("button", name="One voice for all").bounding_box()
    assert first and last and below
    assert first["y"] + first["height"] <= last["y"]
    assert last["y"] + last["height"] <= below["y"]
    page.get_by_role("button", name="Close the book").click()


@pytest.mark.slow
def test_chapters_become_the_script_and_what_was_there_comes_back(page: Page, epub: Path) -> None:
    go(page, "speak")
    script = page.locator("#speak-text textarea")
    script.fill("[S1] Mine.")
    open_book(page, epub)
    page.get_by_role("button", name="Tick none").click()
    for name in (re.compile("^Speak 0"), "Put into the script"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    page.get_by_role("checkbox", name="The Storm").check()
    page.get_by_role("checkbox", name="The Shore").check()
    page.get_by_role("button", name="Put into the script").click()
    expect(script).to_have_value("The Storm\n\nThen it rained.\n\nThe Shore\n\nIt was cold and dark. Nobody spoke.")
    page.locator(".h-rewritten").get_by_role("button", name="Undo").click()
    expect(script).to_have_value("[S1] Mine.")


def test_a_dropped_markdown_file_is_read_as_a_book_and_its_notes_are_left_out(page: Page) -> None:
    """It became the script as it was written, with marks and notes that were read aloud."""
    go(page, "speak")
    drop(page, "#speak-text textarea", "ferry.md", b"# The Ferry\n\nThe wind[^1] came off the *fjord*.\n\n[^1]: Of the west.\n")
    page.get_by_role("button", name="Put into the script").click()
    expect(page.locator("#speak-text textarea")).to_have_value("The Ferry\n\nThe wind came off the fjord.")
    page.get_by_role("button", name="Close the book").click()


def test_spoken_chapters_that_a_changed_voice_touches_are_marked_and_spoken_anew_by_a_press(
    page: Page, opened: tuple[Desk, str], epub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, changed = list[SpeechRequest](), [True]
    touched = [Revoiced(1, SpeechRequest("It rained."), None, (ScriptPart((Turn(1, "It rained."),), 1.0),), 1)]
    monkeypatch.setattr(BookDesk, "list_spoken", lambda self: [Spoken("done", 1), Spoken("done", 2), Spoken()])
    monkeypatch.setattr(BookDesk, "list_revoiced", lambda self, request: touched if changed else [])
    monkeypatch.setattr(BookDesk, "speak_revoiced", lambda self, request: (asked.append(request), changed.clear()))
    open_book(page, epub)
    storm = page.get_by_role("checkbox", name="The Storm")
    expect(storm).to_have_accessible_description(re.compile("^spoken 1 of 1 part in another voice now "))
    expect(page.locator(BOOK).get_by_text("in another voice now")).to_have_count(1)
    expect(page.locator(BOOK)).to_contain_text("Voices have changed since these chapters were spoken.")
    page.get_by_role("button", name="Speak the changed lines of 1 chapter").click()
    until_seen(page, lambda: len(asked) == 1)
    expect(page.locator(f"{BOOK} .h-revoice")).to_be_hidden()
    expect(storm).to_have_accessible_description(re.compile("^spoken [^o]*$"))
    page.get_by_role("button", name="Close the book").click()


@pytest.mark.slow
def test_a_recording_as_the_voice_hides_what_other_voices_touched(
    page: Page, epub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched = [Revoiced(1, SpeechRequest("It rained."), None, (ScriptPart((Turn(1, "It rained."),), 1.0),), 1)]
    monkeypatch.setattr(BookDesk, "list_spoken", lambda self: [Spoken("done", 1), Spoken("done", 2), Spoken()])
    monkeypatch.setattr(BookDesk, "list_revoiced", lambda self, request: touched)
    open_book(page, epub)
    expect(page.locator(f"{BOOK} .h-revoice")).to_be_visible()
    sound.write(tmp_path / "mine.wav", np.full(16_000 * 6, 0.1, np.float32), 16_000)
    unfold(page, "Create a voice")
    page.locator("#speak-clip input[type=file]").set_input_files(tmp_path / "mine.wav")
    expect(page.locator(f"{BOOK} .h-revoice")).to_be_hidden()
    expect(page.locator(BOOK).get_by_text("in another voice now").and_(page.locator(":visible"))).to_have_count(0)
    page.get_by_role("button", name="Close the book").click()


@pytest.mark.slow
def test_an_audiobook_that_needs_an_extra_offers_it_by_a_button(page: Page, epub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BookDesk, "list_spoken", lambda self: [Spoken("done", 1), Spoken("done", 2), Spoken()])
    monkeypatch.setattr(stream_encoding, "find_spec", lambda name: None)
    open_book(page, epub)
    group = page.get_by_role("group", name="The Ferry & the Fjord by A. Writer")
    group.get_by_role("button", name="Save as an audiobook").click()
    expect(group.get_by_role("alert")).to_contain_text("AAC needs the library PyAV (36 MB)")
    group.get_by_role("button", name="Open extras").click()
    expect(page.locator("#h-upkeep")).to_contain_text("Extras")
    go(page, "speak")
    page.get_by_role("button", name="Close the book").click()


def tab_to(page: Page, name: str, most: int = 60) -> None:
    """Press Tab until what has the focus is called so; fail where that is never reached."""
    for _ in range(most):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and focused.aria_snapshot().strip().removeprefix("- ").partition(":")[0].startswith(name):
            return
    raise AssertionError(f"Tab does not lead to {name}")


def test_a_book_is_opened_ticked_cast_and_begun_by_keys_alone(
    page: Page, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(type(opened[0].jobs), "begin_together", lambda self, requests, person, sources: begun.extend(requests) or ())
    told = "<p>\u201cCome in,\u201d said Ben.</p><p>\u201cNo,\u201d said Anna.</p><p>\u201cWell,\u201d said Ben.</p><p>\u201cNo,\u201d said Anna.</p>"
    story = save_epub(tmp_path / "story.epub", {"one.xhtml": f"<h1>One</h1>{told}", "two.xhtml": "<h1>Two</h1><p>It rained.</p>"}, None)
    go(page, "speak")
    page.locator("#speak-text textarea").fill("")
    page.locator("#speak-text textarea").focus()
    with page.expect_file_chooser() as chooser:
        tab_to(page, 'button "Open a book')
        page.keyboard.press("Enter")
    chooser.value.set_files(story)
    group = page.get_by_role("group", name="The Ferry & the Fjord by A. Writer")
    expect(group).to_be_focused()
    expect(group).to_have_accessible_description(re.compile("2 chapters, about .* of speech"))
    tab_to(page, 'checkbox "Two"')
    expect(page.get_by_role("checkbox", name="Two")).to_have_accessible_description(re.compile(" s$"))
    page.keyboard.press("Space")
    expect(group.get_by_role("status")).to_contain_text(re.compile("1 of 2 chapters, about"))
    tab_to(page, 'button "Give each a voice"')
    page.keyboard.press("Enter")
    expect(page.get_by_role("checkbox", name="Ben (2)")).to_be_focused()
    expect(page.get_by_role("combobox", name="Voice of Anna").locator("option", has_text="Heather")).to_be_attached()
    tab_to(page, 'combobox "Voice of Anna"')
    page.keyboard.type("Heather")
    expect(page.locator("select:focus option:checked")).to_have_text("Heather")
    while not page.locator(":focus").aria_snapshot().startswith('- button "Speak 1 chapter"'):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    until_seen(page, lambda: len(begun) == 1)
    (asked,) = begun
    assert "[Anna]" in asked.text and [each.name for each in asked.cast] == ["Narrator", "Ben", "Anna"]
    tab_to(page, 'button "Close the book"')
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Open a book")).to_be_focused()


@pytest.mark.slow
def test_what_is_no_book_is_told_of_and_the_open_one_stays(page: Page, epub: Path, tmp_path: Path) -> None:
    open_book(page, epub)
    expect(page.get_by_role("checkbox", name="The Storm")).to_be_visible()
    (tmp_path / "draft.rtf").write_bytes(b"{\\rtf1}\n")
    open_book(page, tmp_path / "draft.rtf")
    expect(page.get_by_role("alert").filter(has_text="draft.rtf is a RTF file")).to_be_visible()
    expect(page.get_by_role("checkbox", name="The Storm")).to_be_visible()


@pytest.mark.skipif(find_spec("av") is None, reason="an extra")
def test_what_is_selected_on_the_shelf_is_saved_as_an_audiobook(page: Page) -> None:
    go(page, "shelf")
    save = page.get_by_role("button", name="Save as an audiobook")
    expect(page.locator("#h-shelf .h-creation")).to_have_count(2)
    expect(save).to_be_hidden()
    page.locator("#h-shelf .h-creation").last.locator(".h-pick input").check()  # the first one made: a sound
    with page.expect_download() as came:
        save.click()
    assert came.value.suggested_filename == "audiobook.m4b"
    assert b"M4B " in came.value.path().read_bytes()[:16]
