"""PDFs: chapters from the outline or the headings, without what only a page needs; and those that are no book."""

from __future__ import annotations

import itertools
import random
import zlib
from pathlib import Path

import pytest

from app.base.trouble import BadRequest
from app.engine.speech.book import pdf, pdf_process
from app.engine.speech.book.book import Book
from app.engine.speech.book.headed_text import Line, cut_at_headings
from app.engine.speech.book.printed_pages import Entry, PrintedLine, flow
from tests.support.books import read_book
from tests.support.pdfs import PrintedAt, save_pdf, set_pages

FERRY = (
    "The ferryman looked at the sea for a long time, and nobody who was standing on the landing understood what he was waiting for. " * 6
)
STORM = "In the harbour the well-known lamps went out one after another, and a well-known voice called through the rain. " * 9
SHORE = "It was cold on the shore. Everything that remained of the afternoon was a yellow line. " * 40
PARTS: list[str | tuple[str, float]] = [
    ("The Ferry", 20),
    FERRY,
    "He said 42.",
    FERRY,
    ("The Storm", 20),
    STORM,
    STORM,
    ("The Shore", 20),
    SHORE,
]
TEXTS = [f"{FERRY.strip()}\n\nHe said 42.\n\n{FERRY.strip()}", f"{STORM.strip()}\n\n{STORM.strip()}", SHORE.strip()]


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    pytest.importorskip("pypdf", reason="an extra")


def lay(pages: list[list[PrintedAt]]) -> list[list[PrintedLine]]:
    return [[PrintedLine(*line, page) for line in lines] for page, lines in enumerate(pages)]


def gather(lines: list[Line]) -> list[str]:
    """Return the text under each heading."""
    groups = itertools.groupby(lines, key=lambda line: bool(line.level))
    return ["\n\n".join(line.text for line in group) for heading, group in groups if not heading]


def damage(path: Path, data: bytes) -> Book:
    path.write_bytes(data)
    return read_book(path, "x.pdf")


def test_chapters_are_those_of_the_outline(tmp_path: Path) -> None:
    pages = set_pages(PARTS, head="The Sea")
    begins = [place for place, page in enumerate(pages) if page[0][1] == 20]
    contents = list(zip(("The Ferry", "The Storm", "The Shore"), begins, strict=True))
    book = read_book(save_pdf(tmp_path / "x", pages, contents, "The Sea"), "sea.pdf")
    assert (book.title, book.author, book.note) == ("The Sea", "A. Writer", None)
    assert [each.title for each in book.chapters] == ["The Ferry", "The Storm", "The Shore"]
    assert [each.text for each in book.chapters] == TEXTS


def test_without_an_outline_large_letters_are_headings(tmp_path: Path) -> None:
    book = read_book(save_pdf(tmp_path / "x", set_pages(PARTS, head="The Sea"), title="Microsoft Word - draft.docx"), "sea.pdf")
    assert book.title == "" and [(each.title, each.text) for each in book.chapters] == list(
        zip(("The Ferry", "The Storm", "The Shore"), TEXTS, strict=True)
    )


def test_a_line_that_says_so_is_a_heading_in_letters_of_any_size() -> None:
    made = flow(lay(set_pages(["Chapter One", FERRY, "Chapter Two", STORM])), [])
    assert [line.text for line in made if line.level] == ["Chapter One", "Chapter Two"]
    assert gather(made) == [FERRY.strip(), STORM.strip()]


def test_running_heads_of_chapters_and_roman_numbers_go() -> None:
    pages = set_pages([SHORE, FERRY, SHORE], number_from=5)
    for number, page in enumerate(pages):
        page.insert(0, (f"Chapter {'One' if number < 2 else 'Two'}" if number % 2 else "The Sea", 9, 200, 760))
        page[-1] = (["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"][number], 9, 300, 40)
    assert gather(flow(lay(pages), [])) == ["\n\n".join((SHORE.strip(), FERRY.strip(), SHORE.strip()))]


