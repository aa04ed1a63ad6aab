"""Turn written-out English into the sounds that the starter voice reads: a table learned by its training, from letters to sounds. Pure."""

from __future__ import annotations

import functools
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.base.regular_file import open_regular
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.speech.text import sounds

WINDOWS: Final = ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (5, 5))
"""Each level of the table sees so many letters before and after a letter."""
EDGE: Final = "#"
LETTERS_BYTES: Final = 8 << 20
"""letters.bin may hold no more, packed or not."""
SOUNDS_MOST: Final = 64
"""A word, or a letter, has at most so many sounds; those of the starter voice have up to 18."""
READ_MOST: Final = 20_000
NAMES: Final = (
    "ay", "bee", "see", "dee", "ee", "eff", "jee", "aitch", "eye", "jay", "kay", "ell", "em", "en", "oh", "pee", "cue", "are", "ess", "tee",
    "you", "vee", "doubleyou", "ex", "why", "zee",
)  # fmt: skip
_PIECE = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*+|[.,?!]")
_VOWELS: Final = frozenset("".join(sounds.VOWELS.values()))
_HISSING: Final = frozenset("szSZcj")
_VOICELESS: Final = frozenset("ptkfT")


@dataclass(frozen=True)
class Letters:
    """What was learned: sounds of whole words, and of a letter by what stands around it."""

    words: Mapping[str, str]
    rules: Mapping[str, str]
    read: dict[str, str] = field(default_factory=dict, compare=False)
    """Words that were read by the rules: a book has most of them many times."""

    def spell(self, word: str) -> str:
        """Return the sounds of a word in lower case, those of its letters' names where it has none."""
        if word in self.words:
            return self.words[word]
        if word.endswith("'s"):
            return self._with_s(self.spell(word[:-2]))
        if (said := self.read.get(word)) is None:
            if len(self.read) >= READ_MOST:
                self.read.clear()
            bare = word.replace("'", "")
            said = apply_rules(self.rules, bare) or " ".join(self.words.get(NAMES[ord(letter) - ord("a")], "") for letter in bare)
            self.read[word] = said
        return said

    def _with_s(self, said: str) -> str:
        last = said[-1:]
        return said + ("~z" if last in _HISSING else "s" if last in _VOICELESS else "z")


def context(word: str, place: int, before: int, after: int) -> str:
    """Return the key of a letter: the letters before it, itself, the letters after it, edges marked."""
    padded = EDGE * before + word + EDGE * after
    return f"{padded[place : place + before]}.{padded[place + before]}.{padded[place + before + 1 : place + before + 1 + after]}"


def apply_rules(rules: Mapping[str, str], word: str) -> str:
    """Read letter by letter: the widest context that the table holds decides."""
    said = []
    for place in range(len(word)):
        for before, after in reversed(WINDOWS):
            found = rules.get(context(word, place, before, after))
            if found is not None:
                said.append(found)
                break
    return "".join(said)


@functools.lru_cache(maxsize=2)
def read_letters(path: Path) -> Letters:
    """Read what letters.bin holds; raise a Trouble if it is gone or damaged."""
    try:
        with open_regular(path) as file:
            unpacked = zlib.decompressobj().decompress(file.read(LETTERS_BYTES), LETTERS_BYTES)
        held = json.loads(unpacked)
        tables = held["words"], held["rules"]
        if held["signs"] != sounds.SIGNS or not all(isinstance(each, dict) for each in tables):
            raise ValueError("it belongs to another version")
        if not all(isinstance(said, str) and len(said) <= SOUNDS_MOST for table in tables for said in table.values()):
            raise ValueError("something in place of sounds")
        return Letters(held["words"], held["rules"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, zlib.error) as fault:
        raise Trouble(
            say(
                "letters.damaged",
                "The voice cannot read: {path} is missing or damaged ({fault}). Install Hearth again.",
                path=str(path),
                fault=f"{type(fault).__name__}: {fault}",
            )
        ) from fault


def to_sounds(text: str, letters: Letters) -> str:
    """Return the sounds of a written-out text: words apart, marks as they are."""
    pieces = _PIECE.findall(text)
    said: list[str] = []
    for index, piece in enumerate(pieces):
        if piece in sounds.MARKS:
            if said:
                said[-1] += piece
            continue
        said.append(_say_word(piece, pieces[index - 1] if index else "", pieces[index + 1] if index + 1 < len(pieces) else "", letters))
    return _link(said)


def count_signs(texts: Iterable[str], path: Path) -> int:
    """Count the sounds of texts, with blanks and marks, which take time as well."""
    letters = read_letters(path)
    return sum(len(to_sounds(text, letters)) for text in texts)


def _say_word(word: str, before: str, after: str, letters: Letters) -> str:
    alone = len(word) == 1 and word not in "aI"
    if alone and not (word == "A" and _starts_sentence(before) and len(after) != 1):
        return letters.spell(NAMES[ord(word.lower()) - ord("a")])
    return letters.spell(word.lower())


def _starts_sentence(before: str) -> bool:
    return not before or before in ".?!" or (len(before) > 1 and before.isupper())


def _link(said: list[str]) -> str:
    """Join words; before a vowel "the" ends in that of "see"."""
    the = f"D{sounds.VOWELS['ax'][0]}"
    for index, word in enumerate(said[:-1]):
        if word == the and said[index + 1][:1] in _VOWELS:
            said[index] = f"D{sounds.VOWELS['iy'][0]}"
    return " ".join(said)
