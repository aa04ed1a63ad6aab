"""Read a text without a form of its own: plain, Markdown or subtitles."""

from __future__ import annotations

import codecs
import re
from typing import Final

from app.base.sentence import say_to_all
from app.base.trouble import BadRequest
from app.engine.speech.book.book import Book, Chapter, finish_book
from app.engine.speech.book.headed_text import Line, cut_at_headings
from app.engine.speech.text.layout import CHAPTER

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1f]")
_HEADING: Final = re.compile(r"(#{1,6})\s++(\S[^\n]*?)\s*+#*+\s*+$")
_CUE: Final = re.compile(r"\s*+\d{1,3}:\d\d(?::\d\d)?[,.]\d{1,3}\s*+-->\s")
"""SRT and WebVTT write the times of a subtitle so."""
_MARKS: Final = re.compile(r"</?[A-Za-z][^<>]{0,80}>|\{\\[^{}]{0,80}\}")
"""Subtitles mark italics and places so."""
_LINK: Final = re.compile(r"!?\[([^\[\]\n]{0,400})\]\([^()\n]{0,1000}\)")
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
    if sum(_HEADING.match(line) is not None for line in lines):
        return cut_at_headings(_read_markdown(lines))
    return cut_at_headings(_read_plain(lines))


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
    for line in [*lines, "# "]:
        heading = _HEADING.match(line)
        if heading or line == "# ":
            found.append(Line("\n".join(texts).strip()))
            texts = []
        if heading:
            found.append(Line(_without_marks(heading[2]), len(heading[1])))
        else:
            texts.append(_without_marks(line))
    return [line for line in found if line.text]


def _without_marks(line: str) -> str:
    return _STRESS.sub(r"\2", _LINK.sub(r"\1", line))


def _read_plain(lines: list[str]) -> list[Line]:
    """A line that says of itself that a chapter begins, between blank ones, is a heading."""
    found: list[Line] = []
    texts: list[str] = []
    for place, line in enumerate(lines):
        alone = (place == 0 or not lines[place - 1].strip()) and (place + 1 == len(lines) or not lines[place + 1].strip())
        if alone and len(line) < 100 and CHAPTER.fullmatch(line.strip()):
            found += [Line("\n".join(texts).strip()), Line(line.strip(), 1)]
            texts = []
        else:
            texts.append(line)
    found.append(Line("\n".join(texts).strip()))
    return [line for line in found if line.text]
