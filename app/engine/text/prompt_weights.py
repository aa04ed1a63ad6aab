"""Split a prompt into text and the weights written into it, (word:1.2). Pure: the window reads prompts, too."""

from __future__ import annotations

import re
from typing import Final

STRONGER: Final = 1.1
"""Factor of bare brackets: (word) once, ((word)) twice, [word] its inverse."""
_MARK: Final = re.compile(r"\\[()\[\]\\]|[()\[\]]|:\s*([0-4](?:\.\d+)?|\.\d+)\s*\)|[^\\()\[\]:]+|:|\\")
"""Weights go to 4.99: (at 12:30) is a time of day."""


def split_weights(prompt: str) -> list[tuple[str, float]]:
    """Return pieces of text with their weights, in order. Unmatched brackets are text."""
    found: list[tuple[str, float]] = []
    opened: list[tuple[str, int]] = []
    for match in _MARK.finditer(prompt):
        token, number = match.group(), match.group(1)
        if token in ("(", "["):
            opened.append((token, len(found)))
            found.append((token, 1.0))
        elif number is not None:
            if not _close(found, opened, "(", float(number)):
                found.append((token, 1.0))
        elif token == ")":
            if not _close(found, opened, "(", STRONGER):
                found.append((token, 1.0))
        elif token == "]":
            if not _close(found, opened, "[", 1 / STRONGER):
                found.append((token, 1.0))
        else:
            found.append((token[1:] if token[0] == "\\" and len(token) > 1 else token, 1.0))
    merged: list[tuple[str, float]] = []
    for text, weight in found:
        if merged and merged[-1][1] == weight:
            merged[-1] = (merged[-1][0] + text, weight)
        else:
            merged.append((text, weight))
    return merged


def _close(found: list[tuple[str, float]], opened: list[tuple[str, int]], bracket: str, weight: float) -> bool:
    if not opened or opened[-1][0] != bracket:
        return False
    start = opened.pop()[1]
    found[start:] = [(text, round(each * weight, 6)) for text, each in found[start + 1 :]]
    return True
