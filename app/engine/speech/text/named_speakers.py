"""Find who speaks in a script that names its speakers as a play does, "Anna: ...". Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.base.sentence import Sentence, say_to_all
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.chapter_names import CHAPTER
from app.engine.speech.text.said_words import PARTICLES
from app.engine.speech.text.script_characters import is_strange
from app.engine.speech.text.script_marks import MARK

_WORD: Final = r"[^\W\d_][\w.'’-]{0,19}+"
_AT_LINE: Final = re.compile(rf"^[ \t]*+({_WORD}(?: {_WORD}){{0,2}})(?::(?=\s)|：)[ \t]*+", re.MULTILINE)
_AFTER_SENTENCE: Final = re.compile(rf"(?<=[.!?\"”])[ \t]++({_WORD}(?: {_WORD}){{0,2}})(?::(?=\s)|：)[ \t]*+")
NAMES_MOST: Final = 12
"""More are a list, not a conversation."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of a script that would become a speaker's tag."""

    begin: int
    end: int
    name: str


def find_named(text: str) -> list[Edit]:
    """Return the names of a script that begins with one and has at least two, each with its colon; where something is told first, one of them has to
    speak twice, as a list has no such. A script with speakers' tags, or one that merely has a colon in a sentence, has none."""
    if any(each[1] for each in MARK.finditer(text)):
        return []
    lines = [each for each in _AT_LINE.finditer(text) if is_name(each[1])]
    if not lines:
        return []
    known = {each[1].casefold() for each in lines}
    alone = "\n" not in text.strip()
    within = [each for each in _AFTER_SENTENCE.finditer(text) if is_name(each[1]) and (alone or each[1].casefold() in known)]
    found = sorted((*lines, *within), key=lambda each: each.start())
    names = {each[1].casefold(): each[1] for each in reversed(found)}
    told = bool(text[: lines[0].start()].strip())
    if not 2 <= len(names) <= NAMES_MOST or (told and len(found) == len(names)):
        return []
    return [Edit(each.start(1), each.end(), names[each[1].casefold()]) for each in found]


def word_named(names: Sequence[str], limits: VoiceLimits) -> list[Sentence]:
    """Say that these speak in a script, and what becomes of their names until they are speakers."""
    words = [say_to_all("script.named", "{names} {n:speaks|speak} here.", names=tuple(names), n=len(names))]
    if not any(is_strange(sign, limits) for name in names for sign in name):
        words.append(say_to_all("script.names-read", "Now the names are read aloud."))
    return words


def is_name(words: str) -> bool:
    """Tell whether each word begins with a capital, or with a letter of a script that has none; within a name, also "von" and its like. A chapter
    has its title after a colon."""
    first, *others = words.split()
    named = not first[0].islower() and all(not word[0].islower() or word in PARTICLES for word in others)
    return named and words.split()[-1] not in PARTICLES and not CHAPTER.fullmatch(words)
