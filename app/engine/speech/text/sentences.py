"""Find where the sentences of ordinary prose end: not after "Mr.", "6 ft." or an initial, nor where the speaker of a quote is named. Pure and
linear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from app.engine.speech.text.german_figures import ARTICLES, OWN
from app.engine.speech.text.german_figures import MONTHS as GERMAN_MONTHS
from app.engine.speech.text.german_figures import STARTERS as GERMAN_STARTERS
from app.engine.speech.text.numerals import word_set
from app.engine.speech.text.spoken_forms import (
    AFTER_A_NAME,
    AFTER_AN_HOUR,
    BEFORE_A_NUMBER,
    DAYS_CUT,
    DEGREES,
    MONTHS,
    MONTHS_CUT,
    STARTERS,
    STATES,
    STREETS,
    TITLES,
)

_GERMAN_CUT: Final = word_set("Hr Fr Frl Nr bzw vgl inkl evtl ggf")
"""German words that are cut and go on, as they are written."""
_GERMAN_BEFORE_A_NUMBER: Final = frozenset(("Abs", "Bd", "Kap", "ca", "Tel"))
_PAIRS: Final = word_set("zB zT dh ua uU id oÄ oä")
"""Two letters, each with its stop: z. B., d. h., u. a."""
_NTH: Final = re.compile(rf"(?:^|[ (\"'])(?!d(?:ie|as|es)$)(?:{ARTICLES}|{OWN})$", re.IGNORECASE)
_ENGLISH_I: Final = re.compile(r"\bI am$")
_VERBS: Final = "said|says|asked|asks|cried|cries|replied|answered|whispered|shouted|called|murmured|muttered|exclaimed|demanded|wondered|inquired|enquired"

_STOP = re.compile(r"""(?<![.!?])[.!?]++["')\]]*+(?=\s)|[。！？]++["'」』）)]*+""")
_AFTER = re.compile(r"""\s*+[-"'(\[ ]*+([^\W_]*+)""")
_SOUND = re.compile(r"\s*+\([a-z][a-z ]{1,20}\)")
_COUNTED = re.compile(r"\d{1,3}|[IVXLC]{1,7}|[ivx]{1,5}|[a-z]")
_INITIALS = re.compile(r"(?:[A-Za-z]\.){1,5}[A-Za-z]|Ph\.D|[A-HJ-Z]")
_OLD_MONEY = re.compile(r"\d{1,3}[sd]")
_POSTAL_CODE = re.compile(r"\d{5}")
_WORD = re.compile(r"\w")
_TOLD = re.compile(
    rf"\s*+(?!(?:He|She|They|We|It|You)\b)(?:(?:[A-Z][\w.'-]{{0,19}}+|the|his|her|my|old|young|little) ){{1,4}}(?:{_VERBS})\b"
)
BEFORE_MOST: Final = 40
"""So many characters before a full stop are looked at."""


def split_sentences(text: str) -> list[str]:
    """Split a paragraph without losing a sign; what has no word in it stays with its neighbour."""
    spans: list[list[int]] = []
    begun = looked = 0
    for end in (*_list_ends(text), len(text)):
        if _WORD.search(text, looked, end):
            spans.append([begun, end])
        elif spans:
            spans[-1][1] = end
        else:
            looked = end
            continue
        begun = looked = end
    return [text[a:b].strip() for a, b in spans] or [text.strip()]


def _list_ends(text: str) -> Iterator[int]:
    begun = 0
    for found in _STOP.finditer(text):
        end = found.end()
        while (sound := _SOUND.match(text, end)) is not None:  # a laugh belongs to what was said before it
            end = sound.end()
        if end > begun and _ends_sentence(text, begun, found, end):
            yield end
            begun = end


def _ends_sentence(text: str, begun: int, found: re.Match[str], end: int) -> bool:
    mark = found[0]
    if mark[0] in "。！？":
        return True
    after = _AFTER.match(text, end)
    following = after[1] if after else ""
    if following[:1].islower() or (mark[-1] in "\"'" and mark[0] != "." and _TOLD.match(text, end)):
        return False
    if mark.rstrip("\"')]") != ".":
        return True
    before = text[max(begun, found.start() - BEFORE_MOST) : found.start()]
    word = before[max(before.rfind(sign) for sign in ' (["') + 1 :]
    before = before.removesuffix(word).rstrip()
    word = word.strip("'*_-,;:")
    first = before.endswith(":") or not before.strip("\"'([-* ")
    return not word or not (_goes_on(word, following, first) or _goes_on_in_german(word, before, following, text, found.end()))


def _goes_on_in_german(word: str, before: str, following: str, text: str, end: int) -> bool:
    """Tell whether this full stop is one of "z. B.", "Nr. 5", "3. Oktober" or "der 20. Geburtstag"."""
    if len(word) == 1 and word.islower():
        return f"{word}{text[end : end + 2].strip()[:1]}" in _PAIRS or before.endswith(" u.")
    if word.isdigit() and len(word) < 4:
        counted = (
            _NTH.search(before) is not None
            and not _ENGLISH_I.search(before)
            and following not in GERMAN_STARTERS
            and following not in STARTERS
        )
        return following[:1].isupper() and (counted or (following in GERMAN_MONTHS and following not in MONTHS))
    if not following or following in STARTERS or following in GERMAN_STARTERS:
        return False
    return word in _GERMAN_CUT or (word in _GERMAN_BEFORE_A_NUMBER and following[0].isdigit())


def _goes_on(word: str, following: str, first: bool) -> bool:
    """Tell whether the full stop after this word ends no sentence, by the word that follows and whether this one is the sentence's first."""
    lower, number, starts = word.lower(), following[:1].isdigit(), following in STARTERS
    if first and _COUNTED.fullmatch(word) and following:
        return True  # "1. Milk", "IV. The Ferry"
    if lower in TITLES or (number and (lower in BEFORE_A_NUMBER or _OLD_MONEY.fullmatch(lower))) or following in AFTER_A_NAME:
        return True
    if lower in DAYS_CUT and (following in MONTHS or following.lower() in MONTHS_CUT):
        return True
    if (word in STATES and _POSTAL_CODE.fullmatch(following)) or (lower == "deg" and following in DEGREES):
        return True
    if word[0] == "£" and _OLD_MONEY.fullmatch(following):
        return True
    if lower in STREETS:
        return bool(following) and not starts
    if lower in ("a.m", "p.m"):
        return number or following in AFTER_AN_HOUR
    return bool(_INITIALS.fullmatch(word) and following) and not starts
