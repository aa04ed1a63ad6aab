"""Look ahead in a prompt: what a colour, a number or a place belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.engine.pictures.scenes.small_words import PREDICATES
from app.engine.pictures.scenes.words import Phrase

OF_A_THING: Final = ("colour", "size", "count")
FAR: Final = 12
"""So many phrases ahead a word may belong to a thing."""


def look_ahead(phrases: Sequence[Phrase], at: int) -> tuple[str, int]:
    """Return what a colour, size or number belongs to, "" if nothing follows, and where the search ended."""
    predicate = at > 0 and phrases[at - 1].typed.lower() in PREDICATES
    unknown, j = False, at + 1
    while j < min(len(phrases), at + FAR):
        phrase = phrases[j]
        slot = phrase.marks[0].slot if phrase.marks else ""
        if slot in ("place", "relation"):
            break
        if slot and slot not in OF_A_THING:
            return "noun" if phrase.marks[0].thing else slot, j
        if phrase.role in ("and", "comma"):
            after = phrases[j + 1].marks if j + 1 < len(phrases) else ()
            if predicate or not after or after[0].slot not in ("colour", "size"):
                break
        elif phrase.role == "unknown":
            unknown = True
        elif phrase.role not in ("mark", "silent"):
            break
        j += 1
    return "unknown" if unknown else "", j


def another_follows(phrases: Sequence[Phrase], at: int) -> bool:
    """Whether "and a" or "and two" stands here: "a red and a blue circle"."""
    if len(phrases) < at + 2 or phrases[at].role not in ("and", "comma"):
        return False
    after = phrases[at + 1]
    return after.role in ("article", "one") or bool(after.marks and after.marks[0].slot == "count")


def thing_follows(phrases: Sequence[Phrase], at: int) -> bool:
    for j in range(at + 1, min(len(phrases), at + FAR)):
        phrase = phrases[j]
        if any(mark.slot == "noun" for mark in phrase.marks):
            return True
        if phrase.role in ("stop", "and", "break") or (phrase.role == "comma" and not (j == at + 1 and phrase.typed == ":")):
            return False
    return False
