"""Find who speaks in a script that names its speakers as a play does, "Anna: ...", and give each one of the two voices. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from app.engine.speech.text.script_marks import MARK

_WORD: Final = r"[^\W\d_][\w.'’-]{0,19}+"
_AT_LINE: Final = re.compile(rf"^[ \t]*+({_WORD}(?: {_WORD}){{0,2}})(?::(?=\s)|：)[ \t]*+", re.MULTILINE)
_AFTER_SENTENCE: Final = re.compile(rf"(?<=[.!?\"”])[ \t]++({_WORD}(?: {_WORD}){{0,2}})(?::(?=\s)|：)[ \t]*+")
NAMES_MOST: Final = 12
"""More are a list, not a conversation."""


@dataclass(frozen=True, slots=True)
class NamedSpeakers:
    voices: dict[str, int]
    """Each name and its speaker, 1 or 2, in the order in which they come."""
    tags: tuple[tuple[int, int, int], ...]
    """Begin and end of each name in the text, with its colon; and its speaker."""


def find_named(text: str) -> NamedSpeakers | None:
    """Return the speakers of a script that begins with a name and has at least two. A script with speakers' tags, or one that merely
    has a colon in a sentence, has none."""
    if any(each[1] for each in MARK.finditer(text)):
        return None
    lines = [each for each in _AT_LINE.finditer(text) if _is_name(each[1])]
    if not lines or text[: lines[0].start()].strip():
        return None
    known = {each[1].casefold() for each in lines}
    alone = "\n" not in text.strip()
    within = [each for each in _AFTER_SENTENCE.finditer(text) if _is_name(each[1]) and (alone or each[1].casefold() in known)]
    found = sorted((*lines, *within), key=lambda each: each.start())
    order = [each[1].casefold() for each in found]
    if not 2 <= len(set(order)) <= NAMES_MOST:
        return None
    voices = _assign_voices(order)
    names = {each[1].casefold(): each[1] for each in reversed(found)}
    return NamedSpeakers(
        {names[each]: voices[each] for each in dict.fromkeys(order)},
        tuple((each.start(1), each.end(), voices[each[1].casefold()]) for each in found),
    )


def _is_name(words: str) -> bool:
    """Tell whether each word begins with a capital, or with a letter of a script that has none."""
    return all(word[0].isupper() or not word[0].islower() for word in words.split())


def _assign_voices(order: list[str]) -> dict[str, int]:
    """Give each name one of two voices, so that neighbours differ as often as they can."""
    beside = Counter(frozenset(pair) for pair in pairwise(order) if pair[0] != pair[1])
    turns = Counter(order)
    voices: dict[str, int] = {}
    for name in dict.fromkeys(order):

        def cost(voice: int, name: str = name) -> tuple[int, int]:
            mates = [other for other in voices if voices[other] == voice]
            return sum(beside[frozenset((name, other))] for other in mates), sum(turns[other] for other in mates)

        voices[name] = min((1, 2), key=cost)
    return voices