def print_notes(*notes: str, sign: PrintedAt | None = None) -> list[list[PrintedAt]]:
    """Return two pages of one sentence, with notes at the foot of the first."""
    first: list[PrintedAt] = [(f"and nobody on the long pier saw it go {place}", 11, 72, 700 - 14 * place) for place in range(20)]
    lines = [(note, 8.0, 72.0, 60.0 - 10 * place) for place, note in enumerate(notes)]
    return [
        [*first, *([sign] if sign else []), ("where the ferry", 11, 72, 420), *lines],
        [("lay and the rain came.", 11, 72, 700), *first[1:]],
    ]


@pytest.mark.parametrize(
    ("sea", "notes", "said"),
    [
        ("the sea.\ue0001\ue001 It is", ["1 A lake.", "of the north."], "the sea. It is"),
        ("the sea\ue000*\ue001 of", ["* \u201cA sea.\u201d"], "the sea of"),
        ("the sea\u00b9 of", ["\ue0001\ue001 A sea."], "the sea of"),
        ("\u6d77\ue000\u2460\ue001", ["\u2460\u6d77\u3002"], "\u6d77"),
        ("20 m\u00b2 of it, x\ue0003\ue001 and the sea.\ue0007\ue001 It", [], "20 m\u00b2 of it, x3 and the sea.7 It"),
    ],
)
def test_notes_at_the_foot_of_a_page_break_no_sentence(sea: str, notes: list[str], said: str) -> None:
    pages = print_notes(*notes)
    pages[0][3] = (sea, 11, 72, 658)
    (text,) = gather(flow(lay(pages), []))
    assert f" {said} and nobody" in text and "where the ferry lay and the rain" in text and "\ue000" not in text
    assert not any(note[-5:] in text for note in notes)


def print_endnotes(notes: list[str], *signs: str, size: float = 9) -> str:
    """Return the text of a book whose pages have raised signs, and whose notes stand on a page of their own."""
    pages: list[list[PrintedAt]] = [
        [(f"nobody on the long pier saw it go {place}", 11, 72, 700 - 14 * place) for place in range(20)] for _ in signs
    ]
    for page, sign in zip(pages, signs, strict=True):
        page[3] = (f"the sea.{sign} It", 11, 72, 658)
    pages.append([(note, size, 72, 700 - 14 * place) for place, note in enumerate(notes)])
    return " ".join(gather(flow(lay(pages), [])))


@pytest.mark.parametrize("signs", [("\ue0001\ue001", "\ue0002\ue001"), ("\u00b9", "\u00b2")])
@pytest.mark.parametrize(
    "notes", [["1. A sea.", "2. A lake."], ["1 A sea.", "that lies north.", "2 A lake."], ["\ue0001\ue001 A sea.", "\ue0002\ue001 A lake."]]
)
def test_signs_of_notes_at_the_end_are_left_out(signs: tuple[str, ...], notes: list[str]) -> None:
    text = print_endnotes(notes, *signs)
    assert text.count("the sea. It") == 2 and "A lake." in text


@pytest.mark.parametrize(
    ("notes", "signs"),
    [
        (["1. Eggs.", "2. Milk.", "3. Salt."], ("\ue0001\ue001", "\ue0002\ue001")),
        (["1. A sea.", "2. A lake."], ("\ue0002\ue001", "\ue0003\ue001")),
        (["1. A sea."], ("\ue0001\ue001", "\ue0002\ue001")),
        (["A sea.", "A lake."], ("\ue0001\ue001", "\ue0002\ue001")),
    ],
)
def test_raised_figures_that_no_notes_at_the_end_count_with_stay(notes: list[str], signs: tuple[str, ...]) -> None:
    text = print_endnotes(notes, *signs)
    assert all(f"the sea.{sign[1]} It" in text for sign in signs)


