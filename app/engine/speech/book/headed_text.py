"""Cut a text whose headings are known into chapters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from app.engine.speech.book.book import TITLE_MOST, Book, Chapter, finish_book, without_title
from app.engine.speech.text.chapter_names import CHAPTER


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    level: int = 0
    """Headings have levels from 1, the largest; a paragraph has 0."""


_CONTENTS: Final = frozenset(
    ("contents", "inhalt", "inhaltsverzeichnis", "sommaire", "\u00edndice", "indice", "\u76ee\u5f55", "\u76ee\u6b21")
)
_SUBTITLE: Final = re.compile(r"\s*[:;.(\u2013\u2014\uff1a]|\s-\s|,?\s+by\s|$")
"""The book's title as a heading ends before one of these; "Emma's Childhood" is a heading of its own in Emma."""
LAST: Final = 4
"""A text may begin with so many of the headings before it."""
NOTHING_TOLD: Final = Book(())


def cut_at_headings(lines: list[Line], told: Book = NOTHING_TOLD) -> Book:
    """Return the book that the lines make, with what is `told` of it besides. Chapters are the largest headings of which there are several; one
    that stands alone above them is the book's title."""
    level = find_level(lines)
    title = next((line.text for line in lines if 0 < line.level < level and line.text and not CHAPTER.fullmatch(line.text)), "")
    book = replace(told, title=told.title or title)
    titled = (each for each in _list_sections(lines, level) if each.texts or not _is_title(each.title, book.title))
    return finish_book(book, _list_chapters([*titled]))


def find_level(lines: Sequence[Line]) -> int:
    """Return the level of the chapters' headings; 0 where there are none."""
    counts = Counter(line.level for line in lines if line.level and line.text)
    return next((each for each in sorted(counts) if counts[each] > 1), min(counts, default=0))


def _is_title(heading: str, title: str) -> bool:
    heading, title = heading.casefold(), title.casefold()
    return bool(title) and heading.startswith(title) and _SUBTITLE.match(heading, len(title)) is not None


@dataclass(slots=True)
class _Section:
    title: str
    texts: list[str] = field(default_factory=list)


def _list_sections(lines: list[Line], level: int) -> list[_Section]:
    found = [_Section("")]
    for line in lines:
        if 0 < line.level <= level and line.text:
            found.append(_Section(line.text))
        elif line.text:
            found[-1].texts.append(line.text)
    return found


def _list_chapters(sections: list[_Section]) -> Iterator[Chapter]:
    """Yield chapters. Headings without a text of their own, as PART ONE before CHAPTER 1, are said with the next one's; those of a list of contents,
    whose words come again, are not."""
    left = Counter(_bare(each.title) for each in sections)
    waiting: list[str] = []
    for each in sections:
        left[_bare(each.title)] -= 1
        waiting += [each.title] if each.title else []
        if each.texts:
            yield from _join(_without_contents(waiting, left), "\n\n".join(each.texts))
            waiting = []
    if waiting:
        yield from _join(waiting, "")


def _without_contents(titles: list[str], later: Counter[str]) -> list[str]:
    """Leave out headings before the last one that make a list of contents."""
    within = Counter(map(_bare, titles))
    for place, title in enumerate(titles[:-1]):
        bare = _bare(title)
        within[bare] -= 1
        if not (bare in _CONTENTS or (len(titles) > 2 and within[bare] + later[bare])):
            return titles[place:]
    return titles[-1:]


def _bare(title: str) -> str:
    """Return what is the same in a heading and in its line of a list of contents, which leads by dots to the number of a page."""
    words = title.rstrip("0123456789").rstrip()
    return (words.rstrip(" .\u2026\u00b7") if words.endswith(("..", "\u2026", "\u00b7")) else title).casefold()


def _join(titles: list[str], text: str) -> Iterator[Chapter]:
    """Yield a chapter with all these titles; before it, those for which one line has no room. Where its text begins with the last of them, they are
    said once."""
    begun = (without_title(text, " ".join(titles[place:])) for place in range(max(1, len(titles) - LAST), len(titles)))
    text = next((each for each in begun if each != text), text)
    joined = ""
    for title in titles:
        if joined and len(joined) + len(title) + len(". ") > TITLE_MOST:
            yield Chapter(joined, joined)
            joined = ""
        joined = f"{joined.rstrip('.:')}. {title}" if joined else title
    yield Chapter(joined, text or joined)
