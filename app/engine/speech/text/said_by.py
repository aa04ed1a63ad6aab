"""Guess who says what in a story: "Come in," said Anna. A guess, which a person confirms. Pure, and linear."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from app.engine.speech.text.cast_tags import NARRATOR, find_tags
from app.engine.speech.text.named_speakers import Edit

_SAID: Final = (
    "said|says|asked|asks|replied|replies|answered|answers|cried|cries|whispered|whispers|shouted|shouts|called|calls|murmured|muttered|exclaimed|"
    "added|continued|began|laughed|sighed|repeated|insisted|agreed|explained|growled|snapped|shrieked|screamed|warned|wondered"
)
_NAME: Final = r"((?:(?:Mr|Mrs|Ms|Miss|Dr|Sir|Lady|Lord|Aunt|Uncle|Captain|Old)\.? )?[A-Z][^\W\d_]{1,19}+(?: [A-Z][^\W\d_]{1,19}+)?)"
_QUOTE: Final = re.compile(r"“[^“”\n]{1,2000}”|\"[^\"\n]{1,2000}\"")
_AFTER: Final = re.compile(rf"\s{{0,2}}(?:(?:{_SAID}) {_NAME}|{_NAME} (?:{_SAID}))\b")
_BEFORE: Final = re.compile(rf"(?:{_NAME} (?:{_SAID})|(?:{_SAID}) {_NAME})[,:]?\s{{0,2}}$")
_NOBODY: Final = frozenset({
    "He", "She", "It", "They", "We", "You", "I", "The", "His", "Her", "Their", "My", "That", "Who", "What", "And", "But", "Then", "So", "No", "Yes",
})  # fmt: skip
BEFORE_MOST: Final = 80
QUOTES_MOST: Final = 8
"""So many quotes of a paragraph are looked at for a name."""
LEAST: Final = 2
"""Fewer quotes with somebody's name are no dialogue."""


def guess_speakers(text: str) -> list[Edit]:
    """Return where tags would stand: each quote whose paragraph names its speaker, and the narrator after it. None for a script with tags."""
    found = find_quotes(text)
    return found if sum(each.name != NARRATOR for each in found) >= LEAST else []


def count_quotes(texts: Iterable[str]) -> dict[str, int]:
    """Count how many quotes each name has in a book, the one with the most first; a name with fewer than a dialogue needs is left out."""
    called = Counter(each.name for text in texts for each in find_quotes(text, same={}) if each.name != NARRATOR)
    said, same = Counter[str](), find_same(called)
    for name, count in called.items():
        said[same.get(name, name)] += count
    return {name: count for name, count in said.most_common() if count >= LEAST}


def find_same(names: Iterable[str]) -> dict[str, str]:
    """Return which full name a short one stands for, as "Okonkwo" for "Dr. Okonkwo": the only one that it begins or ends."""
    longer = defaultdict[str, set[str]](set)
    for name in names:
        words = name.split()
        for at in range(1, len(words)):
            longer[" ".join(words[:at])].add(name)
            longer[" ".join(words[at:])].add(name)
    return {short: full for short, (full, *others) in longer.items() if not others}


def find_quotes(text: str, among: Collection[str] | None = None, same: Mapping[str, str] | None = None) -> list[Edit]:
    """Return where tags would stand, however few they are. `among`: whoever is another one is read by the narrator; `same`: which full names
    short ones stand for, where more is known of that than the text tells."""
    if find_tags(text):
        return []
    lines = [(line, quotes, _find_speaker(line, quotes)) for line in text.split("\n") for quotes in [[*_QUOTE.finditer(line)]]]
    same = find_same({name for _, _, name in lines}) if same is None else same
    found: list[Edit] = []
    begin, narrates = 0, True
    for line, quotes, named in lines:
        name, at = same.get(named, named), 0
        for quote in quotes if name and (among is None or name in among) else []:
            if not narrates or line[at : quote.start()].strip():
                found += _narrate(line, at, quote.start(), begin, narrates)
            found.append(Edit(begin + quote.start(), begin + quote.start(), name))
            at, narrates = quote.end(), False
        rest = [*_narrate(line, at, len(line), begin, narrates)]
        narrates = narrates or bool(rest)
        found += rest
        begin += len(line) + 1
    return found


def tag_chapter(text: str, among: Collection[str], same: Mapping[str, str] | None = None) -> str:
    """Return a book's chapter with the tags of these speakers, also where the narrator speaks alone; one that has tags already as it is."""
    if find_tags(text):
        return text
    quotes = find_quotes(text, among, same)
    return put_tags(text, quotes) if quotes else f"[{NARRATOR}] {text}"


def put_tags(text: str, edits: Iterable[Edit]) -> str:
    """Return a script with these names as tags."""
    pieces, at = list[str](), 0
    for each in edits:
        pieces.append(f"{text[at : each.begin]}[{each.name}] ")
        at = each.end
    return "".join(pieces) + text[at:]


def _narrate(line: str, at: int, end: int, begin: int, narrates: bool) -> Iterator[Edit]:
    """Yield the narrator's tag before what is told between quotes."""
    between = line[at:end]
    if not narrates and any(each.isalnum() for each in between):
        place = begin + at + len(between) - len(between.lstrip(" ,"))
        yield Edit(place, place, NARRATOR)


def _find_speaker(line: str, quotes: list[re.Match[str]]) -> str:
    """Return who is said to speak in a paragraph."""
    for quote in quotes[:QUOTES_MOST]:
        for named in (_AFTER.match(line, quote.end()), _BEFORE.search(line[max(0, quote.start() - BEFORE_MOST) : quote.start()])):
            name = next(filter(None, named.groups()), "") if named else ""
            if name and name.split()[0] not in _NOBODY:
                return name
    return ""