@pytest.mark.parametrize(
    ("notes", "size", "left_out"),
    [
        (["1. Preheat the oven."], 11, False),
        (["1. A sea."], 9, True),
        (["Anmerkungen", "1. A sea."], 11, True),
        (["NOTES", "One", "1. A sea."], 11, True),
        (["NOTES", "One", "The Sea", "1. A sea."], 11, True),
        (["NOTES", "One", "The Sea", "In Spring", "1. A sea."], 11, False),
        (["Notes:", "1. A sea."], 11, True),
        (["注：", "1. A sea."], 11, True),
        (["Endnotes to Chapter 1", "1. A sea."], 11, True),
        (["Anmerkungen zum Text", "1. A sea."], 11, True),
        (["Notes to him, as all said", "1. A sea."], 11, False),
        (["Endnoten", "1. A sea."], 11, True),
        (["Fußnoten", "1. A sea."], 11, True),
        (["Fussnoten zum Text", "1. A sea."], 11, True),
        (["注释", "1、海很深。"], 11, True),
        (["注释", "1.《海》很深。"], 11, True),
        (["註記", "[1]海は深い。"], 11, True),
        (["注釈", "（１）「海」は深い。"], 11, True),
        (["注", "①海很深。"], 11, True),
        (["注释", "1月的海。"], 11, False),
        (["注释", "1.5海里。"], 11, False),
    ],
)
def test_one_raised_number_is_a_notes_where_more_than_a_list_says_so(notes: list[str], size: float, left_out: bool) -> None:
    text = print_endnotes(notes, "\ue0001\ue001", size=size)
    assert (" the sea. It" in text) is left_out and (" the sea.1 It" in text) is not left_out


def test_only_the_raised_numbers_that_count_are_left_out() -> None:
    text = print_endnotes(["1. A sea.", "2. A lake."], "\ue0001\ue001", "\ue0002\ue001 as in Mark\ue0002\ue001")
    assert text.count("the sea. ") == 2 and "as in Mark2 It" in text


def test_each_chapter_may_count_its_notes_at_the_end_anew() -> None:
    first, second = "\ue0001\ue001", "\ue0002\ue001"
    text = print_endnotes(["One", "1. A sea.", "2. A lake.", "Two", "1. A pond."], first, second, first)
    assert text.count("the sea. It") == 3


def test_small_letters_at_the_foot_that_no_sign_leads_to_stay() -> None:
    text = " ".join(gather(flow(lay(print_notes("2 of them sang,", "1 was mute.")), [])))
    assert "2 of them sang," in text and "1 was mute." in text
    above = print_notes("1 A sea.")
    above[0][3], above[0][-1] = ("the sea.\ue0001\ue001 It", 11, 72, 658), ("1 A sea.", 8, 72, 500)
    assert "1 A sea." in " ".join(gather(flow(lay(above), []))), "it stands within the text"


@pytest.mark.parametrize(
    "words", ["so E = mc\u00b2 is", "on 20 m\ue0002\ue001 of", "by (a+b)\u00b2 is", "add \ue0001\ue001/2 cup", "the sea.\u00b9 It"]
)
def test_a_small_list_at_the_foot_is_no_row_of_notes(words: str) -> None:
    pages = print_notes("1. Take the eggs.", "2. Beat them.", "3. Wait.")
    pages[0][3] = (words, 11, 72, 658)
    text = " ".join(gather(flow(lay(pages), [])))
    assert all(step in text for step in ("Take the eggs.", "Beat them.", "Wait."))
    assert words.replace("\ue000", "").replace("\ue001", "") in text


@pytest.mark.parametrize(("size", "stays"), [(8, True), (9, False)])
def test_small_letters_above_the_first_note_stay_and_keep_those_alike(size: float, stays: bool) -> None:
    pages = print_notes("", "1 A sea.")
    pages[0][3], pages[0][-2] = ("the sea.\ue0001\ue001 It", 11, 72, 658), ("O wild west wind,", size, 72, 60)
    text = " ".join(gather(flow(lay(pages), [])))
    assert "O wild west wind," in text and ("A sea." in text) == stays


@pytest.mark.parametrize(
    "words", ["by (a+b)\u00b2 is", "on 20 m\u00b2 of", "of 12\u00b2 is", "add \ue0002\ue001/3 cup", "of ,\ue0002\ue001H and"]
)
def test_powers_and_fractions_stay_beside_notes(words: str) -> None:
    pages = print_notes("1 A sea.", "2 A lake.")
    pages[0][3], pages[0][5] = ("the sea.\ue0001\ue001 It", 11, 72, 658), ("the lake\ue0002\ue001 and", 11, 72, 630)
    pages[0][7] = (words, 11, 72, 602)
    text = " ".join(gather(flow(lay(pages), [])))
    assert "A sea" not in text and "A lake" not in text and "the lake and" in text
    assert words.replace("\ue000", "").replace("\ue001", "") in text


