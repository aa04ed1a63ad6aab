"""Word files, Markdown, plain text and subtitles; and what is none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.trouble import BadRequest
from app.engine.speech.book.book import Book
from tests.support.books import read_book, save_word

SRT = "1\n00:00:01,000 --> 00:00:02,500\n<i>The wind</i>\ncame.\n\n2\n00:00:03,000 --> 00:00:04,000\n{\\an8}It was 1984.\n1985\n\n"
VTT = "WEBVTT\n\nintro\n00:01.000 --> 00:02.500 align:start\nThe wind came.\n"
MARKDOWN = "# The Ferry\n\nBefore.\n\n## One\n\nThe *wind* came **off** [the fjord](http://x.example/a_b). 2*3*4 snake_case_word\n\n## Two ##\n\nIt rained.\n"
PLAIN = "My book\n\nCHAPTER ONE\n\nThe wind came off the fjord.\n\nChapter Two\n\nIt rained.\nChapter Three was never written.\n"


def read(folder: Path, words: str | bytes) -> Book:
    path = folder / "book"
    path.write_bytes(words.encode() if isinstance(words, str) else words)
    return read_book(path, "book.txt")


@pytest.mark.parametrize("heading", ["Heading1", "berschrift1", "Titre1", "\u6807\u98981"])
def test_a_word_file_is_cut_at_its_headings(heading: str, tmp_path: Path) -> None:
    written = [
        ("Title", "The Ferry"), ("", "Before."), (heading, "One"), ("", "The wi|nd came."), ("Heading2", "Later"), ("", ""), ("", "R &amp; B."),
        (heading, "Two"), ("", "It rained."),
    ]  # fmt: skip
    book = read_book(save_word(tmp_path / "x", written), "x.docx")
    assert book.title == "The Ferry"
    assert [(each.title, each.text) for each in book.chapters] == [
        ("The Ferry", "Before."),
        ("One", "The wind came.\n\nLater\n\nR & B."),
        ("Two", "It rained."),
    ]


def test_what_was_taken_out_of_a_word_file_stays_out(tmp_path: Path) -> None:
    words = "It</w:t></w:r><w:del><w:r><w:delText>never</w:delText><w:t>never</w:t></w:r></w:del><w:ins><w:r><w:t> rained."
    (chapter,) = read_book(save_word(tmp_path / "x", [("", words + "</w:t></w:r></w:ins><w:r><w:t>")]), "x").chapters
    assert chapter.text == "It rained."


def test_markdown_loses_its_marks(tmp_path: Path) -> None:
    book = read(tmp_path, MARKDOWN)
    assert book.title == "The Ferry"
    assert [(each.title, each.text) for each in book.chapters] == [
        ("The Ferry", "Before."),
        ("One", "The wind came off the fjord. 2*3*4 snake_case_word"),
        ("Two", "It rained."),
    ]


def test_a_plain_text_is_cut_where_a_line_says_so(tmp_path: Path) -> None:
    assert [(each.title, each.text) for each in read(tmp_path, PLAIN).chapters] == [
        ("", "My book"),
        ("CHAPTER ONE", "The wind came off the fjord."),
        ("Chapter Two", "It rained.\nChapter Three was never written."),
    ]


@pytest.mark.parametrize(("words", "said"), [(SRT, "The wind came.\n\nIt was 1984. 1985"), (VTT, "The wind came.")])
def test_of_subtitles_what_is_said_is_read(words: str, said: str, tmp_path: Path) -> None:
    (chapter,) = read(tmp_path, words).chapters
    assert (chapter.title, chapter.text) == ("", said)


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        ("The f\u00eate \u2014 began.", "utf-16"), ("The f\u00eate began.", "cp1252"), ("The f\u00eate.", "utf-8-sig"),
        ("\u98ce\u4ece\u6d77\u4e0a\u5439\u6765\u3002", "gb18030"),
    ],
)  # fmt: skip
def test_texts_of_older_programs_are_read(words: str, encoding: str, tmp_path: Path) -> None:
    assert read(tmp_path, words.encode(encoding)).chapters[0].text == words


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1...", "DOC"),
        (b"{\\rtf1 x}", "RTF"),
        (b"\x00\x01\x02binary", "no text"),
        (b"   \n\n ", "No words"),
        (b"", "No words"),
        (b"PK\x03\x04 broken", "damaged"),
    ],
)
def test_what_is_no_book_is_told_by_what_it_is(data: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=told):
        read(tmp_path, data)


def test_a_book_beyond_five_million_letters_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="5000000"):
        read(tmp_path, "word " * 1_000_001)
    assert read(tmp_path, "word " * 999_000).chapters
