"""Read from the words around a quote who says it: "said Anna", "Dann rief Ben:", "李雷笑着说". Pure; takes bounded time for each quote."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from app.engine.speech.text.cast_tags import may_be_name
from app.engine.speech.text.said_words import (
    ADDRESSING,
    ARTICLES,
    BODILY,
    BODY,
    CHINESE_FAMILY,
    CHINESE_HOW,
    CHINESE_NOBODY,
    CHINESE_NOT_GIVEN,
    CHINESE_SOUNDS,
    CHINESE_SURNAMES,
    CHINESE_TITLES,
    CHINESE_VERBS,
    CLAUSES,
    GESTURES,
    HEARD,
    JAPANESE_NOBODY,
    JAPANESE_TITLES,
    JAPANESE_VERBS,
    PARTICLES,
    RELATIONS,
    SAYINGS,
    SILENT,
    Saying,
)

WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*+|\S")
EASTERN: Final = ("zh", "ja")
DASHES: Final = frozenset("—–―")
STOPS: Final = frozenset(".!?…")
_BEFORE_SAYING: Final = DASHES | frozenset(",!?…")
"""In a line that begins with a dash, who speaks is told after one of these."""
_GENITIVE: Final = ("'s", "’s", "s'", "s’")
GESTURE_MOST: Final = 6
"""A gesture takes so many words behind its verb: shook her head."""
_NAMED_MOST: Final = 2
"""So many words of a name are taken, besides titles."""

_HAN: Final = r"[\u3400-\u9fff]"
CHINESE_MOST: Final = 13
"""A name has so many signs at most, the point between two of them with it."""
_GIVEN: Final = rf"(?:(?![{CHINESE_NOT_GIVEN}]){_HAN})"
_CHINESE_NAME: Final = (
    rf"({CHINESE_SURNAMES}{CHINESE_TITLES}|{CHINESE_SURNAMES}{_GIVEN}{{1,2}}|[老小阿]{_GIVEN}|{CHINESE_FAMILY}|"
    rf"[{CHINESE_SOUNDS}]{{2,6}}(?:·[{CHINESE_SOUNDS}]{{1,6}})?)"
)
_CHINESE_FULL: Final = re.compile(rf"({CHINESE_SURNAMES})({_GIVEN}{{2}})")
_CHINESE_SAYS: Final = rf"(?:[对對向跟朝冲衝]{_HAN}{{1,5}}?)?(?:{CHINESE_HOW}){{0,2}}，?{CHINESE_VERBS}"
_CHINESE_AFTER: Final = re.compile(rf"[，,]?\s?{_CHINESE_NAME}{_CHINESE_SAYS}")
_CHINESE_BEFORE: Final = re.compile(rf"(?:^|[，,；\s]){_CHINESE_NAME}{_CHINESE_SAYS}[^，。：]{{0,8}}[：:，,]?$")
_CHINESE_GIVEN_AFTER: Final = re.compile(rf"[，,]?\s?({_GIVEN}{{2}}){_CHINESE_SAYS}")
_CHINESE_GIVEN_BEFORE: Final = re.compile(rf"(?:^|[，,；\s])({_GIVEN}{{2}}){_CHINESE_SAYS}[^，。：]{{0,8}}[：:，,]?$")
_CHINESE_SAID: Final = re.compile(CHINESE_VERBS)
_CHINESE_OTHER: Final = re.compile("[他她它我你您咱谁誰]")
_JAPANESE_NAME: Final = rf"([ァ-ヶー・]{{2,12}}{JAPANESE_TITLES}?|[々一-鿿]{{1,4}}?{JAPANESE_TITLES}|[々一-鿿]{{2,4}})"
_JAPANESE_SAYS: Final = rf"{_JAPANESE_NAME}[はが][^、。「」]{{0,12}}?{JAPANESE_VERBS}"
_JAPANESE_AFTER: Final = re.compile(rf"と?、?{_JAPANESE_SAYS}")
_JAPANESE_BEFORE: Final = re.compile(rf"^{_JAPANESE_SAYS}[^、。]{{0,4}}[。、：]?$")
_JAPANESE_AROUND: Final = re.compile(rf"^{_JAPANESE_NAME}[はが]、?$")
_JAPANESE_SAID: Final = re.compile(JAPANESE_VERBS)


def read_clauses(language: str, before: str, after: str, known: Collection[str], ends: str) -> str | None:
    """Return who says a quote by the sentence before it and the words after it; empty: somebody without a name, or either of two; None: they do not tell.
    `known`: names of the text, which count where an unknown word might be none. `ends`: the quote's last sign; behind a comma its sentence goes on."""
    if language == "ja":
        return _read_japanese(before, after)
    if language == "zh":
        return _read_chinese(before, after, known)
    row = SAYINGS[language]
    words, told = WORD.findall(after), ends == ","
    following = ":," if ends == "." else ":"  # "Yes." Ben said: "No." is said of the second
    alone = bool(words) and not told and words[-1] in following
    found = None if alone else read_after(row, words, known, told)
    first = None if found is not None and told else _read_before(row, find_last_sentence(row, WORD.findall(before)), known)
    if found is None or (found and not told and first not in (None, found)):
        return first if not found or words[0][0].isupper() else ""  # Anna said, “Yes.” Ben laughed.
    return "" if found and not told and _is_beat(language, words, ends, before, found) else found


