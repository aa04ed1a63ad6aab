"""Archives and pages made to take memory, time or files that are not theirs."""

from __future__ import annotations

import struct
import time
import zipfile
from pathlib import Path

import pytest

from app.base.foreign_formats import open_archive
from app.base.trouble import BadRequest
from app.engine.speech.book.flowing_text import read_page
from app.engine.speech.book.markup import Tag, decode_markup, list_tokens
from tests.support.books import CONTAINER, package, read_book, save_epub

EVIL = [
    "<",
    "<!--",
    "<![CDATA[",
    "<a ",
    '<a x="',
    "<a x='",
    "&",
    "&#",
    "</",
    "<p>",
    "<!",
    "<?",
    "<p id='x'>",
    "<div>" * 3,
    'x="',
    "<a x=y ",
]


@pytest.mark.slow
@pytest.mark.parametrize("bit", EVIL)
def test_a_page_takes_time_in_proportion(bit: str) -> None:
    def seconds(count: int) -> float:
        begun = time.thread_time()
        read_page(list_tokens(bit * (count // len(bit))), {"x"})
        return time.thread_time() - begun

    assert min(seconds(200_000) for _ in range(2)) < 0.05 + 24 * min(seconds(25_000) for _ in range(2))


def test_marks_that_are_no_tags_are_words() -> None:
    assert list(list_tokens("a < b <c d='>'> e &lt;f&gt; <![CDATA[<g>]]>")) == ["a ", "<", " b ", Tag("c", " d='>'"), " e <f> ", "<g>"]
    assert Tag("x", """ opf:Role="a &amp; b" id=c""").get("role") == "a & b"


def test_a_declared_encoding_is_one_that_books_have() -> None:
    assert decode_markup(b"<?xml version='1.0' encoding='windows-1252'?>\x93x\x94").endswith("\u201cx\u201d")
    for name in (b"idna", b"punycode", b"unicode_escape", b"zlib", b"cp99999"):
        assert decode_markup(b"<?xml version='1.0' encoding='" + name + b"'?>\\x41").endswith("\\x41")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = save_epub(tmp_path / "x", {"one.xhtml": "<p>" + "a" * 30_000_000 + "</p>"}, None)
    assert path.stat().st_size < 100_000
    with pytest.raises(BadRequest, match="takes more memory or time to read than a book"):
        read_book(path, "x")


def test_many_pages_that_are_small_while_packed_are_not_unpacked(tmp_path: Path) -> None:
    body = "<p>" + " " * 10_000_000 + "a</p>"
    with zipfile.ZipFile(tmp_path / "x", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/content.opf", package([f"{each}.xhtml" for each in range(12)], ""))
        for each in range(12):
            archive.writestr(f"OEBPS/{each}.xhtml", body)
    with pytest.raises(BadRequest, match="takes more memory or time to read than a book"):
        read_book(tmp_path / "x", "x")


def test_an_archive_of_very_many_files_is_not_listed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        for each in range(10_001):
            archive.writestr(str(each), "")
    with (tmp_path / "x").open("rb") as file, pytest.raises(OSError, match="too many"), open_archive(file, 1000):
        pass


def test_an_archive_that_says_other_numbers_behind_its_end_is_not_opened(tmp_path: Path) -> None:
    """zipfile takes the numbers of the larger form wherever it stands."""
    path = save_epub(tmp_path / "x", {"one.xhtml": "<p>a</p>"}, None)
    data = path.read_bytes()
    at = data.rindex(b"PK\x05\x06")
    path.write_bytes(data[:at] + b"PK\x06\x07" + struct.pack("<LQL", 0, 0, 1) + data[at:])
    with pytest.raises(BadRequest, match="not a plain zip archive"):
        read_book(path, "x")


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_the_usual_packing_is_read(packing: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w", packing) as archive:
        archive.writestr("META-INF/container.xml", CONTAINER)
    with pytest.raises(BadRequest, match="unusual"):
        read_book(tmp_path / "x", "x")


def test_an_archive_with_a_password_is_told_of(tmp_path: Path) -> None:
    path = save_epub(tmp_path / "x", {"one.xhtml": "<p>a</p>"}, None)
    data = bytearray(path.read_bytes())
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        data[at + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(BadRequest, match="password"):
        read_book(path, "x.epub")


def test_damage_anywhere_ends_in_a_sentence_or_a_book(tmp_path: Path) -> None:
    whole = save_epub(tmp_path / "x", {"one.xhtml": "<h1>One</h1><p>It rained.</p>"}, {"one.xhtml": "One"}).read_bytes()
    told = 0
    for place in range(0, len(whole), 23):
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            (tmp_path / "y").write_bytes(data)
            try:
                assert read_book(tmp_path / "y", "y").chapters
            except BadRequest:
                told += 1
    assert told > 30


def test_what_is_no_book_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    without = save_epub(tmp_path / "without", {}, None)
    whole = save_epub(tmp_path / "whole", {"one.xhtml": "<p>It rained.</p>"}, None).read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    for path in (tmp_path / "empty", without):
        with pytest.raises(BadRequest, match=r"No words to speak are in x\.epub: it is empty.*Choose another file"):
            read_book(path, "x.epub")
    with pytest.raises(BadRequest, match=r"x\.epub is damaged.*Get the file once more"):
        read_book(tmp_path / "cut", "x.epub")
