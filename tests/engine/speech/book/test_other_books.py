"""Word files, Markdown, plain text and subtitles; and what is none of them."""

from __future__ import annotations

import zipfile
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


def test_a_word_file_says_who_wrote_it(tmp_path: Path) -> None:
    path = save_word(tmp_path / "x", [("", "It rained.")])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(
            "docProps/core.xml",
            "<cp:coreProperties><dc:title>The &amp; Ferry</dc:title><dc:creator> A. Writer</dc:creator></cp:coreProperties>",
        )
    book = read_book(path, "x.docx")
    assert (book.title, book.author) == ("The & Ferry", "A. Writer")


def test_what_was_taken_out_of_a_word_file_stays_out(tmp_path: Path) -> None:
    words = "It</w:t></w:r><w:del><w:r><w:delText>never</w:delText><w:t>never</w:t></w:r></w:del><w:ins><w:r><w:t> rained."
    (chapter,) = read_book(save_word(tmp_path / "x", [("", words + "</w:t></w:r></w:ins><w:r><w:t>")]), "x").chapters
    assert chapter.text == "It rained."


def test_styles_of_a_word_file_are_known_by_their_names(tmp_path: Path) -> None:
    other = {"berschrift1": "\u00dcberschrift 1"}
    written = [("berschrift1", "One"), ("", "It left."), ("berschrift1", "Two"), ("", "It came.")]
    assert [each.title for each in read_book(save_word(tmp_path / "y", written, other), "y.docx").chapters] == ["One", "Two"]
    names = {"1": "heading 1", "10": "toc 1", "a3": "Title"}
    written = [("a3", "渡轮"), ("10", "一 3"), ("1", "一"), ("", "风来了\u3002"), ("1", "二"), ("", "下雨了\u3002")]
    book = read_book(save_word(tmp_path / "x", written, names), "x.docx")
    assert book.title == "渡轮"
    assert [(each.title, each.text) for each in book.chapters] == [("一", "风来了\u3002"), ("二", "下雨了\u3002")]


@pytest.mark.parametrize("style", ["TOC1", "Verzeichnis2", "TM1", "TOCHeading"])
def test_the_contents_of_a_word_file_are_not_read(style: str, tmp_path: Path) -> None:
    (chapter,) = read_book(save_word(tmp_path / "x", [(style, "One 3"), ("", "It rained.")]), "x").chapters
    assert chapter.text == "It rained."


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ("<w:moveFrom><w:r><w:t>never</w:t></w:r></w:moveFrom>", "It rained."),
        ("<w:r><w:noBreakHyphen/></w:r>", "It- rained."),
        (
            "<mc:AlternateContent><mc:Choice><w:p><w:r><w:t>A box.</w:t></w:r></w:p></mc:Choice>"
            "<mc:Fallback><w:p><w:pPr><w:pStyle w:val='Heading1'/></w:pPr><w:r><w:t>A box.</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>",
            "It\n\nA box.\n\nrained.",
        ),
    ],
)
def test_what_word_writes_twice_or_has_moved_is_read_once(between: str, said: str, tmp_path: Path) -> None:
    words = f"It</w:t></w:r>{between}<w:r><w:t> rained."
    (chapter,) = read_book(save_word(tmp_path / "x", [("", words)]), "x").chapters
    assert chapter.text == said


def test_a_level_of_the_outline_makes_a_heading(tmp_path: Path) -> None:
    raised = "<w:pPr><w:outlineLvl w:val='0'/></w:pPr>"
    path = save_word(tmp_path / "x", [("", "Begun."), ("", "One"), ("", "It rained."), ("", "Two"), ("", "It snowed.")])
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "y", "w") as new:
        for each in old.namelist():
            words = old.read(each).decode()
            for title in ("One", "Two"):
                words = words.replace(
                    f'<w:p><w:r><w:t xml:space="preserve">{title}', f'<w:p>{raised}<w:r><w:t xml:space="preserve">{title}'
                )
            new.writestr(each, words)
    assert [each.title for each in read_book(tmp_path / "y", "y").chapters] == ["", "One", "Two"]


