"""A book and its chapters: what every reader returns, and what it may hold at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.base.clean_words import clean_words
from app.base.sentence import Sentence, say_to_all
from app.base.trouble import BadRequest

LETTERS_MOST: Final = 5_000_000
CHAPTERS_MOST: Final = 2_000
CHAPTER_MOST: Final = 800_000
"""A longer chapter becomes several: with its title and the names of speakers it stays within a script."""
TITLE_MOST: Final = 120
"""A longer title is cut to so many letters."""


class WithoutWords(Exception):
    """Nothing in a book can be spoken."""


@dataclass(frozen=True, slots=True)
class Chapter:
    title: str
    """It stands in one line, and may be empty."""
    text: str
    """Blank lines part its paragraphs; the title is not among them, but where it is all there is."""

    @property
    def script(self) -> str:
        said = len(self.text) <= 2 * TITLE_MOST and _plain(self.title) == _plain(self.text)
        return f"{self.title}\n\n{self.text}" if self.title and not said else self.text


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
        whole = len(chapter.title) <= TITLE_MOST  # else its end is said by the text alone
        pieces = _split(without_title(text, chapter.title) if whole else text) if text else ()
        for number, piece in enumerate(pieces, 1):
            title = f"{chapter.title[:TITLE_MOST]} ({number})" if number > 1 and chapter.title else chapter.title
            kept.append(Chapter(_in_one_line(title), piece))
    if not kept:
        raise WithoutWords
    return replace(
        book,
        chapters=tuple(kept),
        title=_in_one_line(book.title),
        author=_in_one_line(book.author),
        language=_in_one_line(book.language)[:20],
    )


def _split(text: str) -> Iterator[str]:
    """Yield a chapter in pieces that are no longer than a script may be, cut after a paragraph or a sentence where there is one."""
    while len(text) > CHAPTER_MOST:
        found = (text.rfind(sign, CHAPTER_MOST // 2, CHAPTER_MOST) + len(sign) for sign in ("\n\n", "\n", ". ", "\u3002", " "))
        cut = next((each for each in found if each > CHAPTER_MOST // 2), CHAPTER_MOST)
        yield text[:cut].strip()
        text = text[cut:].strip()
    yield text


def _in_one_line(words: str) -> str:
    return clean_words(" ".join(words.split()))[:TITLE_MOST].strip()


def without_title(text: str, title: str) -> str:
    """A chapter that begins with its own title, in one line or over several, says it once."""
    wanted, lines = _plain(title), text.split("\n")
    begun = ""
    for place, line in enumerate(lines):
        begun += _plain(line[: 2 * TITLE_MOST])
        if not wanted.startswith(begun):
            return text
        if wanted and begun == wanted:
            return "\n".join(lines[place + 1 :]).strip() or text
    return text


def _plain(words: str) -> str:
    return "".join(each for each in words.casefold() if each.isalnum())