def test_a_note_that_goes_on_under_the_next_page_is_left_out_whole() -> None:
    pages = print_notes("1 A sea that lies")
    pages[0][3], pages[1][3] = ("the sea.\ue0001\ue001 It", 11, 72, 658), ("the lake.\ue0002\ue001 It", 11, 72, 658)
    pages[1] += [("in the north.", 8, 72, 60), ("2 A lake.", 8, 72, 50)]
    text = " ".join(gather(flow(lay(pages), [])))
    assert "A sea" not in text and "in the north" not in text and "A lake" not in text and "where the ferry lay" in text


@pytest.mark.parametrize(
    ("note", "small"),
    [
        ("1 A sea that lies", [("Dear Anna,", 8), ("the sea is cold.", 8)]),
        ("1 A sea that lies", [("Dear Anna,", 9), ("2 A lake.", 8)]),
        *((f"1 A sea{end}", [("Dear Anna,", 8), ("2 A lake.", 8)]) for end in (")", "]", "\u2026", "\u00bb", " 12")),
    ],
)
def test_small_letters_that_are_no_rest_of_a_note_stay(note: str, small: list[tuple[str, float]]) -> None:
    pages = print_notes(note)
    pages[0][3], pages[1][3] = ("the sea.\ue0001\ue001 It", 11, 72, 658), ("the lake.\ue0002\ue001 It", 11, 72, 658)
    pages[1] += [(words, size, 72, 60 - 10 * place) for place, (words, size) in enumerate(small)]
    text = " ".join(gather(flow(lay(pages), [])))
    assert "A sea" not in text and small[0][0] in text


@pytest.mark.parametrize("up", [3, 6])
def test_raised_signs_are_known_however_they_are_printed(up: int, tmp_path: Path) -> None:
    """The library takes higher ones for lines of their own."""
    pages = print_notes("A sea.", sign=("1", 5.0, 160.0, 420.0 + up))
    first, second = pages
    first[-3], first[-2] = first[-2], first[-3]
    first.insert(-1, (", at last", 11, 163, 420))
    first.insert(-1, ("1", 4, 68, 60 + up))
    (chapter,) = read_book(save_pdf(tmp_path / "x", [first, second, second]), "x.pdf").chapters
    assert "where the ferry, at last lay" in chapter.text and "A sea" not in chapter.text


@pytest.mark.parametrize("before", ["{} ", "{}"])
@pytest.mark.parametrize(
    ("word", "sign", "after", "said"),
    [
        ("Add", "1", "/2 cup", "Add 1/2 cup"),
        ("By the", "14", "C method", "By the 14C method"),
        ("light", "4", "and God", "light 4and God"),
        ("the sea", "4", " of", "the sea4 of"),
        ("the sea", "4", ", of", "the sea4, of"),
        ("the sea", "4", "", "the sea4"),
    ],
)
def test_a_blank_before_a_raised_sign_goes_only_where_the_sign_ends_a_word(
    before: str, word: str, sign: str, after: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "_take_apart", pdf_process.read)  # without a process for each
    line: list[PrintedAt] = [(before.format(word), 11, 72, 500), (sign, 6, 120, 503), (after, 11, 120 + 3 * len(sign), 500)]
    (chapter,) = read_book(save_pdf(tmp_path / "x", [[each for each in line if each[0]]]), "x.pdf").chapters
    assert chapter.text == said


def test_numbers_that_are_text_stay() -> None:
    pages = [[("1", 14, 300, 740), *page[:-1]] if place == 0 else page for place, page in enumerate(set_pages([SHORE, "1984", SHORE]))]
    said = " ".join(gather(flow(lay(pages), [Entry(1, "One", 0, None)])))
    assert said.startswith("1") and "1984" in said


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ("the under-", "standing", "the understanding"),
        ("a well-", "known voice", "a well-known voice"),
        ("the Anglo-", "Saxon ships", "the Anglo-Saxon ships"),
        ("it was \u2014", "nothing", "it was \u2014 nothing"),
        ("in 1914-", "1918 it", "in 1914- 1918 it"),
        ("soft\u00ad", "ness", "softness"),
        ("the \ufb01nal", "\ufb02ood", "the final flood"),
    ],
)
def test_a_word_that_a_line_divides_is_whole(one: str, other: str, joined: str) -> None:
    lines = [("a well-known understanding of it", 11, 72, 700), (one, 11, 72, 686), (other, 11, 72, 672)]
    (made,) = flow(lay([lines]), [])  # type: ignore[list-item]
    assert made.text == f"a well-known understanding of it {joined}"


