"""Books in the forms that other programs write, small."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from app.engine.speech.book.book import Book
from app.engine.speech.book.read_book import read_book as read_book_file

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
NAV = (
    '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
    '<head><title>Contents</title></head><body><nav epub:type="toc"><h1>Contents</h1><ol>{links}</ol></nav>'
    '<nav epub:type="landmarks"><ol><li><a href="one.xhtml">Begin reading</a></li></ol></nav></body></html>'
)
NCX = (
    '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><docTitle><text>The Ferry</text></docTitle><navMap>{points}</navMap></ncx>'
)
PAGE = (
    '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
    '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><head><title>{name}</title>'
    "<style>p {{ color: red }}</style></head><body>{body}</body></html>"
)


def package(pages: list[str], contents: str, cover: bool = False) -> str:
    """The package document of EPUB 3 with a nav, or of EPUB 2 with an ncx."""
    newer = contents == "nav.xhtml"
    kind = 'properties="nav" media-type="application/xhtml+xml"' if newer else 'media-type="application/x-dtbncx+xml"'
    items = "".join(f'<item id="i{place}" href="{page}" media-type="application/xhtml+xml"/>' for place, page in enumerate(pages))
    spine = "".join(f'<itemref idref="i{place}"/>' for place in range(len(pages)))
    drawn = '<item id="drawn" href="drawn.png" properties="cover-image" media-type="image/png"/>' if cover else ""
    listed = f'<item id="contents" href="{contents}" {kind}/>' if contents else ""
    toc = "" if newer else ' toc="contents"'
    return (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>The Ferry &amp; the Fjord</dc:title><dc:creator>A. Writer</dc:creator><dc:language>en-GB</dc:language></metadata>"
        f"<manifest>{items}{listed}{drawn}</manifest><spine{toc}>{spine}</spine></package>"
    )


def save_epub(
    path: Path,
    pages: dict[str, str],
    contents: dict[str, str] | None,
    newer: bool = True,
    more: Mapping[str, str] = MappingProxyType({}),
    cover: bytes = b"",
) -> Path:
    """Write an EPUB. `pages`: bodies by name; `contents`: titles by where they lead, None for a book without a table; `more`: other files;
    `cover`: a PNG."""
    name = "" if contents is None else "nav.xhtml" if newer else "toc.ncx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/content.opf", package(list(pages), name, bool(cover)))
        if contents is not None:
            links = "".join(f'<li><a href="{place}">{title}</a></li>' for place, title in contents.items())
            points = "".join(
                f'<navPoint><navLabel><text>{title}</text></navLabel><content src="{place}"/></navPoint>'
                for place, title in contents.items()
            )
            archive.writestr(f"OEBPS/{name}", NAV.format(links=links) if newer else NCX.format(points=points))
        for page, body in pages.items():
            archive.writestr(f"OEBPS/{page}", PAGE.format(name=page, body=body))
        for place, words in more.items():
            archive.writestr(place, words)
        if cover:
            archive.writestr("OEBPS/drawn.png", cover)
    return path


def save_word(path: Path, paragraphs: list[tuple[str, str]], styles: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write a DOCX of paragraphs, each with the id of its style, "" for none. `styles`: names of styles by their ids."""
    body = ""
    for style, words in paragraphs:
        named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        runs = "".join(f'<w:r><w:t xml:space="preserve">{run}</w:t></w:r>' for run in words.split("|"))
        body += f"<w:p>{named}{runs}</w:p>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        if styles:
            listed = "".join(
                f'<w:style w:type="paragraph" w:styleId="{each}"><w:name w:val="{name}"/></w:style>' for each, name in styles.items()
            )
            archive.writestr("word/styles.xml", f'<w:styles xmlns:w="x">{listed}</w:styles>')
        archive.writestr(
            "word/document.xml",
            f'<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>',
        )
    return path


def read_book(path: Path, name: str) -> Book:
    with path.open("rb") as file:
        return read_book_file(file, name)
