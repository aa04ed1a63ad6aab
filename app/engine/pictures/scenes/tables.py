"""Make the grammar of a painter's card into phrases with their meanings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

LONGEST: Final = 6
"""A phrase has at most so many words."""
ARTICLES: Final = ("a", "an", "the")


class Mark(NamedTuple):
    """A piece of meaning."""

    slot: str
    value: str = ""
    many: bool = False
    beside: bool = False
    """True: it is said with another word, so that it takes no colour, size or place from around it."""
    thing: str = ""
    """It is this noun if it has a number, a colour or a size: clouds are weather, two clouds are things."""


class Entry(NamedTuple):
    marks: tuple[Mark, ...]
    source: str
    """A word of the captions is "taught"; "also" means the same; "near" is the nearest there is."""


Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    grammar: Mapping[str, Any]
    phrases: dict[Words, Entry]
    single: dict[str, list[str]] = field(default_factory=dict)
    """First letters lead to single words."""

    def find(self, words: Words) -> Entry | None:
        """Find a phrase; of things also as many of them."""
        found = self.phrases.get(words)
        if found is not None:
            return found
        for one in _singulars(words[-1]):
            found = self.phrases.get((*words[:-1], one))
            if found is not None and len(found.marks) == 1 and found.marks[0].slot in ("noun", "weather", "mountains"):
                return Entry((found.marks[0]._replace(many=True),), "also" if found.source == "taught" else found.source)
        return None


def _singulars(word: str) -> list[str]:
    if len(word) < 4 or not word.endswith("s"):
        return []
    ends = [("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", "")]
    return [word.removesuffix(end) + one for end, one in ends if word.endswith(end)]


def read_card(folder: Path) -> Mapping[str, Any]:
    """Read a starter's card; again only if its file has changed."""
    return _read_card(*_version(folder))


def read_tables(folder: Path) -> Tables:
    return _read_tables(*_version(folder))


def _version(folder: Path) -> tuple[Path, int, int]:
    path = folder / "starter.json"
    facts = path.stat()
    return path, facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=4)
def _read_card(path: Path, _changed_ns: int, _size: int) -> Mapping[str, Any]:
    card: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return card


@lru_cache(maxsize=4)
def _read_tables(path: Path, changed_ns: int, size: int) -> Tables:
    return make_tables(_read_card(path, changed_ns, size)["grammar"])


def make_tables(grammar: Mapping[str, Any]) -> Tables:
    phrases: dict[Words, Entry] = {}

    def put(mark: Mark, spoken: Iterable[str]) -> None:
        for phrase in spoken:
            words = _bare(phrase)
            phrases.setdefault(words, Entry((mark,), "taught"))
            if mark.slot == "time":  # "night" alone
                phrases.setdefault(words[-1:], Entry((mark,), "taught"))

    for kind, noun in grammar["nouns"].items():
        put(Mark("noun", kind), [kind])
        clouds = noun["plural"] in grammar["weather"]
        put(Mark("weather", noun["plural"], thing=kind) if clouds else Mark("noun", kind, many=True), [noun["plural"]])
    for colour in grammar["colours"]:
        put(Mark("colour", colour), [colour])
    for slot in ("size", "count", "place", "time", "ground", "weather", "style"):
        for value, spoken in grammar[slot].items():
            put(Mark(slot, value), spoken)
    for value, spoken in grammar["relation"].items():
        put(Mark("relation", value), [spoken])
    put(Mark("mountains", "mountains"), grammar["mountains"])
    put(Mark("background"), ["background", "backdrop"])
    put(Mark("outdoors"), grammar["outdoors"])
    taught = dict(phrases)
    for source in ("also", "near"):
        for phrase, meaning in grammar[source].items():
            phrases.setdefault(tuple(phrase.split()), Entry(_marks_of(meaning, taught), source))
    single = defaultdict(list)
    for words in phrases:
        if len(words) == 1 and phrases[words].source != "near":
            single[words[0][0]].append(words[0])
    return Tables(grammar, phrases, dict(single))


def _bare(phrase: str) -> Words:
    words = tuple(phrase.lower().split())
    return words[1:] if len(words) > 1 and words[0] in ARTICLES else words


def _marks_of(meaning: str, taught: Mapping[Words, Entry]) -> tuple[Mark, ...]:
    """Read a meaning, made of taught phrases alone."""
    beside, words = meaning.startswith("with "), _bare(meaning.removeprefix("with "))
    found: list[Mark] = []
    while words:
        length = next((n for n in range(min(LONGEST, len(words)), 0, -1) if words[:n] in taught), 0)
        if not length:
            raise ValueError(f"{meaning!r} says {words[0]!r}, which no caption says")
        found += [mark._replace(beside=beside, thing="") for mark in taught[words[:length]].marks]
        words = words[length:]
    return tuple(found)
