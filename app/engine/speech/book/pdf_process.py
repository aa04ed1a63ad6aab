"""Read a PDF in a process of its own: its lines and their places go to standard output. Its library believes what a file says, and may take all memory."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import IO, Any, Final

from app.engine.speech.book.book import CHAPTERS_MOST, LETTERS_MOST

PAGES_MOST: Final = 10_000
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")
RAISED, LOWERED = "\ue000", "\ue001"
"""Small raised signs, as the number of a note, stand between these."""
_OWN: Final = str.maketrans(dict.fromkeys((RAISED, LOWERED)))
SIGN: Final = re.compile(r"(\d{1,3}|[*\u2020\u2021\u00a7]{1,3}|[\u2460-\u2473])")
_SET_OFF: Final = re.compile(r"[\s.,;:!?)\]\u2026\u00bb\u201d\u2019\"'\u2013\u2014\u3001\u3002\uff0c]|$")
"""Where one of these follows a raised sign, it belongs to the word before it; else it may be half a fraction, or the number of a verse."""
SMALLER: Final = 0.85
"""A raised sign is smaller than its line by this factor."""
Line = tuple[str, float, float, float]
"""A line holds its words, the size of the letters, and where they begin, from the left and from below."""


def main() -> None:
    print(json.dumps(read(sys.stdin.buffer)))


def read(file: IO[bytes]) -> dict[str, Any]:
    """Return what is in a PDF, or why it cannot be read."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            return {"locked": True}
        told = reader.metadata
        count = len(reader.pages)
        if count > PAGES_MOST:
            return {"fault": f"{count} pages"}
    except DependencyError:  # it cannot decrypt this one
        return {"locked": True}
    except Exception as fault:  # of a broken file it raises anything
        return {"fault": _word(fault)}
    pages, lost, letters = list[list[Line]](), list[int](), 0
    for number in range(count):
        try:
            lines = list(_list_lines(reader.pages[number]))
        except Exception:
            lines = []
            lost.append(number)
        letters += sum(len(words) for words, *_ in lines)
        pages.append(lines)
        if letters > LETTERS_MOST:
            break
    try:
        contents = list(_list_contents(reader, reader.outline, 1))[:CHAPTERS_MOST]
    except Exception:  # then headings say where chapters begin
        contents = []
    return {"title": _read_name(told, "title"), "author": _read_name(told, "author"), "pages": pages, "lost": lost, "contents": contents}


def _list_lines(page: Any) -> Iterator[Line]:
    made: list[tuple[str, Any, Any, float]] = []
    page.extract_text(visitor_text=lambda words, outer, inner, _font, size: made.append((words, outer, inner, size)))
    bits = list[tuple[str, float, float, float]]()
    for text, outer, inner, size in (*made, ("\n", (1, 0, 0, 1, 0, 0), (1, 0, 0, 1, 0, 0), 0)):
        for place, bit in enumerate(text.translate(_OWN).split("\n")):
            if place and bits:
                yield _join(bits)
            if place:
                bits = []
            if bit.strip():
                across, up = inner[4], inner[5]
                left, low = across * outer[0] + up * outer[2] + outer[4], across * outer[1] + up * outer[3] + outer[5]
                grown = abs((outer[0] * outer[3] - outer[1] * outer[2]) * (inner[0] * inner[3] - inner[1] * inner[2])) ** 0.5
                bits.append((bit, float(size * grown), float(left), float(low)))
            elif bits:
                bits.append((bit, *bits[-1][1:]))


def _join(bits: list[Line]) -> Line:
    """Return the line that these make, with the size and place of most of its letters."""
    _, size, _, base = max(bits, key=lambda each: len(each[0].strip()))
    words = list[str]()
    bits = [each for each in bits if each[0]]
    for (bit, own, _, low), after in zip(bits, [*(bit for bit, *_ in bits[1:]), ""], strict=True):
        sign = SIGN.fullmatch(bit.strip()) if own < SMALLER * size and low > base else None
        if sign:
            before, behind = bit[: len(bit) - len(bit.lstrip())], bit[len(bit.rstrip()) :]
            if words and _SET_OFF.match(behind + after):
                before, words[-1] = "", words[-1].rstrip()
            bit = f"{before}{RAISED}{sign[1]}{LOWERED}{behind}"
        words.append(bit)
    return _CONTROLS.sub("", "".join(words)).strip(), round(size, 1), round(bits[0][2], 1), round(base, 1)


def _list_contents(reader: Any, entries: Any, level: int) -> Iterator[tuple[int, str, int, float | None]]:
    """Yield the entries of the table of contents: how deep, the title, the page from 0, and how high on it."""
    for entry in entries:
        if isinstance(entry, list):
            yield from _list_contents(reader, entry, level + 1)
            continue
        page = reader.get_destination_page_number(entry)
        if page is not None and page >= 0:
            yield level, _CONTROLS.sub("", str(entry.title)), page, None if entry.top is None else float(entry.top)


def _read_name(told: Any, name: str) -> str:
    try:
        return _CONTROLS.sub("", str(getattr(told, name, None) or ""))
    except Exception:  # of a name that is none
        return ""


def _word(fault: Exception) -> str:
    return _CONTROLS.sub("", str(fault))[:200] or type(fault).__name__


if __name__ == "__main__":
    main()
