"""Find the speakers of a script by their tags: [S1], [Anna], and "Anna:" at a line's beginning where the name is known. Pure, and linear."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from app.engine.jobs.request import NAME_MOST
from app.engine.models.voice_limits import NONVERBALS
from app.engine.speech.text.named_speakers import is_name
from app.engine.speech.text.said_words import PARTICLES

NARRATOR: Final = "Narrator"
"""Whoever speaks before the first name is called so."""
NAMES_MOST: Final = 50
_BRACKETS: Final = re.compile(rf"\[[ \t]*+(?:(?:s|speaker)[ \t]*+(\d{{1,6}})[ \t]*+|([^\[\]\n:]{{1,{NAME_MOST}}}))\]", re.IGNORECASE)
AT_LINE: Final = re.compile(rf"^[ \t]*+([^\s\[\]:：][^\[\]:：\n]{{0,{NAME_MOST - 1}}})(?::(?=\s)|：)", re.MULTILINE)
_WORDS: Final = re.compile(r"\w")
_ENDS: Final = frozenset(".!?…,\"”'’)]—-:")
"""Within a line, a tag follows one of these."""
_GUESSED_ENDS: Final = _ENDS | frozenset("“‘«»‹›–―。！？，：、」』")
_OPENS: Final = frozenset("\"“„'‘‚«»‹›「『")
"""In a script that tells of its narrator, as a guess writes it, a tag may also follow one of these, or precede one of those."""
_OPENING: Final = frozenset("“„‘‚«»‹›「『")
"""A bracket right behind one of these is an editor's: “[T]he right”."""


class Tag(NamedTuple):
    begin: int
    end: int
    name: str


def find_tags(text: str, known: Collection[str] = ()) -> list[Tag]:
    """Return the tags of speakers, in order; each name as `known` spells it, or as it comes first. What stands in brackets is a name where it looks
    like one and something is said after it; a known name is one anywhere."""
    spelt = {name.casefold(): name for name in known}
    found: list[Tag] = []
    guessed = f"[{NARRATOR}]" in text
    for each in _BRACKETS.finditer(text):
        if each[1]:
            found.append(Tag(*each.span(), f"S{int(each[1])}"))
        elif (name := " ".join(each[2].split())).casefold() in spelt or (may_be_name(name) and _is_in_place(text, *each.span(), guessed)):
            found.append(Tag(*each.span(), spelt.setdefault(name.casefold(), name)))
    named = {each.name.casefold() for each in found} | set(spelt)
    for each in AT_LINE.finditer(text):
        if (name := " ".join(each[1].split())).casefold() in named:
            found.append(Tag(each.start(1), each.end(), spelt.get(name.casefold(), name)))
    return sorted(found)


def may_be_name(words: str) -> bool:
    """Tell whether what stands in brackets looks like a name, of three words besides particles."""
    return (
        len(words) <= NAME_MOST
        and any(map(str.isalpha, words))
        and is_name(words)
        and words.casefold() not in NONVERBALS
        and words.casefold().split()[0] != "pause"
        and sum(word not in PARTICLES for word in words.split()) <= 3
    )


def _is_in_place(text: str, begin: int, end: int, guessed: bool) -> bool:
    """Tell whether a tag begins a line or follows a sentence, and something is said after it in its line."""
    before = text[max(0, begin - 3) : begin].rstrip(" \t")
    after = text[end : end + 200].partition("\n")[0]
    begins = not before or before[-1] in "\n\r" or before[-1] in (_GUESSED_ENDS if guessed else _ENDS)
    begins = begins or (guessed and after.lstrip(" ")[:1] in _OPENS)
    cites = text[begin - 1 : begin] in _OPENING and text[begin:end] != f"[{NARRATOR}]"
    return begins and not cites and _WORDS.search(after) is not None


def list_names(text: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """Return who speaks, in order; with whoever speaks before the first tag. None in a script without tags."""
    tags = find_tags(text, known)
    first = (_name_first(tags),) if tags and _WORDS.search(text[: tags[0].begin]) else ()
    return tuple(dict.fromkeys((*first, *(each.name for each in tags))))


def number_tags(text: str, known: Collection[str] = ()) -> tuple[str, tuple[str, ...]]:
    """Return the script with a number for each name, as [S3], and the names by their numbers less one."""
    tags = find_tags(text, known)
    names = list_names(text, known)
    numbers = {name: number for number, name in enumerate(names, 1)}
    pieces, at = [], 0
    if tags and names[0] not in (tags[0].name,):
        pieces.append("[S1] ")
    for tag in tags:
        pieces += [text[at : tag.begin], f"[S{numbers[tag.name]}] "]
        at = tag.end
    return "".join((*pieces, text[at:])), names


def _name_first(tags: list[Tag]) -> str:
    """Name whoever speaks before the first tag: the first speaker where all are numbered."""
    return "S1" if all(tag.name[1:].isdigit() and tag.name[0] == "S" for tag in tags) else NARRATOR
