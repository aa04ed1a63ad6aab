"""How the words of a script sound, by the starter voice's own table of English; words of another writing stand for themselves."""

from __future__ import annotations

import functools
import re
from typing import Final

from app.base.paths import assets
from app.engine.speech.text.pronounce import read_letters

_ENGLISH: Final = re.compile(r"[a-z]+(?:'[a-z]+)*")


@functools.lru_cache(maxsize=20_000)
def spell(word: str) -> str:
    """Return the sounds of a word in lower case, one character each."""
    if not _ENGLISH.fullmatch(word):
        return word
    return read_letters(assets() / "starter" / "voice" / "letters.bin").spell(word)
