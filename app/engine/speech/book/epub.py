"""Read an EPUB: the pages of its spine, cut into chapters as its table of contents says."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urldefrag

from app.base.foreign_formats import Archive
from app.base.sentence import say_to_all
from app.base.trouble import BadRequest
from app.engine.speech.book.book import TITLE_MOST, Book, Chapter, finish_book
from app.engine.speech.book.flowing_text import Page, read_page
from app.engine.speech.book.markup import Tag, decode_markup, list_tokens

PAGE_MOST_BYTES, COVER_MOST_BYTES = 20_000_000, 10_000_000
_RIGHTS: Final = ("META-INF/rights.xml", "META-INF/sinf.xml", "META-INF/license.lcpl")
"""Adobe, Apple and Readium lock a book with these files."""
_FONTS_ONLY: Final = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""These ways only make fonts useless elsewhere; the words stay readable."""


@dataclass(slots=True)
class _Package:
    """What the package document says."""

    folder: str
    words: dict[str, str] = field(default_factory=dict)
    """Only the first title, creator and language are kept."""
    files: dict[str, str] = field(default_factory=dict)
    """Ids lead to paths in the archive."""
    contents: tuple[str, bool] = ("", False)
    """The table of contents lies at this path; True: it is that of EPUB 3."""
    cover: str = ""
    """EPUB 3 gives a path here, EPUB 2 an id."""
    spine: list[str] = field(default_factory=list)
    """The book's pages lie at these paths, in their order."""


def read_epub(archive: Archive, name: str) -> Book:
    _refuse_locked(archive, name)
    package = _read_package(archive)
    labels = _read_contents(archive, *package.contents) if package.contents[0] in archive.names else {}
    words = package.words
    book = Book((), words.get("title", ""), words.get("creator", ""), words.get("language", ""), _read_cover(archive, package))
    return finish_book(book, _list_chapters(archive, package.spine, labels))


def _refuse_locked(archive: Archive, name: str) -> None:
    """Refuse a book whose words nobody but its shop's own program can read."""
    found = any(each in archive.names for each in _RIGHTS)
    if "META-INF/encryption.xml" in archive.names:
        ways = [each.get("algorithm") for each in _tags(archive, "META-INF/encryption.xml") if each.name == "encryptionmethod"]
        found = found or any(way not in _FONTS_ONLY for way in ways)
    if found:
        raise BadRequest(
            say_to_all(
                "book.drm",
                "{name} is locked by the shop it came from (DRM): only the shop's own program can read it. Hearth needs a copy without.",
                name=name,
            )
        )


def _tags(archive: Archive, path: str) -> Iterator[Tag]:
    return (each for each in list_tokens(decode_markup(archive.read(path, PAGE_MOST_BYTES))) if isinstance(each, Tag))


def _read_package(archive: Archive) -> _Package:
    path = next((each.get("full-path") for each in _tags(archive, "META-INF/container.xml") if each.name == "rootfile"), "")
    package = _Package(posixpath.dirname(path))
    ids: list[str] = []
    listed = ""
    within = ""
    for token in list_tokens(decode_markup(archive.read(path, PAGE_MOST_BYTES))):
        if isinstance(token, str):
            if within and token.strip():
                package.words.setdefault(within, token)
            continue
        within = token.name if token.opens and token.name in ("title", "creator", "language") else ""
        if token.name == "item" and token.opens:
            place = _join(package.folder, token.get("href"))
            package.files[token.get("id")] = place
            properties = token.get("properties").split()
            if "nav" in properties:
                package.contents = place, True
            elif "cover-image" in properties:
                package.cover = place
        elif token.name == "meta" and token.get("name") == "cover":
            package.cover = package.cover or token.get("content")
        elif token.name == "spine" and token.opens:
            listed = token.get("toc")
        elif token.name == "itemref" and token.opens and token.get("linear") != "no":
            ids.append(token.get("idref"))
    if not package.contents[0]:
        package.contents = package.files.get(listed, ""), False
    package.spine = [package.files[each] for each in dict.fromkeys(ids) if each in package.files]
    return package


def _read_cover(archive: Archive, package: _Package) -> bytes:
    """Return the cover's picture; nothing where there is none, or one that is damaged or large: the words are what counts."""
    path = package.files.get(package.cover, package.cover)
    try:
        return archive.read(path, COVER_MOST_BYTES) if path in archive.names else b""
    except OSError:
        return b""


def _join(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(urldefrag(href).url)))


def _read_contents(archive: Archive, path: str, navigation: bool) -> dict[str, dict[str, str]]:
    """Return the titles of a table of contents: by the page's path, then by the place in it, "" for its beginning."""
    folder = posixpath.dirname(path)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    words: list[str] = []
    inside, href = not navigation, ""

    def keep() -> None:
        if href and (title := " ".join("".join(words).split())):
            page, place = found[_join(folder, href)], unquote(urldefrag(href).fragment)
            page[place] = _join_titles(page.get(place, ""), title)

    for token in list_tokens(decode_markup(archive.read(path, PAGE_MOST_BYTES))):
        if isinstance(token, str):
            words.append(token)
        elif navigation and token.name == "nav":
            inside = token.opens and "toc" in token.get("type").split()
        elif inside and navigation and token.name == "a":
            if token.opens:
                href = token.get("href")
                words.clear()
            else:
                keep()
                href = ""
        elif not navigation and token.name == "text" and token.opens:
            words.clear()
        elif not navigation and token.name == "content" and token.opens:  # of a navPoint, after its label
            href = token.get("src")
            keep()
    return found


def _list_chapters(archive: Archive, spine: list[str], labels: dict[str, dict[str, str]]) -> Iterator[Chapter]:
    """Yield chapters: a new one begins where the table of contents says, or with each page of a book without one."""
    title, paragraphs = "", list[str]()
    for path in spine:
        if path not in archive.names:
            continue
        wanted = labels.get(path, {})
        page = read_page(list_tokens(decode_markup(archive.read(path, PAGE_MOST_BYTES))), wanted)
        at = 0
        for place, label in _list_begins(page, wanted, bool(labels)):
            paragraphs += page.paragraphs[at:place]
            yield Chapter(title, "\n\n".join(paragraphs))
            title, paragraphs, at = label, [], place
        paragraphs += page.paragraphs[at:]
    yield Chapter(title, "\n\n".join(paragraphs))


def _list_begins(page: Page, wanted: dict[str, str], listed: bool) -> list[tuple[int, str]]:
    """List where chapters begin in a page, with their titles; of places that the page lacks, the first is its beginning if there is no other."""
    if not listed:
        return [(0, page.heading)]
    begins: dict[int, str] = {}
    for name, label in wanted.items():
        if not name or name in page.places:
            place = page.places.get(name, 0)
            begins[place] = _join_titles(begins.get(place, ""), label)
    return sorted(begins.items()) or [(0, label) for label in wanted.values()][:1]


def _join_titles(first: str, second: str) -> str:
    """A part and its first chapter may begin at the same place."""
    if second.isdigit() and first:  # the number of a page
        return first
    return f"{first.rstrip('.:')}. {second}" if first and first != second and len(first) < TITLE_MOST else first or second