def test_markdown_loses_its_marks(tmp_path: Path) -> None:
    book = read(tmp_path, MARKDOWN)
    assert book.title == "The Ferry"
    assert [(each.title, each.text) for each in book.chapters] == [
        ("The Ferry", "Before."),
        ("One", "The wind came off the fjord. 2*3*4 snake_case_word"),
        ("Two", "It rained."),
    ]


def test_markdown_quotes_lose_their_marks_and_stay_paragraphs(tmp_path: Path) -> None:
    (chapter,) = read(tmp_path, "# One\n\n> Dear *Anna*,\n>\n> > It is late here.\n>I am well.\n").chapters
    assert chapter.text == "Dear Anna,\n\nIt is late here.\nI am well."


def test_a_mark_of_quotes_within_a_line_stays(tmp_path: Path) -> None:
    (chapter,) = read(tmp_path, "# One\n\nIf 5 > 3, then a -> b.\n> If 5 > 3, then a -> b.\n").chapters
    assert chapter.text == "If 5 > 3, then a -> b.\nIf 5 > 3, then a -> b."


def test_notes_and_headings_within_markdown_quotes_are_not_said_as_such(tmp_path: Path) -> None:
    words = "# One\n\n> ## Inner *words* ##\n> It left.[^1]\n>\n> [^1]: Nobody reads this.\n> Nor this.\n>\n> All the same.\n"
    (chapter,) = read(tmp_path, words).chapters
    assert chapter.text == "Inner words\nIt left.\n\n\n\n\nAll the same."


def test_marks_of_markdown_without_headings_are_not_said(tmp_path: Path) -> None:
    words = "**It rained**, said the [paper](https://example.org/a_b).\n\n[Anna](laughs) It was _so_ wet. 2*3*4 snake_case_word *"
    (chapter,) = read(tmp_path, words).chapters
    assert chapter.text == "It rained, said the paper.\n\n[Anna](laughs) It was so wet. 2*3*4 snake_case_word *"


def test_what_begins_a_line_of_code_is_no_quote(tmp_path: Path) -> None:
    words = "# One\n\n```console\n> dir\n~~~\n> help\n```\n\n> She read:\n> ```\n> a > b\n> ```\n> ~~~x\n\n~~~\n> go\n~~~\n> Well."
    (chapter,) = read(tmp_path, words).chapters
    assert chapter.text == "```console\n> dir\n~~~\n> help\n```\n\nShe read:\n```\na > b\n```\n~~~x\n\n~~~\n> go\n~~~\nWell."


def test_a_comment_within_code_begins_no_chapter(tmp_path: Path) -> None:
    """And a block that begins with four marks goes on over three, which may be all that it shows."""
    words = "# One\n\n````\n```\n# install\n``` x\n> go\n````\n> Well.\n\n# Two\n\nEnd."
    chapters = read(tmp_path, words).chapters
    assert [each.title for each in chapters] == ["One", "Two"]
    assert chapters[0].text == "````\n```\n# install\n``` x\n> go\n````\nWell."
    assert len(read(tmp_path, "# One\n\nDay.\n\n~~~\n\nNight.\n\n# Two\n\nEnd.").chapters) == 2, "it parts scenes"


@pytest.mark.parametrize("begun", ["```", "```markdown", "``` MD"])
def test_a_block_that_nothing_ends_or_of_markdown_hides_no_chapter(begun: str, tmp_path: Path) -> None:
    """All that came after it was one chapter, whose headings were spoken with their marks."""
    ended = "" if begun == "```" else "\n```"
    words = f"{begun}\n# One\n\n> Day.\n\n```sh\n# install\n```\n\n# Two\n\nEnd.{ended}"
    chapters = read(tmp_path, words).chapters
    assert [each.title for each in chapters if each.title] == ["One", "Two"]


def test_a_plain_text_is_cut_where_a_line_says_so(tmp_path: Path) -> None:
    assert [(each.title, each.text) for each in read(tmp_path, PLAIN).chapters] == [
        ("", "My book"),
        ("CHAPTER ONE", "The wind came off the fjord."),
        ("Chapter Two", "It rained.\nChapter Three was never written."),
    ]


