"""Compare the words heard in a part with those meant, by their sounds in their language and not by letters: what is lost, doubled, added or wrong.
Figures, signs and abbreviations count as the words that are said for them, on both sides. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final, Literal

from app.engine.hearing.heard import Meant, join_words
from app.engine.hearing.word_places import list_said
from app.engine.speech.text.sounds import VOWELS
from app.engine.speech.text.written_out import say_out

Kind = Literal["lost", "doubled", "added", "wrong"]
Spell = Callable[[str, str], str]
"""It gives the sounds of a word in a language, one character each."""
MARKS: Final = ".,;:!?\"'\u3002\uff0c\uff01\uff1f\uff1b\uff1a\u3001"
_TAG: Final = re.compile(r"\[[^\[\]]*+\]|\([^()]*+\)")
_WORD: Final = re.compile(r"[\u3000-\u9fff]|[^\W_]+(?:['\u2019][^\W_]+)*")
_KINDS_OF_SOUND: Final = {sign: "vowel" for pair in VOWELS.values() for sign in pair} | {
    sign: kind for kind in ("pbtdkg", "fvTDszSZhcj", "mnN", "lrw$y") for sign in kind if sign not in "".join(VOWELS.values())
}
_GROUPS: Final = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2))
"""So many words on either side may be said alike: "everyone" and "every one"."""
ALIKE: Final = 0.5
"""This share of a word's sounds may differ for it to be the same word: a voice has its accent, and a recogniser its spelling."""
SAME: Final = 0.2
"""No more may differ in a word that was said twice."""
NEAR: Final = 0.4
"""It costs this much to take a sound for one of its kind."""
STRICT: Final = 3.0
"""A difference counts this many times as much where several words are taken together: a small word would be lost in a long one."""
OTHER, WITHOUT = 8.0, 3.0
"""In logarithms, a text has to be so much likelier with what was written in place of a word, and without a word."""
UNLIKELY, NEARLY = -9.0, -4.0
"""A word that is less likely than the first is hardly heard: two signs together are enough, and the second counts in place of WITHOUT."""
TWICE, TWICE_WRITTEN, TWICE_ODD = -7.0, -8.5, -5.5
"""A word counts as said twice above the first, above the second where it was also written twice, and above the third where it or what is beside it
was written otherwise: a second one may then stand for that. Nobody expects it, so that it is never likely."""
LONG: Final = 2
"""So many words have to be added; one alone may be the recogniser's."""
APART: Final = 0.6
"""It costs this much besides its sounds that a word is missing or too much."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Words that were not said as meant: those from `first` up to before `last`, of the words meant; none where something was added there."""

    kind: Kind
    first: int
    last: int
    heard: str
    """This was heard in their place."""


def list_words(text: str) -> list[str]:
    """List the words that are said of a text; tags and sounds in brackets are none."""
    return _WORD.findall(_TAG.sub(" ", text))


def mark(meant: Sequence[Meant], heard: str, spell: Spell, language: str = "en") -> list[Mark]:
    """List where what was heard is not what was meant: where the recogniser finds another text much likelier than it would without hearing
    anything. What it writes is no proof, as it writes what it expects. Words that follow one another are one mark."""
    wrote = compare([each.text for each in meant], heard, spell, language)
    other = {place: each for each in wrote for place in range(each.first, each.last)}
    again, more = ({each.first for each in wrote if each.kind == kind} for kind in ("doubled", "added"))
    kinds: list[Kind | None] = []
    for place, word in enumerate(meant):
        seen = other.get(place)
        missing = word.without > (NEARLY if word.likely < UNLIKELY else WITHOUT)
        if missing or (seen is not None and word.other > OTHER):
            kinds.append("wrong" if seen is not None and seen.heard else "lost")
        elif word.twice > _least_twice(bool({place, place + 1} & again), seen is not None or bool({place, place + 1} & more)):
            kinds.append("doubled")
        else:
            kinds.append(None)
    marks, place = list[Mark](), 0
    for kind, row in groupby(kinds):
        last = place + sum(1 for _ in row)
        if kind is not None:
            said = dict.fromkeys(each.heard for at in range(place, last) if (each := other.get(at)) is not None)
            marks.append(Mark(kind, place, last, join_words([*said])))
        place = last
    long = [each for each in wrote if each.kind in ("added", "doubled") and len(list_said(each.heard)) >= LONG and each.first == each.last]
    return sorted(
        [*marks, *(each for each in long if not any(one.first <= each.first <= one.last for one in marks))], key=lambda one: one.first
    )


def _least_twice(written: bool, otherwise: bool) -> float:
    """Return above what a word counts as said twice."""
    return TWICE_WRITTEN if written else TWICE_ODD if otherwise else TWICE