def _is_beat(language: str, words: Sequence[str], ends: str, before: str, name: str) -> bool:
    """Tell whether a sentence behind a quote may be told of who hears it: Anna smiled. “Yes.” Ben laughed."""
    row = SAYINGS[language]
    verb = _skip(row, words, read_name(row, words, 0)[1])
    if not words[0][0].isupper() or verb >= len(words):
        return False
    silent = words[verb + 1 : verb + 2] and words[verb + 1] in SILENT
    own = not any(map(str.isalnum, before)) or not {*name.split()}.isdisjoint(WORD.findall(before))
    return bool(silent) or (not own and (ends == "." or words[verb] in GESTURES[language]))


def list_known(language: str, names: Collection[str]) -> frozenset[str]:
    """Return these names, and the words of each without its titles and particles."""
    unnamed = PARTICLES | (SAYINGS[language].titles if language in SAYINGS else frozenset[str]())
    words = (word for name in names for word in split_name(name) if len(word) > 1)
    return frozenset((*names, *(word for word in words if word.lower().rstrip(".") not in unnamed)))


def split_name(name: str) -> list[str]:
    """Return the words of a name; of a Chinese one that has two signs besides its surname, both."""
    chinese = _CHINESE_FULL.fullmatch(name)
    return [*chinese.groups()] if chinese is not None else name.split()


def read_gesture(language: str, before: str, quote: str, after: str, known: Collection[str]) -> str | None:
    """Return who says a quote by the sentence before it, in which this one smiles or nods: Anna smiled. “Yes.” None where somebody else is in it, or
    begins the sentence behind the quote, or where the quote calls this one: Anna nodded. “Yes, Anna?”"""
    if language not in SAYINGS:
        return None
    row, told = SAYINGS[language], WORD.findall(before.rstrip("".join(STOPS) + " "))
    words = find_last_sentence(row, told)
    name, at = read_name(row, words, 0)
    gesture = _skip(row, words, at)
    rest = [word.lower() for word in words[gesture + 1 :]]
    if name not in known or not {*words[gesture : gesture + 1]} & GESTURES[language] or len(rest) > GESTURE_MOST:
        return None
    if words[gesture] in BODILY and BODY.isdisjoint(rest):
        return None
    if not {*WORD.findall(quote)}.isdisjoint({*name.split()} & {*known}):
        return None
    others = CLAUSES | row.pronouns | row.ands | row.verbs | GESTURES[language] | HEARD | {","}
    follows = WORD.findall(after)[:1]
    somebody = any(_is_name(row, word) and word not in name.split() for word in follows) or {*map(str.lower, follows)} & ARTICLES[language]
    named = any(word in known or (language != "de" and _is_name(row, word)) for word in words[gesture + 1 :])
    return None if named or somebody or not others.isdisjoint(rest) else name


def is_alone(language: str, told: str, name: str, known: Collection[str], begins: bool) -> bool:
    """Tell whether what is told between two quotes is about nobody but this one, apart from others in a sentence that names this one first: "said Anna,
    looking at Ben". `begins`: its first word begins a sentence."""
    if language in EASTERN:
        return any(map(str.isalnum, told)) and len([each for each in re.split("[。！？.]", told) if each.strip()]) == 1
    row, own = SAYINGS[language], {*name.split()}
    first, named, last = True, False, ""
    for word in WORD.findall(told):
        named = named or word in own
        stem = word.replace("'", "’").partition("’")[0]
        whose = word.endswith(_GENITIVE) and stem in known and stem not in own  # Anna’s brother nodded
        somebody = begins and (whose or _is_name(row, word) or stem.lower() in ARTICLES[language])
        other = (word in known and not (first and named)) or somebody or (not first and word in row.verbs)
        if other and word not in own:
            return False
        stops = word in STOPS and last.lower() not in row.titles
        begins = stops or (begins and word.lower() in row.leads)
        first, last = first and not stops, word
    return any(map(str.isalnum, told))


