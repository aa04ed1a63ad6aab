"""Turn English text into the sounds that a voice was trained on, one ASCII sign a sound: numbers are written out, letters become sounds. No torch."""

from __future__ import annotations

import gzip
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from . import spelling

CONSONANTS: Final = {
    "b": "b", "ch": "c", "d": "d", "dh": "D", "f": "f", "g": "g", "hh": "h", "jh": "j", "k": "k", "l": "l", "m": "m", "n": "n", "ng": "G",
    "p": "p", "r": "r", "s": "s", "sh": "S", "t": "t", "th": "T", "v": "v", "w": "w", "y": "y", "z": "z", "zh": "Z",
}  # fmt: skip
VOWELS: Final = {
    "aa": "aA", "ae": "qQ", "ah": "uU", "ao": "oO", "aw": "4W", "ax": "0H", "ay": "5B", "eh": "eE", "er": "6R", "ey": "7K", "ih": "iI", "iy": "xX",
    "ow": "8N", "oy": "9J", "uh": "+V", "uw": "=M",
}  # fmt: skip
"""Each with its sign where it is not stressed, and where it is."""
NAMES: Final = {
    "A": "K", "B": "bX", "C": "sX", "D": "dX", "E": "X", "F": "Ef", "G": "jX", "H": "Kc", "I": "B", "J": "jK", "K": "kK", "L": "El", "M": "Em",
    "N": "En", "O": "N", "P": "pX", "Q": "kyM", "R": "Ar", "S": "Es", "T": "tX", "U": "yM", "V": "vX", "W": "dUb0ly=", "X": "Eks", "Y": "wB",
    "Z": "zX",
}  # fmt: skip
ORDER: Final = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6)
"""The letters around a letter, from the one that tells most."""
_VOICELESS, _HISSING = frozenset("ptkfT"), frozenset("szSZcj")
_VOWEL_SIGNS: Final = frozenset("".join(VOWELS.values()))
_ENDINGS: Final = {"ll": "l", "d": "d", "ve": "v", "re": "r", "m": "m"}


def sign(phone: str, stressed: bool) -> str:
    """The sign of one of flite's phones."""
    return CONSONANTS.get(phone) or VOWELS[phone][stressed]


def surroundings(word: str, place: int) -> str:
    """The letter at a place and its neighbours in ORDER; "_" lies outside the word."""
    padded = f"______{word}______"
    return "".join(padded[place + 6 + each] for each in ORDER)


@cache
def table(path: Path) -> dict[str, str]:
    """What letters sound like: exact words behind "=", and contexts of a letter, each with its signs. Lines are front-coded."""
    rows: dict[str, str] = {}
    before = ""
    for line in gzip.decompress(path.read_bytes()).decode("ascii").splitlines():
        shared, (key, signs) = ord(line[0]) - 48, line[1:].split(" ")
        before = before[:shared] + key
        rows[before] = signs
    return rows


@lru_cache(maxsize=65536)
def word_sounds(word: str, path: Path) -> str:
    """One word in lower case, or a letter in upper case that is named."""
    if word in NAMES:
        return NAMES[word]
    rows = table(path)
    if (exact := rows.get("=" + word)) is not None:
        return exact
    base, mark, ending = word.partition("'")
    if not mark:
        return "".join(letter_sounds(surroundings(base, place), rows) for place in range(len(base)))
    said = word_sounds(base, path)
    if ending == "s":
        return said + ("0z" if said[-1:] in _HISSING else "s" if said[-1:] in _VOICELESS else "z")
    return said + _ENDINGS.get(ending, "".join(word_sounds(part, path) for part in ending.split("'")))


def letter_sounds(around: str, rows: dict[str, str]) -> str:
    """By the longest context that the table has."""
    return next((rows[around[:size]] for size in range(len(around), 0, -1) if around[:size] in rows), "")


@lru_cache(maxsize=1024)
def sounded(text: str, path: Path) -> str:
    """Text as sounds; words stay apart, and the marks , . ; : ! ? stay behind them."""
    said: list[str] = []
    for token in spelling.spoken(text).split():
        word = token.rstrip(",.;:!?")
        said.append(word_sounds(word, path) + token[len(word) :])
        if len(said) > 1 and said[-2] == "D0" and said[-1][0] in _VOWEL_SIGNS:
            said[-2] = "Dx"
    return " ".join(said)
