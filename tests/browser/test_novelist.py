"""A novelist opens her book, hears it begin, mends it line by line and saves it, in a real browser: the starter voice, a real engine, and of the page
only what a screen reader finds. Whatever is pressed is pressed by key."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.support.novel import save_novel, write_novel
from tests.support.waiting import LOADING_S
from tests.support.window import Open, await_script, chromium, end, needs_chromium, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), needs_chromium]
MOST_MS = 5000 * LOADING_S
CHAPTERS = 3
COVER = b'<manifest><item id="c" href="c.png" properties="cover-image"/>'
HEARD = """() => {
  const begin = AudioBufferSourceNode.prototype.start, play = HTMLMediaElement.prototype.play;
  AudioBufferSourceNode.prototype.start = function (...how) { window.heard = true; return begin.apply(this, how); };
  HTMLMediaElement.prototype.play = function () { window.heard = true; return play.apply(this); };
}"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    root = tmp_path_factory.mktemp("novelist")
    (root / "home").mkdir()
    (root / "home/settings.json").write_text('{"greeted": true}')
    hearth = start(root / "home", root / "audit")
    yield hearth
    end(hearth, root / "audit")


@pytest.fixture(scope="module")
def page(opened: Open) -> Iterator[Page]:
    with chromium() as browser:
        expect.set_options(timeout=MOST_MS)
        page, faults = browser.new_page(locale="en-US", accept_downloads=True, viewport={"width": 1400, "height": 1000}), list[str]()
        page.set_default_timeout(MOST_MS)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(opened.address)
        await_script(page)
        page.evaluate(HEARD)
        yield page
    assert not faults


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a novel whose cover is a red picture."""
    folder, cover = tmp_path_factory.mktemp("book"), io.BytesIO()
    Image.new("RGB", (60, 90), "red").save(cover, "PNG")
    plain = save_novel(folder / "plain.epub", write_novel(CHAPTERS * 40, CHAPTERS, seed=7))
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(folder / "novel.epub", "w") as new:
        for each in old.namelist():
            new.writestr(each, old.read(each).replace(b"<manifest>", COVER))
        new.writestr("OEBPS/c.png", cover.getvalue())
    return folder / "novel.epub"


def group(page: Page) -> Locator:
    return page.get_by_role("group", name="The Ferry & the Fjord by A. Writer")


def press(place: Page | Locator, name: str | re.Pattern[str]) -> None:
    """By key, as somebody does who sees no pointer."""
    button = place.get_by_role("button", name=name).first
    expect(button).to_be_enabled()
    button.focus()
    button.press("Enter")


def edit(page: Page, number: int) -> Locator:
    """Open the form of a part."""
    press(page, re.compile(rf"^Edit part {number}$"))
    words = page.get_by_role("textbox", name=f"Words of part {number}", exact=True)
    expect(words).to_be_focused()
    return words


def line(page: Page, number: int) -> Locator:
    return page.locator("#h-parts").get_by_role("listitem").filter(has=page.get_by_role("button", name=f"Edit part {number}", exact=True))


def choose(page: Page, name: str, label: str) -> None:
    """Choose by its first letter."""
    box = page.get_by_role("combobox", name=name)
    box.focus()
    page.keyboard.type(label)
    expect(box.locator("option:checked")).to_have_text(label)


def hear(page: Page, name: str) -> None:
    page.evaluate("window.heard = false")
    press(page, name)
    page.wait_for_function("window.heard")


def press_and_await(page: Page, name: str | re.Pattern[str]) -> None:
    """Press what leads to another script's parts, and wait until these are all there."""
    before = page.evaluate("Hearth.live.state.speech.job")
    press(page.locator("#h-parts"), name)
    page.wait_for_function("before => Hearth.live.state.speech.job !== before && Hearth.live.state.speech.end", arg=before)
    expect(page.get_by_role("button", name="Edit part 1", exact=True)).to_be_visible()


def save(page: Page, name: str, folder: Path) -> Path:
    with page.expect_download() as download:
        press(group(page), name)
    download.value.save_as(folder / download.value.suggested_filename)
    return folder / download.value.suggested_filename


def script(page: Page) -> str:
    return page.locator("#speak-text textarea").input_value()


def test_1_the_book_is_opened_and_each_speaker_gets_a_voice(page: Page, book: Path) -> None:
    with page.expect_file_chooser() as chooser:
        press(page, "Open a book")
    chooser.value.set_files(book)
    expect(group(page).get_by_role("list").get_by_role("checkbox")).to_have_count(CHAPTERS)
    press(group(page), "Give each a voice")
    names = group(page).get_by_role("group", name="Who speaks").get_by_role("checkbox")
    expect(names.first).to_be_checked()
    expect(names.first).to_be_focused()
    choose(page, "Voice of Narrator", "George")


def test_2_the_first_sentence_is_heard_while_the_rest_is_spoken(page: Page) -> None:
    page.evaluate("window.heard = false")
    press(group(page), f"Speak {CHAPTERS} chapters")
    press(page, "Play all")
    page.wait_for_function("window.heard")
    expect(page.get_by_text(re.compile(rf"Chapter \d of {CHAPTERS}"))).to_be_visible()