def test_a_page_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    path = save_pdf(tmp_path / "x", set_pages(PARTS))
    book = damage(path, path.read_bytes().replace(b" Tm (", b" 5 << Tm (", 1))
    assert [each.title for each in book.chapters] == ["The Storm", "The Shore"]
    assert book.note is not None and str(book.note) == "1 page of it cannot be read and is left out: 1."


@pytest.mark.parametrize("name", ["locked", "scanned", "broken", "cut", "empty"])
def test_what_is_no_book_is_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    path, match = save_pdf(tmp_path / "x", set_pages(PARTS)), "damaged"
    if name == "locked":
        writer = PdfWriter(PdfReader(path))
        writer.encrypt("secret", algorithm="RC4-128")
        writer.write(path)
        match = "locked with a password"
    elif name == "scanned":
        save_pdf(path, [[], []])
        match = "its pages are pictures"
    data = {"broken": b"%PDF-1.7\n" + b"\xff\x00" * 3000, "cut": path.read_bytes()[:700], "empty": b"%PDF"}.get(name, path.read_bytes())
    with pytest.raises(BadRequest, match=match):
        damage(path, data)


def test_one_that_may_only_not_be_printed_is_read(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    path = save_pdf(tmp_path / "x", set_pages(PARTS))
    writer = PdfWriter(PdfReader(path))
    writer.encrypt("", "owner", algorithm="RC4-128")
    writer.write(path)
    assert [each.title for each in read_book(path, "x.pdf").chapters] == ["The Ferry", "The Storm", "The Shore"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "time"])
def test_a_bomb_is_ended(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_pdf(tmp_path / "x", [[("x", 11, 72, 700)]])
    burst = zlib.compress(b"BT /F1 9 Tf (a) Tj ET\n" * 2_000_000, 9)
    data = path.read_bytes()
    at, end = data.index(b"<< /Length"), data.index(b"endstream")
    data = data[:at] + b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\n" % (len(burst), burst) + data[end:]
    monkeypatch.setattr(pdf, *(("MEMORY_MOST_BYTES", 200 << 20) if kind == "memory" else ("SECONDS_MOST", 2.0)))
    with pytest.raises(BadRequest, match="more memory or time"):
        damage(path, data)


def test_without_its_library_how_to_add_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "find_spec", lambda _: None)
    with pytest.raises(BadRequest, match=r"needs the library pypdf.*\bpdf\b"):
        damage(tmp_path / "x", b"%PDF-1.7\n")


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))])
def test_damage_anywhere_is_a_book_or_a_sentence(seed: int, tmp_path: Path) -> None:
    """In the process itself, so that hundreds of files take seconds."""
    path = save_pdf(tmp_path / "x", set_pages(PARTS[:6]), [("One", 0), ("Two", 1)])
    rng, whole = random.Random(seed), path.read_bytes()
    for _ in range(10):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 3, 30))):
            at = rng.randrange(len(data))
            data[at : at + rng.choice((0, 1, 8))] = rng.choice((b"", b"<<", b"[", b"9999999999", b"/", b"0 R", bytes([rng.randrange(256)])))
        path.write_bytes(data)
        with path.open("rb") as file:
            found = pdf_process.read(file)
        if "pages" in found:
            lines = [
                [PrintedLine(text, size, left, low, page) for text, size, left, low in lines] for page, lines in enumerate(found["pages"])
            ]
            assert all(line.text.strip() for line in flow(lines, [Entry(*each) for each in found["contents"]]))
        else:
            assert found.get("locked") or found["fault"]


def test_where_people_talk_each_indented_line_begins_a_paragraph() -> None:
    rows = [("“Who is it?” she called.", 60), ("“It’s me,” said Ben. “I came over the", 60), ("wall.”", 48), ("* * *", 150), ("“Come in,” said Anna.", 60),
            ("She held the lamp so that he could see", 60), ("the stairs.", 48)]  # fmt: skip
    page: list[PrintedAt] = [(words, 12, left, 500 - 18 * place) for place, (words, left) in enumerate(rows)]
    assert [each.text for each in flow(lay([page]), ())] == [
        "“Who is it?” she called.",
        "“It’s me,” said Ben. “I came over the wall.”",
        "* * *",
        "“Come in,” said Anna.",
        "She held the lamp so that he could see the stairs.",
    ]