def read_dashed(language: str, line: str) -> list[tuple[int, int, str]]:
    """Return what is said in a line that begins with a dash, where it names its speaker: — Oui, dit Anna. —Sí —dijo Ana—. Ya voy."""
    if language not in SAYINGS:
        return []
    row, found = SAYINGS[language], [*WORD.finditer(line)]
    words = [each[0] for each in found]
    place = next((place for place in range(2, len(words)) if words[place - 1] in _BEFORE_SAYING and _says(row, words, place)), 0)
    verb = _skip(row, words, place)
    at = _skip(row, words, verb + 1)
    name = _read_subject(row, words, verb) if place and _is_verb(row, words, verb) else ""
    if not name:
        return []
    dashed = words[place - 1] in DASHES
    said = [(found[0].start(), found[place - 1].start() if dashed else found[place - 1].end(), name)]
    after = read_name(row, words, at)[1]
    if dashed:
        after = next((later for later in range(after, len(words)) if words[later] in DASHES), len(words)) + 1
        while after < len(words) and not words[after][0].isalnum() and words[after] not in "¿¡":
            after += 1
    else:
        after = (
            after + 1
            if words[after : after + 1] == [","] and words[after + 1 : after + 2] and words[after + 1] not in row.asides
            else len(words)
        )
    if after < len(words):
        ends = (later for later in range(after, len(words)) if words[later] in DASHES)
        told = (later for later in ends if not line[found[later].end() : found[later].end() + 1].isspace())
        said.append((found[after].start(), next((found[later].start() for later in told), len(line)), name))
    return said


def _says(row: Saying, words: Sequence[str], at: int) -> bool:
    """Tell whether somebody is said to speak here, also where a pronoun is joined to the verb: dit-il."""
    verb = _skip(row, words, at)
    return words[at][0].islower() and (_is_verb(row, words, verb) or (verb < len(words) and words[verb].partition("-")[0] in row.verbs))


def read_after(row: Saying, words: Sequence[str], known: Collection[str], told: bool) -> str | None:
    at = 0
    while at < len(words) and words[at] in DASHES | {",", "-"}:
        told, at = True, at + 1
    if at == len(words):
        return None
    asked = words[at - 1] in DASHES if at else False
    verb = _skip(row, words, at)
    if _is_verb(row, words, verb):
        return _read_subject(row, words, verb, known)
    if not row.name_first:
        return "" if told or words[at][0].islower() or asked else None
    name, after = read_name(row, words, at)
    says = _is_verb(row, words, _skip(row, words, after))
    if name and says and (told or name in known):
        return name
    if told or words[at][0].islower() or (words[at].lower() in row.pronouns and says):
        return ""
    return None


def _read_before(row: Saying, words: list[str], known: Collection[str]) -> str | None:
    colon = bool(words) and words[-1] == ":"
    while words and words[-1] in (":", ","):
        words = words[:-1]
    begins = 0
    while begins < len(words) and (words[begins].lower() in row.leads or words[begins] == ","):
        begins += 1
    if begins == len(words):
        return None
    name, after = read_name(row, words, begins)
    verb = _skip(row, words, after)
    if name and _is_verb(row, words, verb) and (row.articles or name in known):
        follows = words[_skip(row, words, verb + 1) :][:1]
        inverted = not row.name_first and bool(follows) and (follows[0][0].isupper() or follows[0].lower() in row.pronouns)
        rest = words[verb:]
        others = "," in rest and any(_is_name(row, word) for word in rest[rest.index(",") :])
        others = others or any(_is_name(row, word) and _is_verb(row, rest, at) for at, word in enumerate(rest, 1))
        return name if not others and (not inverted or name in known) else ""
    first = _skip(row, words, begins)
    if _is_verb(row, words, first):
        return _read_subject(row, words, first, known)
    if words[begins].lower() not in row.pronouns and name in known and _is_told(row, words, after, colon, known):
        return name
    clause = max((place for place, word in enumerate(words) if word == ","), default=-1) + 1
    if not row.name_first and clause and _is_verb(row, words, _skip(row, words, clause)):
        return _read_subject(row, words, _skip(row, words, clause), known)
    return "" if colon or any(_is_verb(row, words, place) for place in range(len(words))) else None


def _is_told(row: Saying, words: Sequence[str], after: int, colon: bool, known: Collection[str]) -> bool:
    """Tell whether a sentence that begins with a name leads to what this one says: "Anna put down her cup and said", with nobody else in it."""
    rest = words[after:]
    if any(word.lower() in row.pronouns or word in known or word == ":" for word in rest):
        return False
    last = next((place for place in range(len(rest) - 1, -1, -1) if rest[place].lower() in row.ands), None)
    return colon or (last is not None and _is_verb(row, rest, _skip(row, rest, last + 1)))


