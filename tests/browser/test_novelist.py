"""A novelist opens her book and hears it begin, in a real browser: the starter voice, a real engine, and of the page only what a screen reader finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.novel import save_novel, write_novel
from tests.support.waiting import LOADING_S
from tests.support.window import Open, await_script, chromium, end, needs_chromium, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), needs_chromium]
MOST_MS = 5000 * LOADING_S
CHAPTERS = 2
HEARD = """() => {
  const begin = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (...how) { window.heard = true; return begin.apply(this, how); };
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
        yield page
    assert not faults


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_novel(tmp_path_factory.mktemp("book") / "novel.epub", write_novel(CHAPTERS * 20, CHAPTERS, seed=7))


def group(page: Page) -> Locator:
    return page.get_by_role("group", name="The Ferry & the Fjord by A. Writer")


def press(place: Page | Locator, name: str | re.Pattern[str]) -> None:
    """By key, as somebody does who sees no pointer."""
    button = place.get_by_role("button", name=name).first
    expect(button).to_be_enabled()
    button.focus()
    button.press("Enter")


def test_1_the_book_is_opened_and_each_speaker_gets_a_voice(page: Page, book: Path) -> None:
    with page.expect_file_chooser() as chooser:
        press(page, "Open a book")
    chooser.value.set_files(book)
    expect(group(page).get_by_role("list").get_by_role("checkbox")).to_have_count(CHAPTERS)
    press(group(page), "Give each a voice")
    names = group(page).get_by_role("group", name="Who speaks").get_by_role("checkbox")
    expect(names.first).to_be_checked()
    page.get_by_role("combobox", name="Voice of Narrator").select_option(label="George")


def test_2_the_first_sentence_is_heard_while_the_rest_is_spoken(page: Page) -> None:
    page.evaluate(HEARD)
    press(group(page), f"Speak {CHAPTERS} chapters")
    press(page, "Play all")
    page.wait_for_function("window.heard")
    expect(page.get_by_text(re.compile(rf"Chapter \d of {CHAPTERS}"))).to_be_visible()
