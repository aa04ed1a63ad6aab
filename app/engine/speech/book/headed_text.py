"""Cut a text whose headings are known into chapters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.engine.speech.book.book import Book, Chapter, finish_book


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    level: int = 0
    """Headings have levels from 1, the largest; a paragraph has 0."""


NOTHING_TOLD: Final = Book(())


def cut_at_headings(lines: list[Line], told: Book = NOTHING_TOLD) -> Book:
    """Return the book that the lines make, with what is `told` of it besides. Chapters are the largest headings of which there are several; one
    that stands alone above them is the book's title."""
    counts = Counter(line.level for line in lines if line.level and line.text)
    level = next((each for each in sorted(counts) if counts[each] > 1), min(counts, default=0))
    title = next((line.text for line in lines if 0 < line.level < level and line.text), "")
    return finish_book(replace(told, title=told.title or title), _list_chapters(lines, level))


def _list_chapters(lines: list[Line], level: int) -> Iterator[Chapter]:
    title, texts = "", list[str]()
    for line in lines:
        if 0 < line.level <= level and line.text:
            yield Chapter(title, "\n\n".join(texts))
            title, texts = line.text, []
        elif line.text:
            texts.append(line.text)
    yield Chapter(title, "\n\n".join(texts))
