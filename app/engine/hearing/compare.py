"""Compare the words heard in a part with those meant, by their sounds and not their letters: what is lost, doubled, added or wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from app.engine.hearing.heard import Meant, is_wide
from app.engine.speech.text.sounds import VOWELS
from app.engine.speech.text.written_out import write_out

Kind = Literal["lost", "doubled", "added", "wrong"]
Spell = Callable[[str], str]
"""Gives a word's sounds, one character each."""
_TAG: Final = re.compile(r"\[[^\[\]]*+\]|\([^()]*+\)")
_WORD: Final = re.compile(r"[\u3000-\u9fff]|[^\W_]+(?:['\u2019][^\W_]+)*")
_KINDS_OF_SOUND: Final = {sign: "vowel" for pair in VOWELS.values() for sign in pair} | {
    sign: kind for kind in ("pbtdkg", "fvTDszSZhcj", "mnN", "lrw$y") for sign in kind if sign not in "".join(VOWELS.values())
}
_GROUPS: Final = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2))
"""How many words on either side may be said alike: "everyone" and "every one"."""
ALIKE: Final = 0.5
"""The share of a word's sounds that may differ for it to be the same word: a voice has its accent, and a recogniser its spelling."""
SAME: Final = 0.2
"""The same of a word that was said twice."""
NEAR: Final = 0.4
"""What it costs to take a sound for one of its kind."""
STRICT: Final = 3.0
"""How much more a difference counts where several words are taken together: a small word would be lost in a long one."""
OTHER, WITHOUT = 8.0, 3.0
"""Logarithms of how much likelier a text has to be with what was written in place of a word, and without a word."""
TWICE, TWICE_WRITTEN = -5.5, -7.0
"""The same of a word said twice. Nobody expects it, so that it is never likely."""
LONG: Final = 2
"""Words that were added; one alone may be the recogniser's."""
APART: Final = 0.6
"""What it costs besides its sounds that a word is missing or too much."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Words that were not said as meant: those from `first` up to before `last`, of the words meant; none where something was added there."""

    kind: Kind
    first: int
    last: int
    heard: str
    """What was heard in their place."""


def list_words(text: str) -> list[str]:
    """List the words that are said of a text; tags and sounds in brackets are none."""
    return _WORD.findall(_TAG.sub(" ", text))


def mark(meant: Sequence[Meant], heard: str, spell: Spell) -> list[Mark]:
    """List where what was heard is not what was meant: where the recogniser finds another text much likelier than it would without hearing
    anything. What it writes is no proof, as it writes what it expects. Words that follow one another are one mark."""
    wrote = compare([each.text for each in meant], heard, spell)
    other = {place: each for each in wrote for place in range(each.first, each.last)}
    again = {each.first for each in wrote if each.kind == "doubled"}
    kinds: list[Kind | None] = []
    for place, word in enumerate(meant):
        seen = other.get(place)
        if word.without > WITHOUT or (seen is not None and word.other > OTHER):
            kinds.append("wrong" if seen is not None and seen.heard else "lost")
        elif word.twice > TWICE or (word.twice > TWICE_WRITTEN and {place, place + 1} & again):
            kinds.append("doubled")
        else:
            kinds.append(None)
    marks, place = list[Mark](), 0
    for kind, row in groupby(kinds):
        last = place + sum(1 for _ in row)
        if kind is not None:
            said = dict.fromkeys(each.heard for at in range(place, last) if (each := other.get(at)) is not None)
            marks.append(Mark(kind, place, last, " ".join(said)))
        place = last
    long = [each for each in wrote if each.kind in ("added", "doubled") and len(each.heard.split()) >= LONG and each.first == each.last]
    return sorted(
        [*marks, *(each for each in long if not any(one.first <= each.first <= one.last for one in marks))], key=lambda one: one.first
    )


def compare(meant: Sequence[str], heard: str, spell: Spell) -> list[Mark]:
    """List where the words that a recogniser wrote do not sound as those meant; words that were added one after another are one mark."""
    other = list_words(heard if any(map(is_wide, heard)) else write_out(heard))
    marks: list[Mark] = []
    for first, last, begin, end in _pair(meant, other, spell):
        kind = _judge(meant, other, (first, last, begin, end), spell)
        said = " ".join(other[begin:end])
        if kind == "added" and marks and (marks[-1].first, marks[-1].last, marks[-1].kind) == (first, last, kind):
            marks[-1] = Mark(kind, first, last, f"{marks[-1].heard} {said}")
        elif kind is not None:
            marks.append(Mark(kind, first, last, said))
    return marks


def _judge(meant: Sequence[str], heard: Sequence[str], span: tuple[int, int, int, int], spell: Spell) -> Kind | None:
    first, last, begin, end = span
    if begin == end:
        return "lost" if _spell_all(meant[first:last], spell) else None
    said = _spell_all(heard[begin:end], spell)
    if first == last:
        beside = (heard[begin - 1 : begin], heard[end : end + 1])
        return "doubled" if any(each and _is_alike(_spell_all(each, spell), said, SAME) for each in beside) else "added"
    return None if _is_alike(_spell_all(meant[first:last], spell), said) else "wrong"


def _spell_all(words: Sequence[str], spell: Spell) -> str:
    bare = (each for word in words for each in list_words(word))
    return "".join(spell(word.lower().replace("\u2019", "'")) or word for word in bare).replace(" ", "")


def _is_alike(one: str, other: str, most: float = ALIKE) -> bool:
    return measure(one, other) <= most * max(len(one), len(other))


def _pair(meant: Sequence[str], heard: Sequence[str], spell: Spell) -> list[tuple[int, int, int, int]]:
    """Pair words meant with words heard, at the least cost in sounds; one side of a pair is empty where a word is missing or too much."""
    own, other = ([_spell_all([word], spell) for word in words] for words in (meant, heard))
    rows, columns = len(own) + 1, len(other) + 1
    best = [[0.0] * columns for _ in range(rows)]
    came = [[(0, 0)] * columns for _ in range(rows)]
    for row in range(rows):
        for column in range(columns):
            if not (row or column):
                continue
            ways = []
            if row:
                ways.append((best[row - 1][column] + (len(own[row - 1]) + APART if own[row - 1] else 0), (1, 0)))
            if column:
                ways.append((best[row][column - 1] + len(other[column - 1]) + APART, (0, 1)))
            for down, across in _GROUPS:
                if down <= row and across <= column:
                    cost = measure("".join(own[row - down : row]), "".join(other[column - across : column]))
                    ways.append((best[row - down][column - across] + cost * (1 if down == across == 1 else STRICT), (down, across)))
            best[row][column], came[row][column] = min(ways)
    pairs = []
    row, column = rows - 1, columns - 1
    while row or column:
        down, across = came[row][column]
        pairs.append((row - down, row, column - across, column))
        row, column = row - down, column - across
    return pairs[::-1]


def measure(one: str, other: str) -> float:
    """Return what differs between two rows of sounds: one for each that is missing, too much or another, less for one of its kind."""
    before = [float(place) for place in range(len(other) + 1)]
    for row, sound in enumerate(one, 1):
        now = [float(row)]
        for column, against in enumerate(other, 1):
            same = before[column - 1] + _differ(sound, against)
            now.append(min(same, before[column] + 1, now[-1] + 1))
        before = now
    return before[-1]


def _differ(one: str, other: str) -> float:
    if one == other:
        return 0.0
    kind = _KINDS_OF_SOUND.get(one)
    return NEAR if kind is not None and kind == _KINDS_OF_SOUND.get(other) else 1.0
