"""Read a text without a form of its own: plain, Markdown or subtitles."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from app.base.sentence import say_to_all
from app.base.trouble import BadRequest
from app.engine.speech.book.book import Book, Chapter, finish_book
from app.engine.speech.book.headed_text import Line, cut_at_headings
from app.engine.speech.text.chapter_names import CHAPTER, EAST

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1f]")
_HEADING: Final = re.compile(r"(#{1,6})\s++(\S[^\n]*?)\s*+#*+\s*+$")
_CUE: Final = re.compile(r"\s*+\d{1,3}:\d\d(?::\d\d)?[,.]\d{1,3}\s*+-->\s")
"""SRT and WebVTT write the times of a subtitle so."""
_MARKS: Final = re.compile(r"</?[A-Za-z][^<>]{0,80}>|\{\\[^{}]{0,80}\}")
"""Subtitles mark italics and places so."""
FACTS_MOST: Final = 60
TITLE_LINE: Final = 100
"""A longer line is no title."""
_USUAL_FACTS: Final = frozenset(("title", "author", "date", "lang", "language", "layout", "tags", "draft"))
_FACT: Final = re.compile(r"[\w .-]{1,40}:(?:\s.*)?|\s+\S.*|- .*|#.*|\s*")
_QUOTED: Final = re.compile(r"^ {0,3}>(?: ?>){0,9} ?")
_FENCE: Final = re.compile(r" {0,3}(`{3,}+|~{3,}+)([^`]*)")
_NOTE: Final = re.compile(r" {0,3}\[\^[^\]\s]{1,40}\]:")
_NOTE_MARK: Final = re.compile(r"\[\^[^\]\s]{1,40}\]")
_SPOKEN: Final = re.compile(r"[:\[]")
"""A speaker's name stands before one of these: the line is no title."""
_RULE: Final = re.compile(r"(=|-)\1{2,}\s*")
_RULED_TITLE: Final = re.compile(r"[^\s>#|*+-](?:[^:\[]{0,98}[^\s.!?,;:|\])\"'\u201d\u2019])?")
_LINK: Final = re.compile(r"!?\[([^\[\]\n]{0,400})\]\([^()\n]{0,1000}\)")
_WEB_LINK: Final = re.compile(r"!?\[([^\[\]\n]{0,400})\]\(https?://[^()\s]{0,1000}\)")
"""What is no Markdown may have a sound in round brackets behind a speaker's tag."""
_STRESS: Final = re.compile(r"(?<![\w*_])(\*\*\*|\*\*|\*|___|__|_|`)(?=\S)([^*_`\n]{1,400}?)(?<=\S)\1(?![\w*_])")


def read_text(data: bytes, name: str) -> Book:
    text = decode_text(data)
    if text is None:
        raise BadRequest(
            say_to_all(
                "book.strange",
                "{name} is no text, EPUB, DOCX or PDF. Save it as one of these in the program that made it, and try again.",
                name=name,
            )
        )
    lines = re.sub(r"\r\n?+", "\n", text).split("\n")
    if any(_CUE.match(line) for line in lines[:100]):
        return finish_book(Book(()), [Chapter("", _join_cues(lines))])
    lines, told = _take_facts(lines)
    lines = _without_notes(lines)
    if len(_find_titles(lines)) < 2:  # else a ruled line is the book's title, or none at all
        lines = _mark_ruled(lines)
    if any(_HEADING.match(line) for line in lines):
        return cut_at_headings(_read_markdown(lines), told)
    return cut_at_headings(_read_plain([_without_marks(line, _WEB_LINK) for line in lines]), told)


