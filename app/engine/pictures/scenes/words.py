"""Split a prompt into phrases: those a painter knows, and the small words of English that tie them together."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.engine.pictures.scenes.small_words import NUMBERS, ROLE_OF
from app.engine.pictures.scenes.tables import LONGEST, Entry, Mark, Tables

MOST_UNKNOWN: Final = 40
"""So many words of a prompt are compared with known ones."""
LONG: Final = 7
"""In words of so many letters any one may be wrong; shorter ones are too often other words."""
SPELT_ALIKE: Final = 0.82
SIMILAR: Final = 0.6
_WEIGHT: Final = re.compile(r":\s*+[\d.]++\s*+\)")
_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*|[.,;:!?\n&+]")
_DOUBLED: Final = re.compile(r"(.)\1+")
_POSSESSIVE: Final = re.compile(r"['\u2019]s$")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Some words of a prompt, where they stand, and what they mean or do."""

    begin: int
    end: int
    typed: str
    role: str
    """It is "mark" if it means something to the painter, or "unknown", "comma", "stop", or one of the small words' roles."""
    marks: tuple[Mark, ...] = ()
    source: str = ""
    """It is as an Entry's, or "slip": a known word was misspelt, which is painted as that word."""
    near: tuple[str, ...] = ()


def split_phrases(prompt: str, tables: Tables) -> list[Phrase]:
    """Split at the longest known phrases; brackets and weights are no part of it."""
    plain = _WEIGHT.sub(lambda weight: " " * len(weight[0]), prompt)
    tokens = [(*each.span(), _bare(each[0].lower())) for each in _TOKEN.finditer(plain)]
    found: list[Phrase] = []
    compared: dict[str, tuple[Entry | None, tuple[str, ...]]] = {}
    at = 0
    while at < len(tokens):
        begin, end, word = tokens[at]
        if not word[0].isalnum():
            role = "and" if word in "&+" else "comma" if word in ",;:" else "stop"
            found.append(Phrase(begin, end, word, role))
            at += 1
            continue
        length, entry = _longest([each[2] for each in tokens[at : at + LONGEST]], tables)
        end = tokens[at + length - 1][1]
        typed = plain[begin:end]
        if entry is not None:
            nearest = (_say_marks(entry.marks, tables),) if entry.source == "near" else ()
            found.append(Phrase(begin, end, typed, "mark", entry.marks, entry.source, nearest))
        elif (number := _read_number(word)) is not None:
            found.append(Phrase(begin, end, typed, "mark", (number,), "also"))
        elif word in ROLE_OF:
            found.append(Phrase(begin, end, typed, ROLE_OF[word]))
        else:
            if word not in compared:
                compared[word] = _compare(word, tables) if len(compared) < MOST_UNKNOWN else (None, ())
            entry, near = compared[word]
            role, marks, source = ("mark", entry.marks, "slip") if entry else ("unknown", (), "near")
            found.append(Phrase(begin, end, typed, role, marks, source, near))
        at += length
    return found


def _bare(word: str) -> str:
    return _POSSESSIVE.sub("", word).replace("'", "").replace("\u2019", "")


def _longest(words: list[str], tables: Tables) -> tuple[int, Entry | None]:
    """Return how many of these words are one phrase, and its entry; a phrase does not go over a mark of punctuation."""
    most = next((n for n, word in enumerate(words) if not word[0].isalnum()), len(words))
    for length in range(most, 1, -1):
        if (found := tables.phrases.get(tuple(words[:length])) or tables.find(tuple(words[:length]))) is not None:
            return length, found
        bare = tuple(word for word in words[:length] if word != "the")  # "in upper left" for "in the upper left"
        if (
            len(bare) < length
            and words[0] != "the"
            and words[length - 1] != "the"
            and (found := tables.find(bare)) is not None
            and len(bare) > 1
        ):
            return length, found
    return 1, tables.find((words[0],))


def _read_number(word: str) -> Mark | None:
    """Read a count; one above the most is kept, so that it can be named."""
    value = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else NUMBERS.get(word, 0)
    return Mark("count", str(value)) if value > 1 else None


def _compare(word: str, tables: Tables) -> tuple[Entry | None, tuple[str, ...]]:
    """Return what a misspelt word means, if it is clear, and the known words that are spelt alike."""
    known = [each for each in tables.single.get(word[0], ()) if abs(len(each) - len(word)) < 4 and len(word) > 2]
    alike = difflib.get_close_matches(word, known, 3, SIMILAR)  # of words with the same first letter: all would take ten times as long
    meant = next((each for each in (*alike, *known) if _is_slip(word, each)), None)
    return (tables.find((meant,)) if meant else None), tuple(alike)


def _is_slip(word: str, known: str) -> bool:
    """Whether a word is a known one misspelt, rather than another: a "bride" is no bridge, and a "heat" no heart."""
    if len(word) < 4:
        return False
    if _DOUBLED.sub(r"\1", word) == _DOUBLED.sub(r"\1", known):
        return True
    if len(known) < 4:  # nor is a "fire" a fir
        return False
    if abs(len(word) - len(known)) > 1:
        return len(word) >= LONG + 2 and difflib.SequenceMatcher(None, word, known).ratio() >= SPELT_ALIKE
    begin = _count_same(word, known)
    end = _count_same(word[begin:][::-1], known[begin:][::-1])
    one, other = word[begin : len(word) - end], known[begin : len(known) - end]
    swapped = len(one) == 2 and one == other[::-1]
    vowel = len(one + other) == 1 and (one + other) in "aeiou"
    return swapped or vowel or (len(word) >= LONG and len(one) <= 1 and len(other) <= 1)


def _count_same(one: str, other: str) -> int:
    """Count the letters with which both begin."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _say_marks(marks: tuple[Mark, ...], tables: Tables) -> str:
    return " ".join(_say_mark(mark, tables) for mark in marks)


def _say_mark(mark: Mark, tables: Tables) -> str:
    if mark.slot == "noun" and mark.many:
        return str(tables.grammar["nouns"][mark.value]["plural"])
    spoken = tables.grammar.get(mark.slot, {})
    return str(spoken[mark.value][0]) if isinstance(spoken, dict) and mark.value in spoken and mark.slot != "relation" else mark.value


def list_marked(phrases: list[Phrase]) -> Iterator[Phrase]:
    """List the phrases that are not known, in order."""
    return (each for each in phrases if each.role == "unknown" or each.source in ("near", "slip"))
