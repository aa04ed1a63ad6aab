"""A book and its chapters: what every reader returns, and what it may hold at most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from app.base.clean_words import clean_words
from app.base.sentence import Sentence, say_to_all
from app.base.trouble import BadRequest

LETTERS_MOST: Final = 5_000_000
CHAPTERS_MOST: Final = 2_000
TITLE_MOST: Final = 120
"""A longer title is cut to so many letters."""


@dataclass(frozen=True, slots=True)
class Chapter:
    title: str
    """It stands in one line, and may be empty."""
    text: str
    """Blank lines part its paragraphs; the title is not among them."""

    @property
    def script(self) -> str:
        return f"{self.title}\n\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Book:
    chapters: tuple[Chapter, ...]
    title: str = ""
    author: str = ""
    language: str = ""
    """The book itself says it, "en-GB" say."""
    cover: bytes = b""
    """The picture comes as it lies in the file, and nobody has looked at it yet."""
    note: Sentence | None = None
    """It says what lies in the file and is not in the book."""


def finish_book(book: Book, chapters: Iterable[Chapter]) -> Book:
    """Return the book with its chapters as they are spoken: one without words goes, and titles are single lines."""
    kept: list[Chapter] = []
    letters = 0
    for chapter in chapters:
        text = chapter.text.strip()
        letters += len(text)
        if letters > LETTERS_MOST or len(kept) > CHAPTERS_MOST:
            raise BadRequest(
                say_to_all(
                    "book.long",
                    "This book has more than {letters} letters or {chapters} chapters, the most that can be read at once. Split it.",
                    letters=LETTERS_MOST,
                    chapters=CHAPTERS_MOST,
                )
            )
        if text:
            kept.append(Chapter(_in_one_line(chapter.title), _without_title(text, chapter.title)))
    if not kept:
        raise BadRequest(
            say_to_all(
                "book.empty", "No words to speak are in it. Scanned pages are pictures: a program that reads them has to come first."
            )
        )
    return replace(
        book,
        chapters=tuple(kept),
        title=_in_one_line(book.title),
        author=_in_one_line(book.author),
        language=_in_one_line(book.language)[:20],
    )


def _in_one_line(words: str) -> str:
    return clean_words(" ".join(words.split()))[:TITLE_MOST].strip()


def _without_title(text: str, title: str) -> str:
    """A chapter that begins with its own title says it once."""
    first, _, rest = text.partition("\n")
    return rest.strip() if title and rest.strip() and _plain(first) == _plain(title) else text


def _plain(words: str) -> str:
    return "".join(each for each in words.casefold() if each.isalnum())
