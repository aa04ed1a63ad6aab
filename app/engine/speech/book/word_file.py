"""Read a DOCX: its paragraphs, cut into chapters at its largest headings."""

from __future__ import annotations

import re
from typing import Final

from app.base.foreign_formats import Archive
from app.engine.speech.book.book import Book
from app.engine.speech.book.headed_text import Line, cut_at_headings
from app.engine.speech.book.markup import decode_markup, list_tokens

DOCUMENT: Final = "word/document.xml"
MOST_BYTES: Final = 100_000_000
_STYLE: Final = re.compile(r"(?:heading|berschrift|titre|ttulo|titolo|\u6807\u9898)\s*([1-6])?$|title$", re.IGNORECASE)
"""Word writes the names of headings into files in several languages."""


def read_word(archive: Archive, _name: str) -> Book:
    lines: list[Line] = []
    words: list[str] = []
    level, inside, removed = 0, False, 0
    for token in list_tokens(decode_markup(archive.read(DOCUMENT, MOST_BYTES))):
        if isinstance(token, str):
            if inside and not removed:
                words.append(token)
        elif token.name == "del":  # what was taken out while changes were tracked
            removed += token.opens - token.closes
        elif token.name == "t":
            inside = token.opens and not token.closes
        elif token.name in ("tab", "br", "cr") and token.opens:
            words.append(" ")
        elif token.name == "pstyle" and (style := _STYLE.match(token.get("val"))):
            level = int(style[1] or 0) + 1
        elif token.name == "p" and token.closes:
            lines.append(Line(" ".join("".join(words).split()), level))
            words, level = [], 0
    return cut_at_headings(lines)
