"""Read a file that somebody wrote as a book: what is in it decides how, never its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Final

from app.base.foreign_formats import Locked, TooLarge, open_archive
from app.base.sentence import say_to_all
from app.base.trouble import BadRequest
from app.engine.speech.book import epub, pdf, plain_text, word_file
from app.engine.speech.book.book import LETTERS_MOST, Book, WithoutWords

ARCHIVE_MOST_BYTES: Final = 100_000_000
"""At most so many bytes of an archive are read, its pictures left alone."""
TEXT_MOST_BYTES: Final = 4 * LETTERS_MOST
_START_BYTES: Final = 16
_OTHERS: Final = {b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "DOC", b"{\\rtf": "RTF", b"ITSF": "CHM", b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG"}
"""People often try these, which are known by their first bytes."""


def read_book(file: IO[bytes], name: str) -> Book:
    """Read a book; raise a BadRequest that says why it cannot be. `name`: as the person knows the file."""
    try:
        return _read(file, name)
    except WithoutWords as fault:
        sentence = say_to_all(
            "book.empty",
            "No words to speak are in {name}: it is empty, or its pages are pictures. Choose another file, or let a program read the pictures first.",
            name=name,
        )
        raise BadRequest(sentence) from fault
    except Locked as fault:
        sentence = say_to_all(
            "book.locked", "{name} is locked with a password. Remove it in the program that made the file, and try again.", name=name
        )
        raise BadRequest(sentence) from fault
    except TooLarge as fault:
        sentence = say_to_all(
            "book.heavy",
            "{name} takes more memory or time to read than a book does. Save it as EPUB, DOCX or text in the program that made it.",
            name=name,
        )
        raise BadRequest(sentence) from fault
    except OSError as fault:
        sentence = say_to_all(
            "book.damaged",
            "{name} is damaged, or no book in a form that Hearth reads ({fault}). Get the file once more, or save it as EPUB, DOCX or text.",
            name=name,
            fault=str(fault),
        )
        raise BadRequest(sentence) from fault


def _read(file: IO[bytes], name: str) -> Book:
    file.seek(0)
    start = file.read(_START_BYTES)
    file.seek(0)
    if start.startswith(b"PK"):
        return _read_archive(file, name)
    if start.lstrip(b"\xef\xbb\xbf\r\n\t ").startswith(b"%PDF"):
        return pdf.read_pdf(file, name)
    data = file.read(TEXT_MOST_BYTES + 1)
    for begin, kind in _OTHERS.items():
        if data.startswith(begin):
            raise BadRequest(
                say_to_all(
                    "book.other",
                    "{name} is a {kind} file, which Hearth does not read. Save it as text, EPUB, DOCX or PDF.",
                    name=name,
                    kind=kind,
                )
            )
    return plain_text.read_text(data, name)


def _read_archive(file: IO[bytes], name: str) -> Book:
    readers: tuple[tuple[str, Callable[..., Book]], ...] = (
        ("META-INF/container.xml", epub.read_epub),
        (word_file.DOCUMENT, word_file.read_word),
    )
    with open_archive(file, ARCHIVE_MOST_BYTES) as archive:
        for sign, read in readers:
            if sign in archive.names:
                return read(archive, name)
    raise BadRequest(
        say_to_all("book.archive", "{name} is a packed folder without a book in it. Unpack it, and choose the book itself.", name=name)
    )
