"""A novelist drops her book, hears a chapter, changes a line, has the chapter made again and saves it: the starter voice, a real engine."""

from __future__ import annotations

import re
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import soundfile
from playwright.sync_api import Locator, Page, expect

from tests.browser import test_novelist
from tests.browser.test_novelist import HEARD, group, press
from tests.support.novel import save_novel
from tests.support.waiting import LOADING_S, until
from tests.support.window import Open, drop, needs_chromium

opened, page = test_novelist.opened, test_novelist.page
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), needs_chromium]
NOVEL = {
    "The Ferry": ["It rained on the quay.", "“Come in,” said Anna.", "“It is cold,” said Ben."],
    "The Lock": [f"“{words},” said {name}." for name in ("Carl", "Dora", "Emil") for words in ("Wait", "It is late")],
    "The Mill": [f"“{words},” said {name}." for name in ("Frieda", "Gustav", "Mrs. Hall", "Anna", "Ben") for words in ("Listen", "I know")],
}
PEOPLE = 8
OLD, NEW = "It is cold", "It is warm"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_novel(tmp_path_factory.mktemp("book") / "novel.epub", NOVEL)


def find_chapter(page: Page) -> Locator:
    return group(page).locator(".h-chapters li").filter(has_text="The Ferry")


def await_spoken(page: Page, opened: Open, count: int) -> None:
    until(lambda: [each["state"] for each in opened.jobs()] == ["finished"] * count, 10 * LOADING_S)
    expect(find_chapter(page).get_by_text("spoken", exact=True)).to_be_visible()


def test_1_from_the_dropped_file_to_the_first_sentence(page: Page, book: Path) -> None:
    page.evaluate(HEARD)
    began_s = time.monotonic()
    drop(page, "#speak-text textarea", "novel.epub", book.read_bytes(), "application/epub+zip")
    press(group(page), "Give each a voice")
    names = group(page).get_by_role("group", name="Who speaks").get_by_role("checkbox")
    expect(names).to_have_count(PEOPLE)
    for name, voice in (("Narrator", "George"), ("Anna", "Heather"), ("Ben", "Callum")):
        page.get_by_role("combobox", name=f"Voice of {name}").select_option(label=voice)
    press(group(page), "Tick none")
    group(page).get_by_role("checkbox", name="The Ferry").check()
    press(group(page), "Speak 1 chapter")
    press(page, "Play all")
    page.wait_for_function("window.heard")
    print(f"\nfrom the dropped file to the first sentence: {time.monotonic() - began_s:.1f} s")


def test_2_a_line_is_changed_and_spoken_anew(page: Page, opened: Open) -> None:
    await_spoken(page, opened, 1)
    press(find_chapter(page), re.compile("^Open its parts"))
    expect(page.locator("#h-parts .h-part")).to_contain_text(["The Ferry", "It rained", "Come in", "said Anna", OLD, "said Ben"])
    press(page.locator("#h-parts"), "Edit part 5")
    words = page.get_by_role("textbox", name="Words of part 5")
    words.fill(words.input_value().replace(OLD, NEW))
    words.press("Control+Enter")
    await_spoken(page, opened, 2)
    assert NEW in opened.jobs()[-1]["request"]["text"] and len(opened.jobs()[-1]["request"]["only_parts"]) == 1
    expect(page.locator("#h-parts .h-part").filter(has_text=NEW)).to_be_visible()


def test_3_the_chapter_is_made_again_with_the_line_as_it_is_now(page: Page, opened: Open) -> None:
    press(group(page), "Speak 1 chapter")
    await_spoken(page, opened, 3)
    request = opened.jobs()[-1]["request"]
    assert NEW in request["text"] and not request["keep"]


def test_4_a_changed_voice_marks_the_chapter_and_speaks_its_lines_alone(page: Page, opened: Open) -> None:
    page.get_by_role("combobox", name="Voice of Anna").select_option(label="Edith")
    expect(find_chapter(page)).to_contain_text(re.compile(r"1 of \d parts in another voice now"))
    press(group(page), "Speak the changed lines of 1 chapter")
    await_spoken(page, opened, 4)
    assert len(opened.jobs()[-1]["request"]["only_parts"]) == 1
    expect(find_chapter(page)).not_to_contain_text("in another voice now")


def test_5_it_is_saved_with_its_title(page: Page, tmp_path: Path) -> None:
    with page.expect_download() as came:
        press(group(page), "Save each chapter as MP3")
    with zipfile.ZipFile(came.value.path()) as packed:
        packed.extractall(tmp_path)
    with soundfile.SoundFile(tmp_path / "1 The Ferry.mp3") as file:
        assert (file.title, file.album, file.artist) == ("The Ferry", "The Ferry & the Fjord", "A. Writer") and len(file) > file.samplerate
    if find_spec("av") is None:
        return
    import av

    with page.expect_download() as came:
        press(group(page), "Save as an audiobook")
    came.value.save_as(tmp_path / "book.m4b")
    with av.open(str(tmp_path / "book.m4b")) as file:
        assert file.metadata["title"] == "The Ferry & the Fjord" and [each["metadata"]["title"] for each in file.chapters()] == [
            "The Ferry"
        ]
