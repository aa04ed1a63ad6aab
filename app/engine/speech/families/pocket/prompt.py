"""Prepare the text of a part as the makers of Pocket TTS and Phonon do. Their chat templates would, but are programs, and none is run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from app.engine.speech.text.written_out import say_out

_CLOSERS: Final = "\"' "
_SIDES: Final = re.compile(r"[()\[\]{}<>|;]")
"""Some of these also write the model's own signs."""
_BETWEEN: Final = re.compile(r"(?<![\s,])[\s,]++([.!?:]?)")
"""It finds blanks and commas, with the mark after them."""


def prepare_text(texts: Iterable[str], language: str, spelled: frozenset[str]) -> str:
    """Return what the model reads: no brackets, a capital at the beginning and a mark at the end; figures as words of this language, as it was taught
    few numbers. `spelled`: the characters that its tokenizer has pieces for; any other would be bytes to it, and is heard as noise. Empty: it
    takes all."""
    said = " ".join(say_out(each, language) for each in texts)
    if spelled:
        said = "".join(_spell(sign, spelled) for sign in said)
    said = _BETWEEN.sub(_keep_one, _SIDES.sub(", ", said)).strip()
    bare = said.rstrip(_CLOSERS)
    if not bare.endswith((".", "!", "?")):
        said = bare.rstrip(" ,:-") + "." + said[len(bare) :]
    return said[:1].upper() + said[1:]


def _keep_one(between: re.Match[str]) -> str:
    """Return the mark that stands after blanks and commas, else a comma; none at the beginning or after the end of a sentence."""
    before = between.string[between.start() - 1 : between.start()]
    return between[1] or (", " if "," in between[0] and before and before not in ".!?" else " ")


def _spell(sign: str, spelled: frozenset[str]) -> str:
    """Return a character as the tokenizer can write it: a letter without its accent, if need be, or a blank."""
    if sign in spelled or sign.isspace():
        return sign
    return "".join(each for each in unicodedata.normalize("NFKD", sign) if each in spelled) or " "
