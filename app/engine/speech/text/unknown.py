"""Find what a voice does not know in a script: where it stands, and the nearest that it knows. Pure."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from app.base.unknown_words import MARKED_MOST, Unknown
from app.engine.models.voice_limits import NONVERBALS, VoiceLimits
from app.engine.speech.text.script_brackets import ROUND, SQUARE
from app.engine.speech.text.script_characters import PLAIN, is_strange
from app.engine.speech.text.script_marks import LENGTH, MARK

NEAR_MOST: Final = 3
SIMILAR: Final = 0.6
"""A known word has to be spelt this much alike to be offered."""
_LETTERS: Final = re.compile(r"[^\x00-\x7f]++")


def find_in_script(text: str, limits: VoiceLimits, tags: Collection[tuple[int, int]] = ()) -> list[Unknown]:
    """Find tags, sounds and pauses that the voice does not understand, and characters that it skips; in order, and side by side. `tags`: the places
    of a cast's tags, each of which has a voice."""
    found: list[Unknown] = []
    known = frozenset(tags)
    unknown = (each for each in _find_in_script(text, limits) if (each.begin, each.end) not in known)
    for each in sorted(islice(unknown, MARKED_MOST)):
        if not found or each.begin >= found[-1].end:
            found.append(each)
    return found


def _find_in_script(text: str, limits: VoiceLimits) -> Iterator[Unknown]:
    for mark in MARK.finditer(text):
        if mark[1] and not 1 <= int(mark[1]) <= limits.speakers:
            yield Unknown(*mark.span(), limits.tags)
        elif not mark[1] and mark[2].strip() and LENGTH.fullmatch(mark[2]) is None:
            yield Unknown(*mark.span(), ("(pause 0.5s)",))
    for tag in SQUARE.finditer(text):
        inside = tag[1].strip().lower()
        if MARK.fullmatch(tag[0]) is None and inside not in limits.nonverbals:
            yield Unknown(*tag.span(), (*_name_near_sounds(inside, limits), *limits.tags))
    for sound in ROUND.finditer(text):
        inside = sound[1].strip().lower()
        if MARK.fullmatch(sound[0]) is not None or inside in limits.nonverbals:
            continue
        if inside in NONVERBALS if limits.letters is not None else len(inside.split()) <= 2:
            yield Unknown(*sound.span(), _name_near_sounds(inside, limits))
    for run in _LETTERS.finditer(text):
        yield from _find_strange(run, limits)


def _name_near_sounds(inside: str, limits: VoiceLimits) -> tuple[str, ...]:
    return tuple(f"({each})" for each in difflib.get_close_matches(inside, sorted(limits.nonverbals), NEAR_MOST, SIMILAR))


def _find_strange(run: re.Match[str], limits: VoiceLimits) -> Iterator[Unknown]:
    """Find stretches of characters that are not read. Accents belong to the letter before them."""
    signs = {sign: sign not in " " and ord(sign) not in PLAIN and unicodedata.category(sign)[0] not in "CM" for sign in {*run[0], " "}}
    strange = {sign: maybe and is_strange(sign, limits) for sign, maybe in signs.items()}
    begin = None
    for at, sign in enumerate(run[0] + " "):
        if strange[sign]:
            begin = at if begin is None else begin
        elif begin is not None and (at == len(run[0]) or signs[sign]):
            yield Unknown(run.start() + begin, run.start() + at)
            begin = None
