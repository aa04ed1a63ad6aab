"""The alphabet of sounds that the starter voice reads: one character a sound, stressed vowels apart from unstressed ones. Pure."""

from __future__ import annotations

from typing import Final

CONSONANTS: Final = {
    "b": "b", "ch": "c", "d": "d", "dh": "D", "f": "f", "g": "g", "hh": "h", "jh": "j", "k": "k", "l": "l", "m": "m", "n": "n",
    "ng": "N", "p": "p", "r": "r", "s": "s", "sh": "S", "t": "t", "th": "T", "v": "v", "w": "w", "y": "y", "z": "z", "zh": "Z",
}  # fmt: skip
VOWELS: Final = {
    "aa": "aA", "ae": "qQ", "ah": "uU", "ao": "oO", "aw": "xX", "ax": "@#", "ay": "iI", "eh": "eE", "er": "^R", "ey": "=Y",
    "ih": "~J", "iy": "$W", "ow": ";V", "oy": ":L", "uh": "_G", "uw": "/K",
}  # fmt: skip
"""Each vowel has two characters: one without stress and one with it."""
MARKS: Final = ".,?!"
SIGNS: Final = "".join([*CONSONANTS.values(), *VOWELS.values()])
"""A table learned with other characters is of no use here."""


def sign(phone: str, stressed: bool) -> str:
    """Return a phone's character. `phone` is named as CMU's dictionary does, in lower case and without its figure."""
    return CONSONANTS[phone] if phone in CONSONANTS else VOWELS[phone][stressed]
