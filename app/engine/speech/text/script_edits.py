"""Change a script by its parts: find where each part stands in it, write other words there, move it, set a pause. Pure and linear; the script stays
the only truth, and what was changed is found by splitting it anew."""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from app.engine.speech.text.cast_tags import Tag, find_tags
from app.engine.speech.text.script_marks import MARK
from app.engine.speech.text.turns import ScriptPart, Turn

UNPARTED: Final = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Chinese and Japanese put no blanks between words of these."""
WORD: Final = re.compile(rf"[{UNPARTED}]|[^\W_{UNPARTED}]+")
"""It finds a word, or a character of a script that puts no blanks between words."""
_ENDS: Final = re.compile(r"[.!?。！？\n]")
_BLANKS: Final = re.compile(r"(?<=[ \n]) +")
REACH: Final = 24
"""So many words are looked through for the place where script and parts agree again, as after a number that was written out."""


class Place(NamedTuple):
    """Where a part's words stand in its script, without the tag and the pause before them."""

    begin: int
    end: int


def find_places(text: str, parts: Sequence[ScriptPart], known: Collection[str] = ()) -> list[Place]:
    """Return where each part stands. `known`: names of the cast. What was written out, as a number, is found by the words around it."""
    marks = _list_marks(text, known)
    words = _list_words(text, marks)
    said = [(_fold(word[0]), place) for place, part in enumerate(parts) for turn in part.turns for word in WORD.finditer(turn.text)]
    if not words or not said:
        return [Place(0, 0)] * len(parts)
    owners = _share_words(text, words, said, len(parts))
    begins = [bisect.bisect_left(owners, place) for place in range(len(parts) + 1)]
    stops = [*(mark.begin for mark in marks), len(text)]
    ends, places, end = [0, *(mark.end for mark in marks)], list[Place](), 0
    for place in range(len(parts)):
        first, after = begins[place], begins[place + 1]
        if first >= len(words) or after <= first:
            places.append(Place(end, end))
            continue
        begin = words[first][0].start()
        floor = max(end, ends[bisect.bisect_right(ends, begin) - 1])
        while begin > floor and not text[begin - 1].isspace():
            begin -= 1
        end = words[after - 1][0].end()
        ceiling = min(stops[bisect.bisect_left(stops, end)], words[after][0].start() if after < len(words) else len(text))
        while end < ceiling and not text[end].isspace():
            end += 1
        places.append(Place(begin, end))
    return places


def restore_writing(sentences: Sequence[str], text: str, known: Collection[str] = ()) -> list[str]:
    """Return the sentences of a whole script, in order, as it is written, for readers: SAVE20, and not SAVE twenty."""
    places = find_places(text, [ScriptPart((Turn(1, each),), 0.0) for each in sentences], known)
    written = [" ".join(text[place.begin : place.end].split()) for place in places]
    return [
        there if there and WORD.findall(there.casefold()) != WORD.findall(said.casefold()) else said
        for there, said in zip(written, sentences, strict=True)
    ]


def _list_marks(text: str, known: Collection[str]) -> list[Tag]:
    """Return the tags of speakers and the pauses, in order."""
    pauses = [Tag(*mark.span(), "") for mark in MARK.finditer(text) if not mark[1]]
    return sorted([*find_tags(text, known), *pauses])


def _list_words(text: str, marks: Sequence[Tag]) -> list[tuple[re.Match[str], str]]:
    pieces, at = list[tuple[re.Match[str], str]](), 0
    for begin, end, _ in [*marks, Tag(len(text), len(text), "")]:
        pieces += [(word, _fold(word[0])) for word in WORD.finditer(text, at, max(at, begin))]
        at = max(at, end)
    return pieces


def _fold(word: str) -> str:
    plain = word if word.isascii() else "".join(each for each in unicodedata.normalize("NFKD", word) if not unicodedata.combining(each))
    return plain.casefold()


def _share_words(text: str, words: Sequence[tuple[re.Match[str], str]], said: Sequence[tuple[str, int]], count: int) -> list[int]:
    """Return for each word of the script its part, rising. Between words that agree, those of several parts are shared by how much each has to
    say there, at the end of a sentence if there is one."""
    owners = [0] * len(words)
    i = j = 0
    begun = said_begun = 0

    def settle(to: int, said_to: int) -> None:
        """Share the words from the last that agreed to before `to`."""
        free, wants = range(begun, to), [place for _, place in said[said_begun:said_to]]
        before = said[said_begun - 1][1] if said_begun else 0
        after = said[said_to][1] if said_to < len(said) else count - 1
        at = 0
        for place in range(before, after):
            due = sum(each <= place for each in wants)
            share = round(len(free) * due / len(wants)) if wants else 0
            share = _snap(text, words, free, share) if wants and due not in (0, len(wants)) else share
            for k in range(at, share):
                owners[free[k]] = place
            at = max(at, share)
        for k in range(at, len(free)):
            owners[free[k]] = after

    while i < len(words) and j < len(said):
        if words[i][1] != said[j][0]:
            step = _find_agreement(words, said, i, j)
            if step is None:
                i, j = i + 1, j + 1
                continue
            i, j = i + step[0], j + step[1]
        settle(i, j)
        owners[i] = said[j][1]
        i, j = i + 1, j + 1
        begun, said_begun = i, j
    settle(len(words), len(said))
    for k in range(1, len(owners)):
        owners[k] = max(owners[k], owners[k - 1])
    return owners