def test_3_a_line_is_changed_and_both_takes_are_there(page: Page) -> None:
    expect(group(page).get_by_role("list").get_by_text("spoken", exact=True)).to_have_count(CHAPTERS)
    press(group(page), re.compile("^Open its parts: The Lock-Keeper"))
    words = edit(page, 2)
    was = words.input_value()
    words.fill("The fog came up from the sea.")
    words.press("Control+Enter")
    expect(page.get_by_role("button", name="Edit part 2", exact=True)).to_be_focused()
    expect(line(page, 2)).to_contain_text("The fog came up from the sea.")
    earlier = page.locator("#h-parts").get_by_text("1 earlier take")
    expect(earlier).to_have_count(1)  # of no other line
    earlier.focus()
    earlier.press("Enter")
    hear(page, "Play earlier take 1 of part 2")
    hear(page, "Play part 2")
    press_and_await(page, re.compile("^Use take 1 of part 2"))
    expect(page.get_by_text("The take is used")).to_be_visible()
    expect(line(page, 2)).not_to_contain_text("The fog came up from the sea.")
    assert was in script(page)


def test_4_lines_move_and_a_pause_and_one_voice_are_set(page: Page) -> None:
    edit(page, 2)
    press(page, "Move down")
    expect(page.get_by_role("button", name="Edit part 3", exact=True)).to_be_focused()
    edit(page, 2)
    pause = page.get_by_role("spinbutton", name="Pause before, s")
    pause.fill("2")
    pause.press("Tab")
    expect(page.get_by_text("The pause is set.")).to_be_visible()
    assert "(pause 2s)" in script(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit part 2", exact=True)).to_be_focused()
    choose(page, "Voice of Anna", "Heather")
    press_and_await(page, "Speak only what changed")


def test_5_a_name_is_said_differently_and_shown_so_before_it_is_spoken(page: Page) -> None:
    page.locator("#speak-text textarea").evaluate(
        "(box) => { const at = box.value.indexOf('Anna.'); box.focus(); box.setSelectionRange(at, at + 4); }"
    )
    press(page, "Say \u201cAnna\u201d differently")
    spoken = page.get_by_role("textbox", name="Spoken as")
    expect(spoken).to_be_focused()
    spoken.fill("Ahnna")
    hear(page, "Hear it")
    press(page, "Say it so")
    expect(page.get_by_text("Anna is said so in this script.")).to_be_visible()
    expect(page.locator("#h-script").get_by_text("Ahnna").first).to_be_visible()
    press_and_await(page, "Speak only what changed")
    expect(page.locator("#h-parts").get_by_text("Ahnna").first).to_be_visible()


def test_6_undo_leads_back_to_the_book_as_it_was_read(page: Page, opened: Open) -> None:
    for _ in range(4):  # the name; the lines and the voice; the take; the words
        press_and_await(page, "Undo")
    expect(page.locator("#h-parts").get_by_role("button", name="Undo")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit part 1", exact=True)).to_be_focused()
    expect(page.locator("#h-parts").get_by_text("earlier take").locator("visible=true")).to_have_count(0)
    assert "(pause 2s)" not in script(page) and "Ahnna" not in page.locator("#h-parts").inner_text()
    assert opened.rows("SELECT COUNT(*) FROM creations WHERE binned_s IS NULL") == [(CHAPTERS,)]


def test_7_one_chapter_is_made_again(page: Page, opened: Open) -> None:
    press(group(page), "Tick none")
    box = group(page).get_by_role("checkbox", name="A Letter from Cork")
    box.focus()
    box.press("Space")
    press(group(page), "Speak 1 chapter")
    expect(group(page).get_by_role("list").get_by_text("being spoken")).to_have_count(1)
    expect(group(page).get_by_role("list").get_by_text("spoken", exact=True)).to_have_count(CHAPTERS)
    assert opened.rows("SELECT COUNT(*) FROM creations WHERE binned_s IS NULL") == [(CHAPTERS + 1,)]
    press(page, "Put the script of these parts back to edit them")  # the field still holds the other chapter


def test_8_the_book_is_saved_with_cover_and_chapters_and_a_file_a_chapter(page: Page, tmp_path: Path) -> None:
    titles = ["The Lock-Keeper", "A Letter from Cork", "Low Water"]
    whole = save(page, "Save as an audiobook", tmp_path)
    av = pytest.importorskip("av")
    assert whole.name == "The Ferry the Fjord.m4b"
    with av.open(str(whole)) as opened:
        assert [each["metadata"]["title"] for each in opened.chapters()] == titles
        assert opened.metadata["title"] == "The Ferry & the Fjord" and opened.metadata["artist"] == "A. Writer"
        (drawn,) = opened.streams.video
        assert (drawn.width, drawn.height) == (60, 90)
    for kind in ("MP3", "FLAC"):
        with zipfile.ZipFile(save(page, f"Save each chapter as {kind}", tmp_path)) as bundle:
            assert bundle.namelist() == [f"{number} {title}.{kind.lower()}" for number, title in enumerate(titles, 1)]
            for number, each in enumerate(bundle.namelist(), 1):
                with av.open(io.BytesIO(bundle.read(each))) as opened:
                    tags = {name.lower(): value for name, value in opened.metadata.items()}
                assert (tags["title"], tags["album"], tags["track"]) == (titles[number - 1], "The Ferry & the Fjord", str(number))