def _read_subject(row: Saying, words: Sequence[str], verb: int, known: Collection[str] = ()) -> str:
    """Return the name behind a verb; empty where somebody else is meant, or two are."""
    at = _skip(row, words, verb + 1)
    name, after = read_name(row, words, at)
    bare = name == " ".join(words[at:after]) and after == at + 2 and words[at].lower() not in row.titles
    if bare and words[verb].lower() in ADDRESSING and name not in known:
        return words[at]
    both = name and words[after : after + 1] and words[after].lower() in row.ands and read_name(row, words, _skip(row, words, after + 1))[0]
    return "" if both else name


def read_name(row: Saying, words: Sequence[str], at: int) -> tuple[str, int]:
    """Return the name at this place with its titles, or the last of them where a tag holds no more, and where it ends; an empty one where there is none
    that a tag holds."""
    parts, named = list[str](), 0
    while at < len(words) and words[at].lower() in row.titles and named == 0:
        dotted = words[at + 1 : at + 2] == ["."]
        parts.append(words[at][0].upper() + words[at][1:] + "." * dotted)
        at += 1 + dotted
    titled = len(parts)
    if titled and words[at - 1].lower() in RELATIONS and words[at : at + 1] and words[at] in PARTICLES:
        return "", at
    while at < len(words) and named < _NAMED_MOST:
        joined = at
        while joined < min(len(words), at + 2) and words[joined] in PARTICLES and parts:
            joined += 1
        if joined == len(words) or not _is_name(row, words[joined]):
            break
        parts += [*words[at:joined], words[joined][0].upper() + words[joined][1:]]
        at, named = joined + 1, named + 1
    names = (" ".join(parts), " ".join(parts[max(0, titled - 1) :])) if named else ()
    return next(filter(may_be_name, names), ""), at


def _is_name(row: Saying, word: str) -> bool:
    noble = word[1:2] in ("'", "’") and word[0] in "dD"
    begins = word[2:3] if noble else word[0]
    return begins.isupper() and len(word) > 1 and not word.endswith(_GENITIVE) and word.lower() not in row.pronouns | row.fixed | row.leads


def _is_verb(row: Saying, words: Sequence[str], at: int) -> bool:
    """Tell whether a verb of saying stands here, with a pronoun before its apostrophe or behind its hyphen: s’écria, disse-lhe."""
    if at >= len(words):
        return False
    verb, _, joined = words[at].lower().replace("'", "’").rpartition("’")[2].partition("-")
    return verb in row.verbs and (not joined or joined in row.between)


def _skip(row: Saying, words: Sequence[str], at: int) -> int:
    while at < len(words) and words[at] in row.between:
        at += 1
    return at


def find_last_sentence(row: Saying, words: list[str]) -> list[str]:
    """Return the words of a text after its last full stop that belongs to no title."""
    for place in range(len(words) - 1, -1, -1):
        if words[place] in STOPS and not (place and words[place] == "." and words[place - 1].lower() in row.titles):
            return words[place + 1 :]
    return words


def _read_chinese(before: str, after: str, known: Collection[str]) -> str | None:
    sentence = re.split("[。！？…]", before)[-1]
    told = "" if after.endswith(("：", ":")) else after
    named = _CHINESE_AFTER.match(told), _CHINESE_BEFORE.search(sentence)
    given = _CHINESE_GIVEN_AFTER.match(told), _CHINESE_GIVEN_BEFORE.search(sentence)
    ways = (each for pair in zip(named, given, strict=True) for each in pair)
    found = next((each for each in ways if each and (each not in given or each[1] in known)), None)
    if found is not None:
        return found[1] if found[1] not in CHINESE_NOBODY else ""
    name = next((sentence[:length] for length in (6, 5, 4, 3, 2) if sentence[:length] in known), "")
    rest = sentence[len(name) :]
    others = (rest[begin : begin + length] in known for begin in range(len(rest)) for length in range(2, CHINESE_MOST + 1))
    if name and sentence.endswith(("：", ":")) and not _CHINESE_OTHER.search(rest) and not any(others):
        return name
    return "" if _CHINESE_SAID.search(re.split("[，。！？]", after.lstrip("，"))[0]) or _CHINESE_SAID.search(sentence) else None


def _read_japanese(before: str, after: str) -> str | None:
    sentence = before.rstrip("。").rpartition("。")[2] + "。" * before.endswith("。")
    said = _JAPANESE_SAID.search(after.partition("。")[0])
    found = _JAPANESE_AFTER.match(after) or _JAPANESE_BEFORE.search(sentence)
    if found is None and said is not None and after.startswith("と"):
        found = _JAPANESE_AROUND.search(sentence)
    if found is not None:
        return found[1] if found[1] not in JAPANESE_NOBODY else ""
    return "" if said is not None or after.startswith("と") else None