def decode_text(data: bytes) -> str | None:
    """Decode as Unicode, else as older programs wrote Chinese or European languages; None for what is no text."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for name in ("utf-16",) if wide else ("utf-8-sig", *(("gb18030",) if _looks_chinese(data) else ()), "cp1252"):
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            continue
        return None if _CONTROLS.search(text) else text
    return None


def _looks_chinese(data: bytes) -> bool:
    """Tell whether nearly all bytes that are no ASCII come in pairs: in European texts they stand between letters."""
    runs = re.findall(rb"[\x80-\xff]++", data[:200_000])
    return sum(len(run) for run in runs if len(run) > 1) > 9 * sum(len(run) == 1 for run in runs)


def _join_cues(lines: list[str]) -> str:
    """Return what is said, a paragraph a subtitle: no numbers, no times, no marks."""
    said: list[list[str]] = [[]]
    for place, line in enumerate(lines):
        timed = place + 1 < len(lines) and _CUE.match(lines[place + 1])
        if _CUE.match(line):
            said.append([])
        elif line.strip() and not timed and len(said) > 1:
            said[-1].append(_MARKS.sub("", line).strip())
    return "\n\n".join(" ".join(each) for each in said if any(each))


def _read_markdown(lines: list[str]) -> list[Line]:
    found: list[Line] = []
    texts: list[str] = []
    code = _find_code(lines)
    for place, line in enumerate([*lines, "# "]):
        fence = code.get(place, "")
        heading = _HEADING.match(line) if not fence.startswith("`") else None  # ~~~ alone may part scenes
        if heading or line == "# ":
            found.append(Line("\n".join(texts).strip()))
            texts = []
        if heading:
            found.append(Line(_without_marks(heading[2]), len(heading[1])))
        else:
            texts.append(_without_marks(line if fence else _without_quote(line)))
    return [line for line in found if line.text]


def _find_code(lines: list[str]) -> dict[int, str]:
    """Return the lines of blocks of code, each with the mark of its block; what begins them is no quote's. A block that nothing ends, or only the end
    of another one that begins after it, is none, nor is one of Markdown, as which assistants write a whole text."""
    found = dict[int, str]()
    fence, begun = "", 0
    for place, line in enumerate(lines):
        mark = _FENCE.fullmatch(line)
        if mark is None or not mark[1].startswith(fence):
            continue
        language = mark[2].strip().lower()
        if fence and not language:
            found |= dict.fromkeys(range(begun, place + 1), fence)
            fence = ""
        elif language not in ("markdown", "md"):
            fence, begun = mark[1], place
    return found


def _without_quote(line: str) -> str:
    """Leave out a quote's mark, and that of a heading within it, which is none of the book's."""
    quoted = _QUOTED.sub("", line)
    return _HEADING.sub(r"\2", quoted) if quoted != line else line


def _without_marks(line: str, link: re.Pattern[str] = _LINK) -> str:
    return _STRESS.sub(r"\2", link.sub(r"\1", line))


def _take_facts(lines: list[str]) -> tuple[list[str], Book]:
    """Take the facts that programs for Markdown keep before a text, between two lines of "---"."""
    end = next((place for place, line in enumerate(lines[1:FACTS_MOST], 1) if line.rstrip() in ("---", "...")), 0)
    if lines[0].rstrip() != "---" or not all(_FACT.fullmatch(line) for line in lines[1:end]):
        return lines, Book(())
    facts = dict[str, str]()
    for line in lines[1:end]:
        name, _, value = line.partition(":")
        facts.setdefault(name.lower(), value.strip().strip("\"'"))
    if facts.keys().isdisjoint(_USUAL_FACTS):  # it is a talk between two rules
        return lines, Book(())
    return lines[end + 1 :], Book((), facts.get("title", ""), facts.get("author", ""), facts.get("lang", facts.get("language", "")))


def _without_notes(lines: list[str]) -> list[str]:
    """Leave out the notes of Markdown, also those within quotes, and the marks that lead to them."""
    kept: list[str] = []
    within = False
    for line in lines:
        bare = _QUOTED.sub("", line)
        within = _NOTE.match(bare) is not None or (within and bool(bare.strip()))
        kept.append("" if within else _NOTE_MARK.sub("", line))
    return kept


def _mark_ruled(lines: list[str]) -> list[str]:
    """Write headings that are underlined as those with a number sign."""
    marked = ["", *lines, ""]
    for place in range(1, len(marked) - 1):
        before, line = marked[place - 1], marked[place].strip()
        rule = _RULE.fullmatch(marked[place + 1]) if not before.strip() and _RULED_TITLE.fullmatch(line) else None
        if rule is not None and (rule[1] == "=" or not "".join(marked[place + 2 : place + 3]).strip()):
            marked[place : place + 2] = [f"{'#' if rule[1] == '=' else '##'} {line}", ""]
    return marked[1:-1]


def _read_plain(lines: list[str]) -> list[Line]:
    """Lines that say of themselves that a chapter begins are headings, else the numbers 1, 2, 3 that stand alone."""
    titles = _find_titles(lines) or _find_numbers(lines)
    found: list[Line] = []
    texts: list[str] = []
    skipped = 0
    for place, line in enumerate(lines):
        if place in titles:
            title, skipped = titles[place]
            found += [Line("\n".join(texts).strip()), Line(title, 1)]
            texts = []
        if skipped:
            skipped -= 1
        else:
            texts.append(line)
    found.append(Line("\n".join(texts).strip()))
    return [line for line in found if line.text]


def _list_alone(lines: list[str], most: int) -> Iterator[tuple[int, list[str]]]:
    """Yield what stands between blank lines and is no longer than so many: where it begins, and its lines."""
    begin = 0
    for filled, block in groupby(lines, key=lambda line: bool(line.strip())):
        held = [line.strip() for line in block]
        if filled and len(held) <= most:
            yield begin, held
        begin += len(held)


def _find_titles(lines: list[str]) -> dict[int, tuple[str, int]]:
    """Return the titles of chapters by the number of their first line, each with how many lines it takes: a name may stand under "Chapter 1"."""
    found = {place: (line.strip(), 1) for place, line in enumerate(lines) if len(line) < TITLE_LINE and EAST.fullmatch(line.strip())}
    for place, (first, *more) in _list_alone(lines, 2):
        if len(first) >= TITLE_LINE or not CHAPTER.fullmatch(first):
            continue
        if not more:
            found[place] = first, 1
        elif len(more[0]) < TITLE_LINE and more[0][-1].isalnum() and not _SPOKEN.search(more[0]):
            found[place] = f"{first.rstrip('.:')}. {more[0]}", 2
    return found


def _find_numbers(lines: list[str]) -> dict[int, tuple[str, int]]:
    """Return numbers that count up; one within a sentence is that of a page."""
    found = dict[int, tuple[str, int]]()
    for place, (line,) in _list_alone(lines, 1):
        number = len(found) + 1
        if line.rstrip(".") in (str(number), _write_roman(number)) and (number == 1 or not _ends_openly(lines, place)):
            found[place] = line, 1
    return found if len(found) > 1 else {}


def _ends_openly(lines: list[str], place: int) -> bool:
    """Tell whether what stands before a line ends in the middle of a sentence."""
    before = next((lines[each].strip() for each in range(place - 1, -1, -1) if lines[each].strip()), "")
    return before[-1:].isalnum()


def _write_roman(number: int) -> str:
    tens, ones = divmod(number, 10)
    return "X" * tens + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[ones]