def compare(meant: Sequence[str], heard: str, spell: Spell, language: str = "en") -> list[Mark]:
    """List where the words that a recogniser wrote do not sound as those meant; words that were added one after another are one mark."""
    wrote = list_said(heard)
    own, other = (_say(words, spell, language) for words in (meant, wrote))
    marks: list[Mark] = []
    for pairs in _gather(_pair(own, other), own, other):
        (first, _, begin, _), (_, last, _, end) = pairs[0], pairs[-1]
        kinds = [found for each in pairs if (found := _judge(own, other, each)) is not None]
        words, said = _take(meant, own, first, last), _take(wrote, other, begin, end)
        if not kinds or ({*kinds} == {"wrong"} and _list_figures(words) == _list_figures(said) != []):
            continue
        kind: Kind = "lost" if begin == end else kinds[0] if {*kinds} <= {"doubled"} or len(pairs) == 1 else "wrong"
        place = own[first].first if first < len(own) else len(meant)
        text = join_words(said).strip(MARKS)
        if kind == "added" and marks and (marks[-1].first, marks[-1].last, marks[-1].kind) == (place, place, kind):
            marks[-1] = Mark(kind, place, place, join_words([marks[-1].heard, text]))
        else:
            marks.append(Mark(kind, place, own[last - 1].last if first < last else place, text))
    return marks


def _take(written: Sequence[str], said: Sequence[_Said], first: int, last: int) -> Sequence[str]:
    """Return the written words of some that are said."""
    return written[said[first].first : said[last - 1].last] if first < last else ()


def _list_figures(words: Sequence[str]) -> list[str]:
    """Return all figures of some words: "1.250" is "1250", whichever of its words is said for it."""
    return [sign for word in words for sign in word if sign.isdigit()]


@dataclass(frozen=True, slots=True)
class _Said:
    """A word as it is said, by its sounds, and the written ones that it is said for: those from `first` up to before `last`."""

    sounds: str
    first: int
    last: int
    most: float = ALIKE
    """This share of its sounds may differ. A figure's words are alike, and no recogniser spells them in its own way."""


def _say(words: Sequence[str], spell: Spell, language: str) -> list[_Said]:
    """Return what is said for written words: "1.50 \u20ac" is said in four words for two."""
    bare = [(each, place) for place, word in enumerate(words) for each in list_words(word)]
    said = list_words(say_out(join_words(words), language))
    keys = [_fold(word) for word, _ in bare], [_fold(word) for word in said]
    made = list[_Said]()
    for what, i, j, begin, end in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if what == "equal":
            made += [_Said(_spell(word, spell, language), place, place + 1) for word, place in bare[i:j]]
            continue
        first = bare[i][1] if i < j else bare[i - 1][1] + 1 if i else 0
        last = bare[j - 1][1] + 1 if i < j else bare[i][1] if i < len(bare) else len(words)
        if i == j and first >= last:  # a sign within or beside a word
            first, last = max(0, first - 1), max(1, first)
        most = SAME if any(sign.isdigit() for word in words[first:last] for sign in word) else ALIKE
        made += [_Said(_spell(word, spell, language), first, last, most) for word in said[begin:end]]
    return made


def _fold(word: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKD", word) if not unicodedata.combining(each)).casefold()


def _spell(word: str, spell: Spell, language: str) -> str:
    return spell(word.lower().replace("\u2019", "'"), language) or word


_Pair = tuple[int, int, int, int]
"""Words meant go from the first place up to before the second, words heard from the third up to before the fourth."""


def _gather(pairs: Sequence[_Pair], own: Sequence[_Said], other: Sequence[_Said]) -> Iterator[list[_Pair]]:
    """Put together what belongs to the same written words on either side."""
    some: list[_Pair] = []
    for each in pairs:
        some.append(each)
        if _is_apart(own, each[1]) and _is_apart(other, each[3]):
            yield some
            some = []


def _is_apart(said: Sequence[_Said], place: int) -> bool:
    return not 0 < place < len(said) or said[place - 1].last <= said[place].first


def _judge(own: Sequence[_Said], other: Sequence[_Said], pair: _Pair) -> Kind | None:
    first, last, begin, end = pair
    if begin == end:
        return "lost"
    said = _join(other[begin:end])
    if first == last:
        beside = (other[begin - 1 : begin], other[end : end + 1])
        return "doubled" if any(each and _is_alike(_join(each), said, SAME) for each in beside) else "added"
    return None if _is_alike(_join(own[first:last]), said, min(each.most for each in own[first:last])) else "wrong"


def _join(said: Sequence[_Said]) -> str:
    return "".join(each.sounds for each in said)


def _is_alike(one: str, other: str, most: float = ALIKE) -> bool:
    return measure(one, other) <= most * max(len(one), len(other))


def _pair(meant: Sequence[_Said], heard: Sequence[_Said]) -> list[_Pair]:
    """Pair words meant with words heard, at the least cost in sounds; one side of a pair is empty where a word is missing or too much."""
    own, other = ([each.sounds for each in said] for said in (meant, heard))
    rows, columns = len(own) + 1, len(other) + 1
    best = [[0.0] * columns for _ in range(rows)]
    came = [[(0, 0)] * columns for _ in range(rows)]
    for row in range(rows):
        for column in range(columns):
            if not (row or column):
                continue
            ways = []
            if row:
                ways.append((best[row - 1][column] + len(own[row - 1]) + APART, (1, 0)))
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