@pytest.mark.parametrize(
    "titles",
    [
        ("Erstes Kapitel", "Kapitel 2. Die Fähre"), ("KAPITEL ZWÖLF", "Epilog"), ("Chapitre premier", "Deuxième partie"),
        ("Capítulo 1", "Capítulo dos: El mar"),
        ("Глава первая", "Глава 2"), ("第一章 渡轮", "第12章"), ("序章", "第一話 風"),
        ("Chapter 1. The Ferry", "The Third Book"), ("1", "2"), ("I.", "II."),
    ],
)  # fmt: skip
def test_chapters_are_found_in_many_languages(titles: tuple[str, str], tmp_path: Path) -> None:
    words = f"{titles[0]}\n\nIt left.\n\n\n{titles[1]}\n\nIt came."
    assert [(each.title, each.text) for each in read(tmp_path, words).chapters] == [(titles[0], "It left."), (titles[1], "It came.")]


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        ("PART ONE\n\nCHAPTER 1\n\nIt left.\n\nPART TWO\n\nCHAPTER 1\n\nIt came.", ["PART ONE. CHAPTER 1", "PART TWO. CHAPTER 1"]),
        ("BOOK I\n\nPart 1\n\nChapter 1\n\nIt left.\n\nBOOK II\n\nPart 1\n\nChapter 1\n\nIt came.",
         ["BOOK I. Part 1. Chapter 1", "BOOK II. Part 1. Chapter 1"]),
        ("BOOK I\n\nIt is told.\n\nPart 1\n\nChapter 1\n\nIt left.\n\nPart 1\n\nChapter 2\n\nIt came.", ["BOOK I", "Part 1. Chapter 1", "Part 1. Chapter 2"]),
        ("# The Ferry\n\n## Part One:\n\n## The Wind\n\nIt left.\n\n## The End", ["Part One. The Wind", "The End"]),
        ("# Part One\n\n## The Wind\n\nIt left.\n\n## The Rain\n\nIt came.", ["Part One. The Wind", "The Rain"]),
        ("---\ntitle: The Sea\n---\n# The Ferry\n\n## One\n\nIt left.\n\n## Two\n\nIt came.", ["The Ferry. One", "Two"]),
        ("---\ntitle: The Sea\n---\n# The Sea, by A. Writer\n\n## One\n\nIt left.\n\n## Two\n\nIt came.", ["One", "Two"]),
        ("目录\n\n第一部\n第一章 风..... 3\n第二章 雨\n第一部\n第一章 风\n风来了\u3002\n第二章 雨\n下雨了\u3002", ["", "第一部. 第一章 风", "第二章 雨"]),
        ("Contents\n\nChapter 1\n\nChapter 2\n\nChapter 1\n\nIt left.\n\nChapter 2\n\nIt came.", ["Chapter 1", "Chapter 2"]),
        (f"# {'One ' * 25}\n\n# {'Two ' * 10}\n\nIt left.", [("One " * 25).strip(), ("Two " * 10).strip()]),
    ],
)  # fmt: skip
def test_headings_without_a_text_are_said_with_the_next(words: str, titles: list[str], tmp_path: Path) -> None:
    assert [each.title for each in read(tmp_path, words).chapters] == titles


@pytest.mark.parametrize("heading", ["Chapter 1", "Part One\n\nCHAPTER 1", "Chapter 1\n\nThe Wind"])
def test_a_text_that_begins_with_the_last_of_joined_headings_says_them_once(heading: str, tmp_path: Path) -> None:
    marked = "\n\n".join(f"# {each}" for each in ("Part One", "Chapter 1", *(["The Wind"] if "Wind" in heading else [])))
    (first, second) = read(tmp_path, f"{marked}\n\n{heading}\n\nIt left.\n\n# Chapter 2\n\nChapter 2\n\nChapter 2\n\nIt came.").chapters
    assert (first.title.startswith("Part One. Chapter 1"), first.text, second.text) == (True, "It left.", "Chapter 2\n\nIt came.")


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("Emma's Childhood", "Emma's Childhood. One"),
        ("Emmanuel", "Emmanuel. One"),
        ("Emma-Jane", "Emma-Jane. One"),
        ("EMMA", "One"),
        ("Emma: A Novel", "One"),
        ("Emma \u2013 A Novel", "One"),
        ("Emma by Jane Austen", "One"),
    ],
)
def test_only_the_books_title_itself_is_no_heading(heading: str, title: str, tmp_path: Path) -> None:
    book = read(tmp_path, f"---\ntitle: Emma\n---\n# {heading}\n\n## One\n\nIt left.\n\n## Two\n\nIt came.")
    assert [each.title for each in book.chapters] == [title, "Two"]


