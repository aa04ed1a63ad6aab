"""Read a DOCX: its paragraphs, cut into chapters at its largest headings."""

from __future__ import annotations

import re
from typing import Final

from app.base.foreign_formats import Archive
from app.engine.speech.book.book import Book
from app.engine.speech.book.headed_text import Line, cut_at_headings
from app.engine.speech.book.markup import decode_markup, list_tokens

DOCUMENT: Final = "word/document.xml"
STYLES: Final = "word/styles.xml"
FACTS: Final = "docProps/core.xml"
MOST_BYTES: Final = 100_000_000
_HEADING: Final = re.compile(r"(?:heading|berschrift|titre|ttulo|titolo|\u6807\u9898)\s*([1-6])?$|title$", re.IGNORECASE)
_CONTENTS: Final = re.compile(r"(?:toc|verzeichnis|tm|tdc|sommario)\s*[1-9]$|toc ?heading$|contents heading$", re.IGNORECASE)
"""Word writes styles into files by an id in the language of its maker, which `STYLES` leads to an English name."""
_UNREAD: Final = frozenset(("del", "movefrom", "fallback"))
"""Taken out, or moved elsewhere, while changes were tracked; and what is there twice, for older programs."""


def read_word(archive: Archive, _name: str) -> Book:
    names = _read_styles(archive)
    lines: list[Line] = []
    words: list[str] = []
    level, listed, inside, unread = 0, False, False, 0
    for token in list_tokens(decode_markup(archive.read(DOCUMENT, MOST_BYTES))):
        if isinstance(token, str):
            if inside and not unread:
                words.append(token)
        elif token.name in _UNREAD:
            unread += token.opens - token.closes
        elif token.name == "t":
            inside = token.opens and not token.closes
        elif unread:
            continue
        elif token.name in ("tab", "br", "cr") and token.opens:
            words.append(" ")
        elif token.name == "nobreakhyphen" and token.opens:
            words.append("-")
        elif token.name == "pstyle":
            styles = names.get(token.get("val"), ""), token.get("val")
            listed = any(_CONTENTS.match(each) for each in styles)
            if heading := next(filter(None, map(_HEADING.match, styles)), None):
                level = int(heading[1] or 0) + 1
        elif token.name == "outlinelvl" and token.get("val") in tuple("012345"):
            level = int(token.get("val")) + 2
        elif token.name == "p" and (token.closes or words):  # one that begins within another is that of a text box
            if not listed:
                lines.append(Line(" ".join("".join(words).split()), level))
            words, level, listed = [], 0, False
    return cut_at_headings(lines, _read_facts(archive))


def _read_facts(archive: Archive) -> Book:
    """Return a book without chapters, with the title, author and language that Word keeps of it."""
    facts, within = dict[str, str](), ""
    try:
        written = decode_markup(archive.read(FACTS, MOST_BYTES))
    except OSError:  # the words are what counts
        return Book(())
    for token in list_tokens(written):
        if not isinstance(token, str):
            within = token.name if token.opens else ""
        elif within and token.strip():
            facts.setdefault(within, " ".join(token.split()))
    return Book((), facts.get("title", ""), facts.get("creator", ""), facts.get("language", ""))


def _read_styles(archive: Archive) -> dict[str, str]:
    names: dict[str, str] = {}
    style = ""
    try:
        written = decode_markup(archive.read(STYLES, MOST_BYTES))
    except OSError:  # the words are what counts
        return names
    for token in list_tokens(written):
        if isinstance(token, str):
            continue
        if token.name == "style":
            style = token.get("styleid") if token.opens else ""
        elif token.name == "name" and style:
            names.setdefault(style, token.get("val"))
    return names
