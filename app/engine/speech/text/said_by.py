"""Guess who says what in a story: "Come in," said Anna. A guess, which a person confirms: rather no name than a wrong one. Pure, and linear."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

from app.engine.speech.text.cast_tags import AT_LINE, NARRATOR, find_tags
from app.engine.speech.text.likely_language import LOOKED_AT, choose_language
from app.engine.speech.text.named_speakers import Edit
from app.engine.speech.text.said_clauses import (
    DASHES,
    EASTERN,
    STOPS,
    is_alone,
    list_known,
    read_clauses,
    read_dashed,
    read_gesture,
    split_name,
)
from app.engine.speech.text.said_words import PARTICLES, SAYINGS

_CLOSED_BY: Final = {"“": "”", '"': '"', "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』", "‚": "‘"}
_OPENS: Final = re.compile(r"[“\"„«»‹›「『‘'‚]")
_SINGLE_ENDS: Final = re.compile(r"(?<=[.,!?…:;—–-])[’'](?!\w)")
"""An apostrophe comes after a letter."""
_LOW_ENDS: Final = re.compile("[“”]")
_EITHER_WAY: Final = frozenset("\"'‘»›‹")
"""These open a quote before a word alone."""
_SAID: Final = frozenset(".,!?…:;—–-。，！？；：～~、")
"""What is said ends so; a word in quotes does not."""
_CLOSES_WITHIN: Final = " \u00a0\u202f’'”\"»«‹›」』"
_FREE: Final = frozenset(".!?…:—–―。！？：”“\"»«’‘'」』‹›")
"""A quote that follows one of these is no part of the sentence before it."""
_TRIMMED: Final = " ,，、—–―-"
AROUND_MOST: Final = 200
"""So many letters before and after a quote are looked at for a name."""
BLANK_MOST: Final = 3
"""So many empty lines may stand within what goes on over several paragraphs."""
LEAST: Final = 2
"""Fewer quotes with somebody's name are no dialogue."""
SLIPS: Final = 0.02
"""So many of somebody's quotes may follow another one of the same person's in a paragraph of its own, under another name."""


@dataclass(slots=True)
class _Speech:
    """What somebody says without a break, by its place in its paragraph."""

    begin: int
    end: int
    before: str = ""
    after: str = ""
    ends: str = ""
    """The last sign within it: behind a comma its sentence goes on after it."""
    free: bool = False
    """It is no part of the sentence before it."""
    goes_on: bool = False
    """The next paragraph's first is the rest of it."""
    name: str | None = None
    """Empty: somebody who has none."""


def guess_speakers(text: str) -> list[Edit]:
    """Return where tags would stand: each quote whose paragraph names its speaker, and the narrator after it. None for a script with tags."""
    found = find_quotes(text)
    return found if sum(each.name != NARRATOR for each in found) >= LEAST else []