def _find_agreement(words: Sequence[tuple[re.Match[str], str]], said: Sequence[tuple[str, int]], i: int, j: int) -> tuple[int, int] | None:
    """Return how far ahead two words in a row agree again, the nearest first."""
    for ahead in range(1, 2 * REACH):
        for di in range(max(0, ahead - REACH), min(ahead, REACH) + 1):
            a, b = i + di, j + ahead - di
            if a < len(words) and b < len(said) and words[a][1] == said[b][0]:
                last = a + 1 == len(words) or b + 1 == len(said)
                if last or words[a + 1][1] == said[b + 1][0]:
                    return di, ahead - di
    return None


def _snap(text: str, words: Sequence[tuple[re.Match[str], str]], free: range, share: int) -> int:
    """Return the share that ends a sentence and is nearest to this one, else this one."""
    ends = [
        k + 1
        for k in range(len(free))
        if free[k] + 1 < len(words) and _ENDS.search(text, words[free[k]][0].end(), words[free[k] + 1][0].start())
    ]
    return min(ends, key=lambda each: abs(each - share), default=share)


def change_words(text: str, places: Sequence[Place], part: int, words: str) -> str:
    """Write other words in place of a part's."""
    begin, end = places[part]
    return f"{text[:begin]}{words.strip()}{text[end:]}"


def has_pause(text: str, places: Sequence[Place], part: int) -> bool:
    """Tell whether a pause is written before a part."""
    begin, end = _find_lead(text, places, part)
    return any(not mark[1] for mark in MARK.finditer(text, begin, end))


def set_pause(text: str, places: Sequence[Place], part: int, seconds: float | None, known: Collection[str] = ()) -> str:
    """Write a pause before a part, in place of those that stand there; None: take them away. Of a part more than there are: after the last."""
    begin, end = _find_lead(text, places, part)
    tag = next((tag.begin for tag in find_tags(text, known) if begin <= tag.begin < end), end)
    before, after = (_tidy(MARK.sub(lambda mark: mark[0] if mark[1] else "", each)) for each in (text[begin:tag], text[tag:end]))
    if part and before[-1:] not in (" ", "\n"):
        before += " "
    if seconds is not None:
        before = f"{before.lstrip(' ') if not begin else before}(pause {seconds:g}s) "
    return (text[:begin] + before + after.lstrip(" ") + text[end:]).rstrip(" ")


def _tidy(text: str) -> str:
    return _BLANKS.sub("", text)


def _find_lead(text: str, places: Sequence[Place], part: int) -> Place:
    """Return what stands between a part and the one before it."""
    return Place(places[part - 1].end if part else 0, places[part].begin if part < len(places) else len(text))


def move_part(text: str, places: Sequence[Place], parts: Sequence[ScriptPart], part: int, known: Collection[str] = ()) -> str:
    """Let a part and the one before it change places; in a script with tags each keeps its own, and what follows its speaker."""
    first, second = part - 1, part
    tags = find_tags(text, known)
    begin, end = _find_lead(text, places, first).begin, _find_lead(text, places, second + 1).end
    pieces, speaks = list[str](), _find_speaker(parts, first - 1)
    for slot, moved in ((first, second), (second, first), (second + 1, second + 1)):
        lead = _find_lead(text, places, slot)
        bare = _without(text, lead, tags)
        own, last = _first_speaker(parts, moved), _find_speaker(parts, moved)
        if tags and own is not None and own != speaks:
            written = [text[tag.begin : tag.end] for tag in tags if _is_in(tag, _find_lead(text, places, moved)) and tag.name == own]
            tag = written[-1] if written else f"[{own}]"
            if not tag.endswith("]") and bare and not bare.rstrip(" \t").endswith("\n"):
                tag = f"[{own}]"  # a name with a colon is one at a line's beginning alone
            bare = f"{bare}{' ' if bare and not bare[-1].isspace() else ''}{tag} "
        pieces.append(bare if begin or pieces else bare.lstrip(" "))
        if slot <= second:
            pieces.append(text[places[moved].begin : places[moved].end])
            speaks = last
    return text[:begin] + "".join(pieces) + text[end:]


def _without(text: str, lead: Place, tags: Sequence[Tag]) -> str:
    """Return what stands before a part, without its tags."""
    kept, at = list[str](), lead.begin
    for tag in tags:
        if _is_in(tag, lead):
            kept.append(text[at : tag.begin])
            at = tag.end
    return _tidy("".join([*kept, text[at : lead.end]]))


def _is_in(tag: Tag, lead: Place) -> bool:
    return lead.begin <= tag.begin and tag.end <= lead.end


def _first_speaker(parts: Sequence[ScriptPart], part: int) -> str | None:
    return _name(parts[part], 0) if part < len(parts) else None


def _find_speaker(parts: Sequence[ScriptPart], part: int) -> str | None:
    """Name who speaks last in a part."""
    return _name(parts[part], -1) if 0 <= part < len(parts) else None


def _name(part: ScriptPart, turn: int) -> str:
    return part.turns[turn].name or f"S{part.turns[turn].speaker}"
