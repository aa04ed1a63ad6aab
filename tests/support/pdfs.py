"""PDFs as other programs print them, small: each line of a page where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PrintedAt = tuple[str, float, float, float]
"""Each holds words, the size of their letters, and their place from the left and from below."""


def set_pages(
    paragraphs: Sequence[str | tuple[str, float]], head: str = "", lines: int = 30, width: int = 60, number_from: int = 1
) -> list[list[PrintedAt]]:
    """Set paragraphs as a book is: lines of one width, first ones indented, running heads and page numbers; a pair is a heading and its size,
    and begins a page."""
    pages: list[list[PrintedAt]] = []
    for each in paragraphs:
        words, size = (each, 11.0) if isinstance(each, str) else each
        if size > 11 or not pages:
            pages.append([])
        for place, line in enumerate(_break(words, width)):
            if len(pages[-1]) == lines:
                pages.append([])
            pages[-1].append(
                (line, size, 72 + (15 if place == 0 and size == 11 else 0), 700 - 14 * len(pages[-1]) - (30 if size == 11 else 0))
            )
    for number, page in enumerate(pages, number_from):
        if head and page[0][1] == 11:
            page.insert(0, (head, 9, 200, 760))
        page.append((str(number), 9, 300, 40))
    return pages


def _break(words: str, width: int) -> list[str]:
    lines = [""]
    for word in words.split():
        room = width - len(lines[-1]) - 1
        if len(word) > room and room > 4 and len(word) > 7 and word.isalpha():  # as printers do
            lines[-1] += f" {word[:4]}-"
            lines.append(word[4:])
        elif len(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def save_pdf(path: Path, pages: Sequence[Sequence[PrintedAt]], contents: Sequence[tuple[str, int]] = (), title: str = "") -> Path:
    """Write a PDF. `contents`: titles with their pages, from 0."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding /WinAnsiEncoding >>"]

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    kids = []
    for page in pages:
        drawn = b"\n".join(
            b"BT /F1 %g Tf 1 0 0 1 %g %g Tm (%s) Tj ET"
            % (size, left, low, words.encode("cp1252").replace(b"(", b"\\(").replace(b")", b"\\)"))
            for words, size, left, low in page
        )
        stream = add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
        kids.append(
            add(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % stream)
        )
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    outline = b""
    if contents:
        root, first = len(objects) + 1, len(objects) + 2
        add(b"<< /Type /Outlines /First %d 0 R /Last %d 0 R /Count %d >>" % (first, first + len(contents) - 1, len(contents)))
        for place, (name, leads) in enumerate(contents):
            after = b"/Next %d 0 R" % (first + place + 1) if place + 1 < len(contents) else b""
            add(b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /XYZ 0 740 0] %s >>" % (name.encode(), root, kids[leads], after))
        outline = b" /Outlines %d 0 R" % root
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R%s >>" % outline
    info = add(b"<< /Title (%s) /Author (A. Writer) >>" % title.encode())
    made, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    path.write_bytes(
        made
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
        + b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, info, len(made))
    )
    return path
