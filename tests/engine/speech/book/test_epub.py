"""EPUBs in the layouts that other programs write, and those that cannot be read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from app.base.trouble import BadRequest
from tests.support.books import read_book, save_epub

ONE = "<h1 id='a'>The Ferry</h1><p>The wind came off the <em>fj</em>ord.</p><p>&#8220;Yes,&#8221; said&nbsp;Anna.<br/>She went.</p>"
TWO = "<h1>The Fjord</h1><p>It was cold &amp; dark.</p><hr/><p>Then it rained.</p>"
NOTES = (
    "<p>A word<a epub:type='noteref' href='#n1'>12</a> more.</p><aside epub:type='footnote' id='n1'><p>Nobody reads this.</p></aside>"
    "<p><ruby>\u6f22<rt>kan</rt></ruby> <span epub:type='pagebreak' title='7'>7</span>ends.</p><script>let x = '<p>code</p>';</script><!-- <p>no</p> -->"
)


@pytest.mark.parametrize("newer", [True, False])
def test_chapters_are_those_of_the_table_of_contents(newer: bool, tmp_path: Path) -> None:
    pages = {"cover.xhtml": "<img src='c.png' alt='a cover'/>", "one.xhtml": ONE, "more one.xhtml": "<p>It went on.</p>", "two.xhtml": TWO}
    book = read_book(save_epub(tmp_path / "x", pages, {"one.xhtml": "The Ferry", "two.xhtml": "2. The Fjord"}, newer), "x.epub")
    assert (book.title, book.author, book.language) == ("The Ferry & the Fjord", "A. Writer", "en-GB")
    assert [each.title for each in book.chapters] == ["The Ferry", "2. The Fjord"]
    ferry, fjord = (each.text.split("\n\n") for each in book.chapters)
    assert ferry == ["The wind came off the fjord.", "\u201cYes,\u201d said Anna. She went.", "It went on."]
    assert fjord == ["The Fjord", "It was cold & dark.", "* * *", "Then it rained."]


def test_a_part_that_begins_with_its_first_chapter_loses_neither(tmp_path: Path) -> None:
    body = "<h1>Part One</h1><h2>The Ferry</h2><p>It left.</p><h2 id='b'>The Fjord</h2><p>It lay there.</p>"
    listed = {"one.xhtml": "Part One", "one.xhtml#gone": "The Ferry", "one.xhtml#b": "The Fjord"}
    book = read_book(save_epub(tmp_path / "x", {"one.xhtml": body}, listed), "x")
    assert [each.title for each in book.chapters] == ["Part One", "The Fjord"]
    listed = {"one.xhtml": "Part One", "one.xhtml#": "The Ferry", "one.xhtml#b": "The Fjord"}
    book = read_book(save_epub(tmp_path / "x", {"one.xhtml": body}, listed), "x")
    assert [(each.title, each.text) for each in book.chapters] == [("Part One. The Ferry", "It left."), ("The Fjord", "It lay there.")]


def test_a_hidden_heading_makes_no_title_of_what_follows(tmp_path: Path) -> None:
    body = f"<h1 hidden='hidden'>One</h1><p>{'It left. ' * 20}</p><p>It came.</p>"
    (chapter,) = read_book(save_epub(tmp_path / "x", {"one.xhtml": body}, None), "x").chapters
    assert chapter.title == "" and chapter.text.count("It left.") == 20


def test_a_page_that_holds_only_a_title_says_it_once(tmp_path: Path) -> None:
    pages = {"part.xhtml": "<h1>Part One</h1>", "one.xhtml": "<h2>I</h2><h2>The Ferry</h2><p>It left.</p>"}
    book = read_book(save_epub(tmp_path / "x", pages, {"part.xhtml": "Part One", "one.xhtml": "I: The Ferry"}), "x")
    assert [each.script for each in book.chapters] == ["Part One", "I: The Ferry\n\nIt left."]


def test_chapters_whose_places_are_gone_are_not_one(tmp_path: Path) -> None:
    pages = {"one.xhtml": "<p>It left.</p>", "two.xhtml": "<p>It came.</p>"}
    book = read_book(save_epub(tmp_path / "x", pages, {"one.xhtml#gone": "One", "two.xhtml#gone": "Two", "two.xhtml#too": "Too"}), "x")
    assert [(each.title, each.text) for each in book.chapters] == [("One", "It left."), ("Two", "It came.")]


def test_one_page_of_many_chapters_is_cut_at_its_places(tmp_path: Path) -> None:
    body = "<p>Before all.</p><div id='c1'><h2>I</h2><p>First.</p></div><a name='c2'></a><h2>II</h2><p>Second.</p>"
    book = read_book(
        save_epub(tmp_path / "x", {"all.xhtml": body}, {"all.xhtml#c1": "I", "all.xhtml#c2": "II", "all.xhtml#gone": "III"}), "x"
    )
    assert [(each.title, each.text) for each in book.chapters] == [("", "Before all."), ("I", "First."), ("II", "Second.")]


def test_without_a_table_each_page_is_a_chapter_with_its_heading(tmp_path: Path) -> None:
    book = read_book(save_epub(tmp_path / "x", {"one.xhtml": ONE, "two.xhtml": TWO}, None), "x")
    assert [each.title for each in book.chapters] == ["The Ferry", "The Fjord"]
    assert book.chapters[1].script.startswith("The Fjord\n\nIt was cold")


def test_notes_page_numbers_and_code_are_not_read(tmp_path: Path) -> None:
    (chapter,) = read_book(save_epub(tmp_path / "x", {"one.xhtml": NOTES}, None), "x").chapters
    assert chapter.text == "A word more.\n\n\u6f22 ends."


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<p>A word<sup><a href='#n1'>12</a></sup> more.</p>", "A word more."),
        ("<p>A word<a href='notes.xhtml#n1'><sup>[a]</sup></a> more.</p>", "A word more."),
        ("<p>A word<a class='x' href='#n1'> [3] </a>more.</p>", "A word more."),
        ("<p>A word<a role='doc-noteref' href='#n1'>*</a> more.</p>", "A word more."),
        ("<p>A field of 3 m<sup>2</sup> and <a href='#n1'>12</a> men, <a href='x#y'>see there</a>.</p>", "A field of 3 m2 and 12 men, see there."),
        ("<section role='doc-endnotes'><p>Nobody.</p></section><p>All.</p>", "All."),
        ("<div class='chapter footnotes'><p>Nobody.</p></div><p>All.</p>", "All."),
        ("<nav epub:type='toc'><ol><li>One</li></ol></nav><p>All.</p>", "All."),
        ("<div hidden><p>Nobody.</p></div><p aria-hidden='true' class='hidden'>All.</p>", "All."),
        ("<br epub:type='pagebreak'><p>All.</p>", "All."),
        ("<div class='pagebreak'><h1 class='toc'>One</h1><p>All.</p></div>", "All."),
        ("<p>A <a href='#1'>12 men<p>All.</p>", "A 12 men\n\nAll."),
        ("<p class=footnote>Nobody, <b>ever</b><p class=footnote>Nor here<p>All.<div>It left.</div>", "All.\n\nIt left."),
        ("<div><p class='footnote'>Nobody.<br/></div>All.<p hidden>Nobody<h2>It left.</h2>", "All.\n\nIt left."),
        ("<p class='footnote'>Nobody <svg><title>ever</title></svg> here.</p><p>All.</p>", "All."),
    ],
)  # fmt: skip
def test_notes_of_other_programs_are_not_read_either(body: str, said: str, tmp_path: Path) -> None:
    (chapter,) = read_book(save_epub(tmp_path / "x", {"one.xhtml": body}, None), "x").chapters
    assert chapter.text == said


@pytest.mark.parametrize(
    "more",
    [
        {"META-INF/rights.xml": "<rights/>"},
        {
            "META-INF/encryption.xml": "<enc:EncryptedData><enc:EncryptionMethod Algorithm='http://www.w3.org/2001/04/xmlenc#aes128-cbc'/></enc:EncryptedData>"
        },
    ],
)
def test_a_book_locked_by_its_shop_is_told_of(more: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="DRM"):
        read_book(save_epub(tmp_path / "x", {"one.xhtml": ONE}, None, more=more), "x.epub")


def test_hidden_fonts_lock_nothing(tmp_path: Path) -> None:
    fonts = "<EncryptionMethod Algorithm='http://www.idpf.org/2008/embedding'/>"
    assert read_book(save_epub(tmp_path / "x", {"one.xhtml": ONE}, None, more={"META-INF/encryption.xml": fonts}), "x").chapters


def test_pictures_alone_are_no_words(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="its pages are pictures"):
        read_book(save_epub(tmp_path / "x", {"one.xhtml": "<img src='1.png'/>"}, None), "x")


def test_a_page_elsewhere_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.xhtml").write_text("<p>secret</p>")
    book = read_book(save_epub(tmp_path / "x", {"one.xhtml": ONE, "../../secret.xhtml": "<p>inside the archive</p>"}, None), "x")
    assert "secret" not in "".join(each.script for each in book.chapters)


@pytest.mark.parametrize(
    "mark", ['<item id="c" href="c.png" properties="cover-image"/>', '<meta name="cover" content="c"/><item id="c" href="c.png"/>']
)
def test_a_cover_comes_along_however_it_is_marked(mark: str, tmp_path: Path) -> None:
    path = save_epub(tmp_path / "x", {"one.xhtml": ONE}, None, more={"OEBPS/c.png": "a picture"})
    assert read_book(path, "x").cover == b""
    package = "OEBPS/content.opf"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "y", "w") as new:
        for each in old.namelist():
            words = old.read(each)
            new.writestr(each, words.replace(b"<manifest>", b"<manifest>" + mark.encode()) if each == package else words)
    assert read_book(tmp_path / "y", "x").cover == b"a picture"