def test_in_chinese_no_blank_line_is_needed(tmp_path: Path) -> None:
    words = "第一章渡轮\n\u3000\u3000风来了\u3002\n第二章\n\u3000\u3000第一部电影\n\u3000\u3000下雨了\u3002"
    assert [(each.title, len(each.text.split("\n"))) for each in read(tmp_path, words).chapters] == [("第一章渡轮", 1), ("第二章", 2)]


@pytest.mark.parametrize(
    "title",
    [
        "第一章：风",
        "第一章：风，雨",
        "第一章 风，雨",
        "第一章 风：起",
        "第十二章 ：你是谁？",
        "第三回：风起云涌！",
        "第一章：",
        "卷一：风",
        "正文 第一章 风",
    ],
)
def test_a_chinese_title_is_set_off_by_a_colon_or_a_blank(title: str, tmp_path: Path) -> None:
    other = "第九章：雨"
    book = read(tmp_path, f"{title}\n\u3000\u3000风来了\u3002\n{other}\n\u3000\u3000下雨了\u3002")
    assert [each.title for each in book.chapters] == [title, other]


@pytest.mark.parametrize("line", ["第一章写得很好，我喜欢", "第一章的内容：很多", "第一章：风来了\u3002", "第二部电影", "卷一张纸"])
def test_a_chinese_sentence_about_a_chapter_is_none(line: str, tmp_path: Path) -> None:
    assert len(read(tmp_path, f"第一章\n风来了\u3002\n{line}\n下雨了\u3002").chapters) == 1


@pytest.mark.parametrize(
    "line", ["3", "1984", "II", "Letter from Anna", "With part of the crew gone.", "der alte Teil der Stadt", "Part of it"]
)
def test_what_only_looks_like_a_chapter_is_none(line: str, tmp_path: Path) -> None:
    (chapter,) = read(tmp_path, f"It left.\n\n{line}\n\nIt came.").chapters
    assert chapter.text == f"It left.\n\n{line}\n\nIt came."


def test_the_name_of_a_chapter_may_stand_under_its_number(tmp_path: Path) -> None:
    words = "CHAPTER I.\nDown the Hole\n\nShe fell.\n\nCHAPTER II.\nThe pool was wet.\n\nShe swam."
    (chapter,) = read(tmp_path, words).chapters
    assert (chapter.title, chapter.text) == ("CHAPTER I. Down the Hole", "She fell.\n\nCHAPTER II.\nThe pool was wet.\n\nShe swam.")


def test_underlined_headings_facts_and_notes_of_markdown(tmp_path: Path) -> None:
    words = (
        '---\ntitle: "The Ferry"\nauthor: A. Writer\nlang: en-GB\ntags:\n  - sea\n---\nOne\n===\n\nIt left.[^1] And [^x2] went.\n\n'
        "[^1]: Nobody reads this.\n    Nor this.\n\nAll the same.\n\nTwo\n=====\nIt came.\n\nOn.\n---\nAgain."
    )
    book = read(tmp_path, words)
    assert (book.title, book.author, book.language) == ("The Ferry", "A. Writer", "en-GB")
    assert [(each.title, each.text) for each in book.chapters] == [
        ("One", "It left. And  went.\n\n\n\n\nAll the same."),
        ("Two", "It came.\n\nOn.\n---\nAgain."),
    ]


@pytest.mark.parametrize("words", ["He said nothing.", "Anna: It left.\nBen: It came."])
def test_what_stands_between_dashes_is_no_list_of_facts(words: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"---\n{words}\n---\nIt left.").chapters[0].text.startswith(f"---\n{words}")


def test_a_chapter_longer_than_a_script_becomes_several(tmp_path: Path) -> None:
    book = read(tmp_path, "# One\n\n" + "It left the pier at seven. \n\n" * 40_000 + "# Two\n\nIt came.")
    assert [each.title for each in book.chapters] == ["One", "One (2)", "Two"]
    assert all(len(each.script) < 1_000_000 and each.text.endswith(".") for each in book.chapters)


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
