"""Parse a prompt with the grammar of the starter painter's card: things with attributes, the ground, the time. Pure."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

ALIKE: Final = {
    "ball": "circle",
    "disc": "circle",
    "disk": "circle",
    "dot": "circle",
    "round": "circle",
    "sphere": "circle",
    "box": "square",
    "cube": "square",
    "block": "square",
    "ship": "boat",
    "yacht": "boat",
    "hut": "house",
    "home": "house",
    "cabin": "house",
    "violet": "purple",
    "crimson": "red",
    "scarlet": "red",
    "rose": "pink",
    "golden": "yellow",
    "gold": "yellow",
    "navy": "blue",
    "huge": "big",
    "tiny": "small",
    "lake": "sea",
    "water": "sea",
    "beach": "dunes",
    "grass": "green hills",
    "field": "green hills",
    "countryside": "green hills",
    "hill": "green hills",
    "dawn": "at sunset",
    "noon": "by day",
    "midnight": "at night",
    "forest": "trees",
    "mountain": "mountains",
    "cloud": "clouds",
    "fir": "pine",
    "christmas": "pine",
    "center": "in the middle",
    "four": "three",
    "five": "three",
    "six": "three",
    "seven": "three",
    "eight": "three",
    "nine": "three",
    "ten": "three",
    "several": "three",
    "many": "three",
    "beside": "left of",
    "near": "left of",
    "next": "left of",
    "beneath": "below",
    "underneath": "below",
    "dark": "at night",
}
"""Words outside the vocabulary, mapped to the nearest taught word."""
SILENT: Final = frozenset((
    "a", "an", "the", "of", "with", "and", "on", "in", "to", "at", "picture", "drawing", "illustration", "painting", "behind",
    "background", "please", "me", "i", "want", "paint", "draw", "show", "make", "is", "are", "there", "this", "that", "it", "some", "image", "scene",
    "something", "thing", "things", "one", "1", "by",
))  # fmt: skip
"""Words without a meaning of their own."""
SPELT_ALIKE: Final = 0.82
"""Just above 0.8, where "horse" would be a misspelt "house"."""
UNKNOWN_MOST: Final = 100
"""So many unknown words of a prompt are compared with the taught ones, which takes a tenth of a millisecond each."""

Mark = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A few words of a prompt as they were typed, and their meaning to the painter."""

    typed: str
    mark: Mark | None
    taught: bool
    """True for words of the vocabulary; False for words that were replaced or ignored."""


@dataclass(frozen=True, slots=True)
class Item:
    """A thing in a prompt, with its attributes; empty: not given."""

    kind: str
    colour: str = ""
    size: str = ""
    count: int = 1
    places: tuple[str, ...] = ()


@dataclass(slots=True)
class PromptReading:
    items: list[Item] = field(default_factory=list)
    background: str = ""
    relation: str = ""
    time: str = ""
    ground: str = ""
    extras: list[str] = field(default_factory=list)
    exact: bool = True
    """Whether nothing was replaced, repeated, denied or left over."""


def read_marks(grammar: Mapping[str, Any]) -> dict[tuple[str, ...], Mark]:
    """Return the meaning of each phrase of the grammar."""
    found: dict[tuple[str, ...], Mark] = {("background",): ("background", ""), ("no",): ("no", ""), ("without",): ("no", "")}

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
    """Return the length of the longest known phrase that starts here, and its mark."""
    for length in range(min(7, len(words) - at), 0, -1):
        mark = marks.get(tuple(words[at : at + length]))
        if mark is not None:
            return length, mark
    return 1, None


def find_taught(word: str, single: Sequence[str]) -> list[str]:
    """Find the taught words nearest to an unknown one, by meaning or by the spelling of `single` words; empty if neither helps."""
    if word.isdigit() and len(word) < 3:
        return ["three"]
    alike = ALIKE.get(word) or ALIKE.get(word.removesuffix("s"), "")
    if alike:
        return alike.split()
    return difflib.get_close_matches(word, single, 1, SPELT_ALIKE) if len(word) > 3 else []


def split_phrases(prompt: str, grammar: Mapping[str, Any]) -> list[Phrase]:
    """Split a prompt into phrases in the order typed; ignored words come last."""
    marks = read_marks(grammar)
    taught = {word for phrase in marks for word in phrase} | SILENT
    told: list[str] = []
    typed: list[str] = []
    unknown: list[Phrase] = []
    single = [phrase[0] for phrase in marks if len(phrase) == 1]
    nearest: dict[str, list[str]] = {}
    for word in re.findall(r"\w+", prompt.lower()):
        if word not in taught and word not in nearest:
            nearest[word] = find_taught(word, single if len(nearest) < UNKNOWN_MOST else ())
        known = nearest.get(word, [word])
        told += known
        typed += [word] * len(known)
        unknown += [] if known else [Phrase(word, None, False)]
    found, at = [], 0
    while at < len(told):
        length, mark = _match(told, at, marks)
        own = dict.fromkeys(typed[at : at + length])
        found.append(Phrase(" ".join(own), mark, taught.issuperset(own)))
        at += length
    return found + unknown


def find_lost(prompt: str, caption: str, grammar: Mapping[str, Any]) -> list[str]:
    """List what the caption lost of the prompt, in the prompt's words: replaced, left out or unknown."""
    said = Counter(_fold_plural(each.mark) for each in split_phrases(caption, grammar) if each.mark)
    missing: list[str] = []
    denied = False
    for each in split_phrases(prompt, grammar):
        slot = each.mark[0] if each.mark else ""
        if denied and slot in ("kind", "kinds", "extra"):
            denied = False
            missing += [each.typed] if said[_fold_plural(each.mark)] else []
        elif slot == "no":
            denied = True
        elif each.mark is None or not each.taught:
            missing += [] if each.typed in SILENT else [each.typed]
            said[_fold_plural(each.mark)] -= 1
        elif said[_fold_plural(each.mark)] > 0:
            said[_fold_plural(each.mark)] -= 1
        elif each.mark != ("background", ""):
            missing.append(each.typed)
    return list(dict.fromkeys(missing))


def _fold_plural(mark: Mark | None) -> Mark | None:
    """Treat one thing and many of it as the same."""
    return ("kind", mark[1]) if mark and mark[0] == "kinds" else mark


def read_prompt(prompt: str, grammar: Mapping[str, Any]) -> PromptReading:
    """Parse as much of the prompt as the grammar covers."""
    found, denied, open_place = PromptReading(), False, ""
    colour = size = ""
    count = 1
    for each in split_phrases(prompt, grammar):
        found.exact &= each.taught and (each.mark is not None or each.typed in SILENT)
        if each.mark is None:
            continue
        slot, value = each.mark
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
    if not (found.items or found.ground or found.time or found.extras) and (colour or size or count > 1 or open_place or found.background):
        found.items.append(Item(grammar["shapes"][0], colour, size, count, (open_place,) if open_place else ()))
        found.exact = False
    elif colour and not found.background:
        found.background, found.exact = colour, False
    found.exact &= not (size or open_place or (colour and found.background != colour))
    return found