def test_indented_paragraphs_of_chinese_stay_apart() -> None:
    rows = [
        ("渡船夫望着大海，", 48),
        ("久久没有说话。", 48),
        ("“下雨了。”", 72),
        ("她点了点头。", 72),
        ("「走吧」", 72),
        ("他们走了。", 72),
        ("夜深了，", 48),
    ]
    page: list[PrintedAt] = [(words, 12, left, 500 - 18 * place) for place, (words, left) in enumerate(rows)]
    said = [each.text for each in flow(lay([page]), ())]
    assert said == ["渡船夫望着大海，久久没有说话。", "“下雨了。”", "她点了点头。", "「走吧」", "他们走了。夜深了，"]


def test_lines_of_a_hanging_list_stay_together() -> None:
    rows = [
        ("Berg, Anna: The ferry and what", 48),
        ("became of it, a history in", 60),
        ("three parts", 60),
        ("Voss, Carl: The shore", 48),
        ("and the sea", 60),
    ]
    page: list[PrintedAt] = [(words, 12, left, 500 - 18 * place) for place, (words, left) in enumerate(rows)]
    assert [each.text for each in flow(lay([page]), ())] == [" ".join(words for words, _ in rows)]


def test_a_browser_writes_parts_of_chinese_signs_for_whole_ones() -> None:
    page: list[PrintedAt] = [
        ("她说：“ ⼩明，\u2edb⼤，你先回", 12, 48, 500),
        ("家。 ”", 12, 48, 482),
        ("It rained", 12, 48, 464),
        ("all day.", 12, 48, 446),
    ]
    assert [each.text for each in flow(lay([page]), ())] == ["她说：“小明，风大，你先回家。” It rained all day."]


@pytest.mark.parametrize(
    "titles",
    [
        ["Chapter One", "Chapter Two", "Notes"],
        ["Prologue", "The Ferry", "The Storm", "The Shore", "Notes"],
        ["序言", "渡船", "风暴", "注释"],
        ["The Ferry", "Notes", "The Storm", "Notes"],
    ],
)
def test_notes_at_the_end_are_a_chapter_among_the_others(titles: list[str]) -> None:
    pages: list[list[PrintedAt]] = [[(title, 20, 48, 500), (f"It rained in {title}.", 12, 48, 450)] for title in titles]
    assert [each.text for each in flow(lay(pages), ()) if each.level] == titles


@pytest.mark.parametrize("listed", [False, True], ids=["set small", "not in the contents"])
def test_notes_with_one_heading_are_a_chapter_that_can_be_left_out(listed: bool) -> None:
    """They were read aloud at the end of the last chapter."""

    def list_chapters(*after: str) -> list[str]:
        titles = ["The Ferry", "The Storm", "The Shore"]
        pages: list[list[PrintedAt]] = [[(title, 20, 48, 500), (f"It rained in {title}.", 12, 48, 450)] for title in titles]
        pages += [[("Notes", 20 if listed else 14, 48, 500), *((line, 12, 48, 450 - 40 * at) for at, line in enumerate(after))]]
        contents = [Entry(0, title, page, 600) for page, title in enumerate(titles)] if listed else ()
        return [each.title for each in cut_at_headings(flow(lay(pages), contents)).chapters]

    assert list_chapters("1. A letter of May 1888.", "2. As above.") == ["The Ferry", "The Storm", "The Shore", "Notes"]
    assert list_chapters("He left them to her.") == ["The Ferry", "The Storm", "The Shore"], "it may be of the story"


def test_the_number_of_a_note_is_known_in_the_size_that_browsers_give_it() -> None:
    line = pdf_process._join([("thirty years", 12.0, 48, 400), ("1", 10.0, 120, 405), (", and", 12.0, 126, 400)])
    assert line[0] == f"thirty years{pdf_process.RAISED}1{pdf_process.LOWERED}, and"
