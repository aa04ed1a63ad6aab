"""Lines of a terminal, in which a Chinese or Japanese character takes two places and may stand before a break."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

OPENING: Final = "「『（“《"
"""No line ends with one of these."""
CLOSING: Final = "、。，．：；！？）」』”》…ー々っゃゅょッャュョ～"
"""No line begins with one of these."""


def count_places(text: str) -> int:
    return sum(map(_count, text))


def _count(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int) -> str:
    return text + " " * (width - count_places(text))


def fit_line(line: str, width: int) -> str:
    """Cut and fill a line to a terminal's width."""
    while count_places(line) > width:
        line = line[:-1]
    return pad(line, width)


def wrap(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    """Break a text into lines, the first and all later ones indented so; a word that is wider stays whole."""
    lines, line, begun = list[str](), first, False
    parts = re.split(r"(\s+)", text)
    for blank, word in zip(("", *parts[1::2]), parts[::2], strict=True):
        for number, piece in enumerate(_cut(word) if word else ()):
            blank = blank if number == 0 else ""
            if begun and count_places(line + blank + piece) > width:
                lines.append(line)
                line, blank = later, ""
            line, begun = line + blank + piece, True
    return [*lines, line] if begun else []


def _cut(word: str) -> list[str]:
    """Cut a word wherever a line may break: beside wide characters, but for marks that belong to what is before or after them."""
    pieces = [word[:1]]
    for before, after in pairwise(word):
        wide = _count(before) + _count(after) > 2
        if wide and before not in OPENING and after not in CLOSING:
            pieces.append(after)
        else:
            pieces[-1] += after
    return pieces
