"""Read a prompt by the grammar of the starter painter's card: things with what is said of them, the ground, the time. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

ALIKE: Final = {
    "ball": "circle", "disc": "circle", "disk": "circle", "dot": "circle", "round": "circle", "sphere": "circle", "box": "square", "cube": "square",
    "block": "square", "ship": "boat", "yacht": "boat", "hut": "house", "home": "house", "cabin": "house", "violet": "purple", "crimson": "red",
    "scarlet": "red", "rose": "pink", "golden": "yellow", "gold": "yellow", "navy": "blue", "huge": "big", "tiny": "small", "lake": "sea", "water": "sea",
    "beach": "dunes", "grass": "green hills", "field": "green hills", "countryside": "green hills", "hill": "green hills", "dawn": "at sunset", "noon": "by day",
    "midnight": "at night", "forest": "trees", "mountain": "mountains", "cloud": "clouds", "fir": "pine", "christmas": "pine", "center": "in the middle",
    "four": "three", "five": "three", "six": "three", "beside": "left of", "near": "left of", "next": "left of", "beneath": "below", "underneath": "below",
    "dark": "at night",
}  # fmt: skip
"""Words that it was never taught, by what they come nearest to."""
SILENT: Final = frozenset((
    "a", "an", "the", "of", "with", "and", "on", "in", "to", "at", "picture", "drawing", "illustration", "painting", "behind",
    "background",
))  # fmt: skip
"""Words that add nothing of their own."""

Mark = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """One phrase of a prompt: what it names, and what it says of it. Empty is left open."""

    kind: str
    colour: str = ""
    size: str = ""
    count: int = 1
    places: tuple[str, ...] = ()


@dataclass(slots=True)
class Read:
    items: list[Item] = field(default_factory=list)
    background: str = ""
    relation: str = ""
    time: str = ""
    ground: str = ""
    extras: list[str] = field(default_factory=list)
    exact: bool = True
    """Whether nothing was misspelt, doubled, denied or left over."""


def _marks(grammar: Mapping[str, Any]) -> dict[tuple[str, ...], Mark]:
    """What each phrase of the taught language stands for."""
    found: dict[tuple[str, ...], Mark] = {
        ("background",): ("background", ""),
        ("no",): ("no", ""),
        ("without",): ("no", ""),
    }

    def put(slot: str, value: str, phrases: Iterable[str]) -> None:
        for phrase in phrases:
            words = tuple(re.findall(r"[a-z0-9]+", phrase))
            found[words] = (slot, value)
            if words[0] in ("a", "the") and len(words) > 1:
                found.setdefault(words[1:], (slot, value))

    for colour in grammar["colours"]:
        put("colour", colour, [colour])
    for shape in grammar["shapes"]:
        put("kind", shape, [shape])
        put("kinds", shape, [shape + "s"])
    for kind, phrases in grammar["things"].items():
        put("kind", kind, [*phrases, kind])
        put("kinds", kind, [phrase + "s" for phrase in phrases])
    for slot in ("size", "count", "place", "relation", "time", "ground", "extra"):
        for value, phrases in grammar[slot].items():
            put(slot, value, phrases)
    put("row", "", ["in a row"])
    for phrase, mark in list(found.items()):  # "night" alone, "hills" alone
        if mark[0] in ("time", "ground"):
            found.setdefault(phrase[-1:], mark)
    return found


def _match(words: Sequence[str], at: int, marks: Mapping[tuple[str, ...], Mark]) -> tuple[int, Mark | None]:
    """How many words from here make the longest phrase, and what it stands for."""
    for length in range(min(7, len(words) - at), 0, -1):
        mark = marks.get(tuple(words[at : at + length]))
        if mark is not None:
            return length, mark
    return 1, None


def _known(word: str, marks: Mapping[tuple[str, ...], Mark]) -> list[str]:
    """A strange word as the taught words that it means, by its sense or its spelling; none where neither helps."""
    alike = ALIKE.get(word) or ALIKE.get(word.removesuffix("s"), "")
    if alike:
        return alike.split()
    spelt = (
        difflib.get_close_matches(word, [phrase[0] for phrase in marks if len(phrase) == 1], 1, 0.8)
        if len(word) > 3
        else []
    )
    return spelt


def read(prompt: str, grammar: Mapping[str, Any]) -> Read:
    """What the prompt says, as far as it is understood."""
    words, marks = re.findall(r"[a-z0-9]+", prompt.lower()), _marks(grammar)
    taught = {word for phrase in marks for word in phrase} | SILENT
    found, denied, open_place = Read(), False, ""
    told: list[str] = []
    for word in words:
        known = [word] if word in taught else _known(word, marks)
        found.exact &= word in taught
        told += known
    colour = size = ""
    count, at = 1, 0
    while at < len(told):
        length, mark = _match(told, at, marks)
        word, at = told[at], at + length
        if mark is None:
            found.exact &= word in SILENT
            continue
        slot, value = mark
        if slot == "no":
            denied, found.exact = True, False
        elif slot in ("kind", "kinds", "extra") and denied:
            denied, colour, size, count = False, "", "", 1
        elif slot in ("kind", "kinds"):
            found.exact &= (slot == "kinds") == (count > 1)
            count = max(count, 2) if slot == "kinds" else count
            found.items.append(Item(value, colour, size, count, (open_place,) if open_place else ()))
            colour, size, count, open_place = "", "", 1, ""
        elif slot == "place" and found.items and len(found.items[-1].places) < found.items[-1].count:
            last = found.items[-1]
            found.items[-1] = replace(last, places=(*last.places, value))
        elif slot == "place":
            open_place = value
        elif slot == "background":
            found.exact &= bool(colour) and not found.background
            found.background, colour = colour or found.background, ""
        elif slot == "colour":
            found.exact &= not colour
            colour = value
        elif slot == "size":
            size = value
        elif slot == "count":
            count = int(value)
        elif slot == "extra":
            found.extras.append(value)
        elif slot in ("relation", "time", "ground"):
            found.exact &= not getattr(found, slot) and (slot != "relation" or len(found.items) == 1)
            setattr(found, slot, value)
    if colour and not found.background:
        found.background, found.exact = colour, False
    found.exact &= not (size or open_place or (colour and found.background != colour))
    return found