def count_quotes(texts: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Count how many quotes each name has in a book, the one with the most first; a name with fewer than a dialogue needs is left out. And return which
    full names short ones stand for there: those that are left out tell of that, too."""
    called, answers = Counter[str](), Counter[frozenset[str]]()
    for text in texts:
        if not find_tags(text):
            lines = text.split("\n")
            speeches = _name_speeches(text, lines, ())
            called.update(each.name for each in chain(*speeches) if each.name)
            answers.update(_list_answers(lines, speeches))
    said, same = Counter[str](), find_same(called, _find_apart(called, answers))
    for name, count in called.items():
        said[same.get(name, name)] += count
    return {name: count for name, count in said.most_common() if count >= LEAST}, same


def find_same(names: Iterable[str], apart: Collection[frozenset[str]] = ()) -> dict[str, str]:
    """Return which full name a short one stands for, as "Okonkwo" for "Dr. Okonkwo": the only one that it begins or ends, but for what follows a particle.
    Whose name Mary Anne is where Mary and Anne speak, too, nobody knows; but Amara Nwosu is Amara where Nwosu is Dr. Nwosu. `apart`: these are
    two, and so are the people whom they stand for; of two equally short ones neither is told to be the full one."""
    names, longer = {*names}, defaultdict[str, set[str]](set)
    halves = {name: [*_cut(name)] for name in names}
    surnames = {last for each in halves.values() for first, last in each if first not in names}
    for name, cuts in halves.items():
        if not any(names >= {*each} and each[1] not in surnames for each in cuts):
            for short in chain(*cuts):
                longer[short].add(name)
    lengths = {name: len(split_name(name)) for name in names | longer.keys()}
    others = defaultdict[str, set[str]](set)
    for one, other in map(tuple, apart):
        for short, rival in ((one, other), (other, one)):
            others[short] |= {rival} | (longer.get(rival, set()) if lengths[rival] == lengths[short] else set())
    same = dict[str, str]()
    for short in sorted(longer, key=lambda each: -lengths[each]):
        by_surname = {full for full in longer[short] if all(first not in names for first, last in halves[full] if last == short)}
        for some in (longer[short], by_surname):
            fulls = {same.get(full, full) for full in some} - {same.get(other, other) for other in others[short]}
            if len(fulls) == 1:
                (same[short],) = fulls
    return same


def _cut(name: str) -> Iterator[tuple[str, str]]:
    words = split_name(name)
    return ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)) if words[at - 1] not in PARTICLES)


def _list_answers(lines: list[str], speeches: list[list[_Speech]]) -> Iterator[frozenset[str]]:
    """Yield the names of two paragraphs that follow each other: whoever speaks in the second answers the first."""
    last: _Speech | None = None
    for line, said in zip(lines, speeches, strict=True):
        if line.strip():
            if said and last is not None and last.name and said[0].name and not last.goes_on:
                yield frozenset((last.name, said[0].name))
            last = said[-1] if said else None


def _find_apart(called: Mapping[str, int], answers: Mapping[frozenset[str], int]) -> set[frozenset[str]]:
    """Return the pairs of names that answer each other: nobody does so to himself, but for a slip."""
    return {pair for pair, count in answers.items() if len(pair) == 2 and count >= max(LEAST, SLIPS * min(called[each] for each in pair))}


def find_quotes(
    text: str, among: Collection[str] | None = None, same: Mapping[str, str] | None = None, known: Collection[str] = ()
) -> list[Edit]:
    """Return where tags would stand, however few they are. `among`: whoever is another one is read by the narrator; `same`: which full names
    short ones stand for, where more is known of that than the text tells; `known`: these speak elsewhere in the book."""
    if find_tags(text):
        return []
    lines = text.split("\n")
    speeches = _name_speeches(text, lines, known)
    called = Counter(each.name for each in chain(*speeches) if each.name)
    if same is None:
        same = find_same(called, _find_apart(called, Counter(_list_answers(lines, speeches))))
    tagged = {same.get(name, name).casefold() for name in (called if among is None else among)}
    found: list[Edit] = []
    begin, narrates = 0, True
    for line, said in zip(lines, speeches, strict=True):
        at = 0
        head = AT_LINE.match(line)
        if head is not None and head[1].casefold() in tagged and line[head.end() : said[0].begin if said else len(line)].strip():
            found.append(Edit(begin, begin, NARRATOR))  # "Emma: Part One" would be a tag of hers
            narrates = True
        for each in said:
            name = same.get(each.name, each.name) if each.name else ""
            if not name or (among is not None and name not in among):
                continue
            if not narrates or line[at : each.begin].strip():
                found += _narrate(line, at, each.begin, begin, narrates)
            found.append(Edit(begin + each.begin, begin + each.begin, name))
            at, narrates = each.end, False
        rest = [*_narrate(line, at, len(line), begin, narrates)]
        narrates = narrates or bool(rest)
        found += rest
        begin += len(line) + 1
    if found and all(each.name != NARRATOR for each in found) and text[: found[0].begin].strip():
        found.insert(0, Edit(0, 0, NARRATOR))  # so that tags before quotes are read as such
    return found


def tag_chapter(text: str, among: Collection[str], same: Mapping[str, str] | None = None, known: Collection[str] = ()) -> str:
    """Return a book's chapter with the tags of these speakers, also where the narrator speaks alone; one that has tags already as it is. `known`: all who
    speak in the book."""
    if find_tags(text):
        return text
    quotes = find_quotes(text, among, same, known)
    return put_tags(text, quotes) if quotes else f"[{NARRATOR}] {text}"


def put_tags(text: str, edits: Iterable[Edit]) -> str:
    """Return a script with these names as tags."""
    pieces, at = list[str](), 0
    for each in edits:
        pieces.append(f"{text[at : each.begin]}[{each.name}] ")
        at = each.end
    return "".join(pieces) + text[at:]


def drop_tags(text: str, known: Collection[str]) -> tuple[str, frozenset[str]]:
    """Return a script without the tags in brackets, as they were put into it, and the names on them."""
    pieces, at, names = list[str](), 0, set[str]()
    for each in find_tags(text, known):
        if text[each.begin] == "[":
            pieces.append(text[at : each.begin])
            at = each.end + text.startswith(" ", each.end)
            names.add(each.name)
    return "".join((*pieces, text[at:])), frozenset(names)


def _narrate(line: str, at: int, end: int, begin: int, narrates: bool) -> Iterator[Edit]:
    """Yield the narrator's tag before what is told between quotes."""
    between = line[at:end]
    if not narrates and any(each.isalnum() for each in between):
        place = begin + at + len(between) - len(between.lstrip(_TRIMMED))
        yield Edit(place, place, NARRATOR)


def _name_speeches(text: str, lines: list[str], known: Collection[str]) -> list[list[_Speech]]:
    """Return who says what in each line, in the text's language; where its small words do not tell that, in the one whose verbs name most."""
    language = choose_language(text, ("", *EASTERN, *SAYINGS))
    if not language:
        begin = [line for line in text[:LOOKED_AT].split("\n") if line.strip()]
        language = max(SAYINGS, key=lambda each: sum(bool(speech.name) for speech in chain(*_name_in(each, begin, known))))
    return _name_in(language, lines, known)


def _name_in(language: str, lines: list[str], elsewhere: Collection[str]) -> list[list[_Speech]]:
    speeches, known = _list_speeches(language, lines), list_known(language, elsewhere)
    for _ in range(2):  # whoever is named beyond doubt is known elsewhere, too
        for each in chain(*speeches):
            if each.before or each.after:
                each.name = read_clauses(language, each.before, each.after, known, each.ends)
        known = list_known(language, {*elsewhere, *(each.name for each in chain(*speeches) if each.name)})
    _join(speeches)
    before: _Speech | None = None
    """The last one of the paragraph before, where it goes on."""
    for line, said in zip(lines, speeches, strict=True):
        for each in said[:1]:
            if before is not None:
                each.name = each.name or before.name
            if each.name is None and each.free:
                each.name = read_gesture(language, each.before, line[each.begin : each.end], each.after, known)
        _share(language, said, known)
        for each in said[-1:]:
            before = each if each.goes_on else None
    _join(speeches)
    return speeches


def _join(speeches: list[list[_Speech]]) -> None:
    """Give one name to what goes on over several paragraphs."""
    joined: list[_Speech] = []
    for each in chain(*speeches):
        joined.append(each)
        if not each.goes_on:
            names = {part.name for part in joined if part.name}
            for part in joined if len(names) == 1 else ():
                (part.name,) = names
            joined = []


def _share(language: str, line: list[_Speech], known: Collection[str]) -> None:
    """Give quotes of a paragraph that name nobody to whoever has the one before, or the one after the first; not past somebody else."""
    first = next((place for place, each in enumerate(line) if each.name), 0)
    for last, each in pairwise(line):
        if each.name is None and each.free and last.name and is_alone(language, each.before, last.name, known, last.ends != ","):
            each.name = last.name
    for each, following in reversed([*pairwise(line[: first + 1])]):
        ends = following.before.rstrip()[-1:] in STOPS
        if (
            each.name is None
            and each.free
            and following.name
            and ends
            and is_alone(language, f".{following.before}", following.name, known, True)
        ):
            each.name = following.name


def _list_speeches(language: str, lines: list[str]) -> list[list[_Speech]]:
    """Return what is said in each line, with what is told around it."""
    found, last, goes_on = list[list[_Speech]](), "", False
    for number, line in enumerate(lines):
        if not line.strip():
            found.append([])
            continue
        lead = last[-AROUND_MOST:] if last.endswith((":", "：")) else ""
        if line.lstrip()[:1] in DASHES:
            said = [_Speech(begin, end, name=name) for begin, end, name in read_dashed(language, line)]
            whole = len(line) - len(line.lstrip())
            if lead and not said and not any(each in DASHES for each in line[whole + 1 :]):
                said = [_Speech(whole, len(line), before=lead)]
        else:
            following = next((each for each in lines[number + 1 : number + 1 + BLANK_MOST] if each.strip()), "").lstrip()
            said = _list_quotes(line, following, lead, goes_on)
        found.append(said)
        last, goes_on = line.rstrip(), bool(said) and said[-1].goes_on
    return found


def _list_quotes(line: str, following: str, lead: str, goes_on: bool) -> list[_Speech]:
    """Return the quotes of a line; words in quotes that are no speech are told."""
    begins = len(line) - len(line.lstrip())
    spans = [span for span in _pair_quotes(line, following) if _is_speech(line, *span) or (goes_on and span[0] <= begins)]
    said = list[_Speech]()
    for place, (begin, end, open_) in enumerate(spans):
        last = spans[place - 1][1] if place else 0
        before = line[max(last, begin - AROUND_MOST) : begin]
        if begin - last > AROUND_MOST:  # it begins within a sentence
            before = before[before.find(".") + 1 :] if "." in before else ""
        if not place and not before.strip():
            before = lead
        after = line[end : min(end + AROUND_MOST, spans[place + 1][0] if place + 1 < len(spans) else len(line))]
        free = _is_free(line, begin) or before.rstrip()[-1:] == ","
        said.append(_Speech(begin, end, before, after, line[end - 3 : end - 1].rstrip()[-1:], free, open_))
    return said


def _pair_quotes(line: str, following: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where quotes begin and end, and whether the paragraph ends before they do: the following one opens the same again."""
    at, missing = 0, set[str]()
    while (found := _OPENS.search(line, at)) is not None:
        begin, at, sign = found.start(), found.end(), found[0]
        if sign in missing or (sign in _EITHER_WAY and (line[begin - 1 : begin].isalnum() or not line[at : at + 1].strip())):
            continue
        closing = _LOW_ENDS.search(line, at) if sign == "„" else _SINGLE_ENDS.search(line, at) if sign in "'‘" else None
        end = closing.start() if closing is not None else line.find(_CLOSED_BY[sign], at) if sign in _CLOSED_BY else -1
        if end >= 0:
            yield begin, end + 1, False
            at = end + 1
        elif following.startswith(sign):
            yield begin, len(line), True
            return
        else:
            missing.add(sign)


def _is_speech(line: str, begin: int, end: int, open_: bool) -> bool:
    """Tell what is said from words in quotes, as in: the "expert" laughed."""
    inside = line[begin + 1 : end if open_ else end - 1].rstrip(_CLOSES_WITHIN)
    return bool(inside) and (open_ or inside[-1] in _SAID or line[end : end + 1] == "と" or _is_free(line, begin))


def _is_free(line: str, begin: int) -> bool:
    """Tell whether a quote begins a sentence."""
    before = line[max(0, begin - AROUND_MOST) : begin].rstrip()
    return not before or before[-1] in _FREE
