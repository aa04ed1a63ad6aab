"""Make a flowing text of printed pages: without their numbers and running heads, with the words joined that lines divide. Pure."""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Final

from app.engine.speech.book.headed_text import Line, find_level
from app.engine.speech.book.pdf_process import LOWERED, RAISED, SIGN, SMALLER
from app.engine.speech.text.chapter_names import CHAPTER

OFTEN: Final = 3
"""What stands at the same edge of as many pages is no text."""
BAND: Final = 0.3
"""Where this share of the pages has a running head, whatever stands there is one."""
NEAR: Final = 3.0
"""Lines of two pages are at the same height if they lie within so many points."""
LARGER: Final = 1.12
"""A heading's letters are larger than the text's by more than this factor."""
HEADING_MOST: Final = 120
GAP: Final = 1.35
"""A gap between paragraphs is larger than that between lines by this factor."""
SHORT: Final = 0.75
"""A line that is shorter, compared with the others, may be a paragraph's last."""
TALKED: Final = 0.75
"""Where so many of the lines that begin alike follow the end of a sentence, each begins a paragraph."""
INDENTED_MOST: Final = 4.0
"""A paragraph's first line begins at most so many letters' heights further right."""
_NUMBERED: Final = re.compile(r"(?:page\s|p\.\s?)?\W*(\d{1,4}|[ivxlc]{1,8})(?:\s?(?:/|of)\s?\d{1,4})?\W*", re.IGNORECASE)
NOTE: Final = 0.95
"""A note's letters are smaller than the text's by this factor."""
_RAISED: Final = re.compile(rf"{RAISED}([^{LOWERED}]{{1,3}}){LOWERED}|([\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{{1,3}})")
_OPENS, _CLOSES, _BEGINS_NOTE = r"[\[(（［【〔]?", r"[.)\]、．）］】〕]*+", "(?=[^\\W\\d_]|[\"'(\u2018\u201c「『《〈])"
_NOTE: Final = re.compile(rf"{_OPENS}(?:{_RAISED.pattern}|{SIGN.pattern}){_CLOSES}\s*+{_BEGINS_NOTE}")
_LISTED: Final = re.compile(
    rf"{_OPENS}(?:{_RAISED.pattern}|(\d{{1,4}}|[\u2460-\u2473])){_CLOSES}(?:\s++|(?<!\d)(?=[「『《〈“\u3040-\u30ff\u3400-\u9fff]))"
    rf"{_BEGINS_NOTE}"
)
"""No blank stands before Chinese and Japanese, but a sign that closes: 1月 is January."""
_NOTES: Final = re.compile(
    r"(?:(?:end|foot)?notes?(?: and (?:references|sources)| to [^.,;!?]{1,40})?|"
    r"(?:anmerkungen|endnoten|fu(?:ß|ss)noten)(?: (?:und quellen|zu[mr]? [^.,;!?]{1,40}))?|"
    r"notes? de (?:bas de page|fin)|notas?|note|(?:eind|voet)?noten|примечания|[尾脚腳]?[注註]|[注註][释釋釈記]|주석?|미주)\s?[.:：。]?",
    re.IGNORECASE,
)
NOTES_WITHIN: Final = 4
"""Notes begin so few lines below their heading; the chapter's may stand between."""
_AFTER_SIGN: Final = frozenset(".,;:!?)]\u201d\u2019\"'\u2026\u00bb")
"""No blank goes before these where they follow a raised sign."""
_POWER_BEHIND: Final = re.compile(
    r"(?:[)\]]|(?<!\d)\d{1,3}|(?<![A-Za-z\u00c0-\u024f'\u2019])(?:[A-Za-z]|[cdkmn\u00b5\u03bc]m|mc|ft|in|yd|mi)|(?<![\u0370-\u03ff])[\u0370-\u03ff])\s?$"
)
"""What is raised behind a bracket, a short number, a letter or a unit may be a power, as in mc\u00b2 and 20 m\u00b2."""
_TEXT_AHEAD: Final = re.compile(r"\s?[/\u2044]|[A-Za-z\u00c0-\u04ff]")
"""What is raised before one of these is text: half a fraction, as in 1/2, the number of an element or of a verse."""
_ENDS: Final = (".", "!", "?", '"', "\u201d", "\u2019", *"\u3002\uff01\uff1f\u300d\u300f\uff09")
_NOTE_ENDS: Final = (*_ENDS, ")", "]", "\u2026", "\u00bb", "\u203a", "\u201c", *"0123456789")
_HYPHENS: Final = ("-", "\u2010", "\u00ad")
_LIGATURES: Final = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_RADICALS: Final = {each: unicodedata.normalize("NFKC", chr(each)) for each in range(0x2E80, 0x2FD6)} | str.maketrans(
    "⺠⻁⻄⻅⻆⻉⻋⻑⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻬⻮⻰", "民虎西见角贝车長长门青韦页风飞食马骨鬼鱼鸟卤麦黄齐齿龙"
)
"""Browsers write parts of signs for the whole ones that look alike: a page reads the same, and nobody knows how to say it."""
_SIGNS: Final = _LIGATURES | _RADICALS
_EASTERN: Final = r"[\u3001-\u30ff\u3400-\u9fff\uff01-\uff60]"
_BLANK: Final = re.compile(rf"(?<=[\u201c\u2018]) (?={_EASTERN})|(?<={_EASTERN}) (?=[\u201d\u2019])")
_NO_BLANK: Final = re.compile(rf"{_EASTERN}[\u201d\u2019]?\n[\u201c\u2018]?{_EASTERN}")
"""Two lines are joined without one."""
_ROMAN: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class PrintedLine:
    text: str
    size: float
    left: float
    low: float
    """Places are in points, from the page's left and lower edge."""
    page: int


@dataclass(frozen=True, slots=True)
class Entry:
    """Of the table of contents."""

    level: int
    title: str
    page: int
    low: float | None
    """It stands this high on the page, where that is known."""


def flow(pages: Sequence[Sequence[PrintedLine]], contents: Sequence[Entry]) -> list[Line]:
    """Return paragraphs and headings: those of the table of contents where there is one, else those that are set as such."""
    kept = _drop_notes(
        _drop_edges([_raise([replace(line, text=_BLANK.sub("", line.text.translate(_SIGNS))) for line in page]) for page in pages])
    )
    paragraphs = list(_join(kept))
    levels = sorted(Counter(entry.level for entry in contents).items())
    level = next((each for each, count in levels if count > 1), min((each for each, _ in levels), default=0))
    wanted = [entry for entry in contents if entry.level == level]
    return _part_notes(_put_titles(paragraphs, wanted) if wanted else _find_headings(paragraphs))


def _drop_edges(pages: Sequence[Sequence[PrintedLine]]) -> list[list[PrintedLine]]:
    """Leave out page numbers and running heads: what is at an edge of many pages alike, or counts with them."""
    body = _find_body(line for page in pages for line in page)
    edges = [[(side, line) for side, line in _list_edges(page) if line.size <= LARGER * body] for page in pages]
    alike, counted = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for page in edges:
        alike.update({_name(side, line) for side, line in page})
        counted.update({key for side, line in page if (key := _count_key(side, line)) is not None})
    gone = {
        id(line)
        for page in edges
        for side, line in page
        if _is_counted(side, line, counted, len(pages))
        or (not any(map(str.isdigit, line.text)) and alike[_name(side, line)] >= (OFTEN if line.size > 0.95 * body else 2))
    }
    bands = Counter(_band(side, line) for page in edges for side, line in page if id(line) in gone)
    usual = {band for band, count in bands.items() if count >= max(OFTEN, BAND * len(pages))}
    gone |= {id(line) for page in edges for side, line in page if side in (0, -1) and _band(side, line) in usual}
    return [[line for line in page if id(line) not in gone] for page in pages]


def _raise(page: Sequence[PrintedLine]) -> list[PrintedLine]:
    """Put raised signs that stand as lines of their own into the line that they belong to."""
    made: list[PrintedLine] = []
    within = before = False
    """The last line goes on behind a sign; or begins with one."""
    for line in page:
        last = made[-1] if made else None
        if before and last is not None and _is_raised(last, line):
            made[-1] = replace(line, text=f"{RAISED}{last.text}{LOWERED} {line.text}")
            within = before = False
        elif last is not None and SIGN.fullmatch(line.text) and _is_raised(line, last):
            made[-1] = replace(last, text=f"{last.text}{RAISED}{line.text.strip()}{LOWERED}")
            within, before = True, False
        elif within and last is not None and abs(line.low - last.low) < 1 and line.left > last.left:
            made[-1] = replace(last, text=f"{last.text}{'' if line.text[:1] in _AFTER_SIGN else ' '}{line.text}")
            within = False
        else:
            made.append(line)
            within, before = False, SIGN.fullmatch(line.text) is not None
    return made


def _is_raised(sign: PrintedLine, line: PrintedLine) -> bool:
    return sign.size < SMALLER * line.size and line.low < sign.low < line.low + line.size


def _drop_notes(pages: Sequence[Sequence[PrintedLine]]) -> list[list[PrintedLine]]:
    """Leave out the notes at the foot of pages, in smaller letters, each with the sign that is raised in the page's text, and the raised signs. Where
    anything tells against notes, as in a list, all stays: a note that is read aloud does less harm than a text that is lost. Of notes at the end of a
    chapter or of the book the raised signs go, too; they stay themselves, as they can be left out by their chapter."""
    body = _find_body(line for page in pages for line in page)
    kept: list[tuple[Sequence[PrintedLine], Collection[str]]] = []
    goes_on = False
    """A note of the page before has no end."""
    for page in pages:
        foot = next((place for place in range(len(page), 0, -1) if page[place - 1].size > NOTE * body), 0)
        text, notes = page[:foot], page[foot:]
        lowest = min((line.low for line in text), default=0.0)
        raised = [_read_sign(found) for line in text for found in _RAISED.finditer(line.text) if _may_lead_to_note(found)]
        begins = [_read_sign(found) if (found := _NOTE.match(line.text)) else "" for line in notes]
        first = begun = next((place for place, sign in enumerate(begins) if sign in raised), len(notes))
        while 0 < begun < len(notes) and notes[begun - 1].size == notes[first].size:
            begun -= 1
        signs, below = begins[begun:], notes[begun:]
        if (begun == first or goes_on) and _count_as_notes(signs, raised) and all(line.low < lowest for line in below):
            goes_on = not notes[-1].text.endswith(_NOTE_ENDS)
            text = (*text, *notes[:begun])
        else:
            goes_on, text, signs = False, page, []
        kept.append((text, signs))
    ends, at = _find_endnotes(kept, body), count()
    spoken = ([replace(line, text=_without_signs(line.text, signs, ends[next(at)])) for line in text] for text, signs in kept)
    return [[line for line in page if line.text] for page in spoken]


def _find_endnotes(pages: Iterable[tuple[Sequence[PrintedLine], Collection[str]]], body: float) -> defaultdict[int, set[int]]:
    """Return, by the line's place in the book, where in it numbers are raised that lead to notes at an end: they count from 1, and so do as many lines of
    one size further on. A note alone has to be in smaller letters or below a heading that says so."""
    rows, lists = list[list[tuple[int, int]]](), list[list[float]]()
    """Of each sign, the line's place in the book and its own in the line; of each note its size."""
    begins = list[int]()
    """Lists begin in these lines."""
    headed = -NOTES_WITHIN
    told = set[int]()
    """These lists are ones of notes, also if they have a single one."""
    for at, (line, signs) in enumerate((line, signs) for lines, signs in pages for line in lines):
        if _NOTES.fullmatch(line.text.strip()):
            headed = at
        listed = _LISTED.match(line.text)
        number = _read_sign(listed) if listed is not None else ""
        if number == "1":
            begins.append(at)
            lists.append([line.size])
            if line.size <= NOTE * body or at - headed < NOTES_WITHIN:
                told.add(at)
        elif lists and number == str(len(lists[-1]) + 1) and line.size == lists[-1][0]:
            lists[-1].append(line.size)
        for found in _RAISED.finditer(line.text):
            sign = _read_sign(found)
            if not found.start() or sign in signs or not _may_lead_to_note(found):
                continue
            if sign == "1":
                rows.append([(at, found.start())])
            elif rows and sign == str(len(rows[-1]) + 1):
                rows[-1].append((at, found.start()))
    unused = defaultdict[int, deque[int]](deque)
    for begin, notes in zip(begins, lists, strict=True):
        if len(notes) > 1 or begin in told:
            unused[len(notes)].append(begin)
    ends = defaultdict[int, set[int]](set)
    for row in rows:
        alike = unused[len(row)]
        while alike and alike[0] <= row[-1][0]:
            alike.popleft()
        if alike:
            alike.popleft()
            for place, start in row:
                ends[place].add(start)
    return ends


def _read_sign(found: re.Match[str]) -> str:
    """Return the sign of a note as figures that are not raised."""
    return unicodedata.normalize("NFKC", next(filter(None, found.groups())))


def _may_lead_to_note(found: re.Match[str]) -> bool:
    return not (_POWER_BEHIND.search(found.string[: found.start()]) or _TEXT_AHEAD.match(found.string, found.end()))


def _count_as_notes(begins: Sequence[str], raised: Sequence[str]) -> bool:
    """Tell whether lines begin with the signs of notes: numbers count by one, and none goes on without a raised sign, as those of a list do."""
    signs = [sign for sign in begins if sign in raised]
    numbers = [int(sign) for sign in signs if sign.isdecimal()]
    in_row = all(after == before + 1 for before, after in pairwise(numbers)) and not (numbers and str(numbers[-1] + 1) in begins)
    return bool(signs) and in_row and all(begins.count(sign) <= raised.count(sign) for sign in signs)


def _without_signs(text: str, signs: Collection[str], starts: Collection[int]) -> str:
    """Return the text without those raised signs whose notes are left out, and those that begin at one of these places; the others are text."""

    def drop(found: re.Match[str]) -> str:
        leads = found.start() in starts or (_read_sign(found) in signs and _may_lead_to_note(found))
        return "" if leads else next(filter(None, found.groups()))

    return _RAISED.sub(drop, text).strip()


def _list_edges(page: Sequence[PrintedLine]) -> list[tuple[int, PrintedLine]]:
    """List the two highest and the two lowest lines of a page, each with its place from that edge."""
    lines = sorted(page, key=lambda line: -line.low)
    return [*enumerate(lines[:2]), *((place - len(lines[-2:]), line) for place, line in enumerate(lines[-2:]))]


def _find_body(lines: Iterable[PrintedLine]) -> float:
    """Return the size of most letters."""
    letters = Counter[float]()
    for line in lines:
        letters[line.size] += len(line.text)
    return max(letters, key=lambda size: letters[size], default=0.0)


def _band(side: int, line: PrintedLine) -> tuple[object, ...]:
    return side < 0, round(line.low / NEAR), round(line.size)


def _name(side: int, line: PrintedLine) -> tuple[object, ...]:
    return side < 0, round(line.low / NEAR), line.text.casefold()


def _count_key(side: int, line: PrintedLine) -> tuple[object, ...] | None:
    """Name what a line with a number is like on the pages before and after, where that number counts pages."""
    number = _NUMBERED.fullmatch(line.text)
    found = number or re.search(r"\d{1,4}$|^\d{1,4}", line.text)
    if found is None:
        return None
    value = found[1] if number else found[0]
    words = "" if number else line.text.replace(value, "").casefold()
    return side < 0, words, (int(value) if value.isdecimal() else _read_roman(value)) - line.page


def _is_counted(side: int, line: PrintedLine, counted: Counter[tuple[object, ...]], pages: int) -> bool:
    """A number alone at the lower edge is the page's; elsewhere it has to count."""
    key = _count_key(side, line)
    lowest = side == -1 and _NUMBERED.fullmatch(line.text) is not None
    return key is not None and (lowest or counted[key] >= min(OFTEN, max(2, pages)))


def _read_roman(word: str) -> int:
    values = [_ROMAN[each] for each in word.lower()]
    return sum(-each if after > each else each for each, after in zip(values, [*values[1:], 0], strict=True))


def _join(pages: Sequence[Sequence[PrintedLine]]) -> Iterator[PrintedLine]:
    """Yield paragraphs, each at the place of its first line."""
    lines = [line for page in pages for line in page]
    if not lines:
        return
    pairs = list(pairwise(lines))
    pitches = [round(one.low - other.low, 1) for one, other in pairs if one.page == other.page and one.low > other.low]
    pitch = statistics.mode(pitches) if pitches else 0.0
    usual = statistics.median(len(line.text) for line in lines)
    lefts = {number: _find_margin(page) for number, page in _by_page(lines)}
    joins = _learn_words(lines)
    first, text = lines[0], lines[0].text
    for one, other in pairs:
        if _goes_on(one, other, pitch, usual, lefts):
            text = _join_words(text, other.text, joins)
        else:
            yield replace(first, text=text)
            first, text = other, other.text
    yield replace(first, text=text)


def _find_margin(page: Sequence[PrintedLine]) -> int:
    """Return where the lines of a page begin. Where people talk, most are a paragraph's first, behind the end of another: then lines begin further left."""
    lefts = Counter(round(line.left) for line in page)
    usual = max(lefts, key=lambda left: lefts[left])
    before = [one.text for one, other in pairwise(page) if round(other.left) == usual]
    ends = sum(each.endswith(_NOTE_ENDS) or not _has_words(each) for each in before)
    inside = [left for left in lefts if lefts[left] > 1 and usual - INDENTED_MOST * page[0].size < left < usual]
    return min(inside, default=usual) if ends >= TALKED * len(before) else usual


def _by_page(lines: Iterable[PrintedLine]) -> Iterable[tuple[int, list[PrintedLine]]]:
    found = defaultdict[int, list[PrintedLine]](list)
    for line in lines:
        found[line.page].append(line)
    return found.items()


def _goes_on(one: PrintedLine, other: PrintedLine, pitch: float, usual: float, lefts: dict[int, int]) -> bool:
    if not one.size * 0.9 <= other.size <= one.size * 1.1 or CHAPTER.fullmatch(one.text) or CHAPTER.fullmatch(other.text):
        return False
    ended = one.text.endswith(_ENDS) or not _has_words(one.text)
    if one.page == other.page and 0 <= one.low - other.low <= GAP * max(pitch, 1.2 * one.size):
        return not _is_indented(other, lefts) or (_is_indented(one, lefts) and not ended)
    above = one.page == other.page and other.low < one.low  # a gap; else another column or page
    return not above and not _is_indented(other, lefts) and not (ended and len(one.text) < SHORT * usual)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _is_indented(line: PrintedLine, lefts: dict[int, int]) -> bool:
    return line.left > lefts[line.page] + 0.6 * line.size


def _learn_words(lines: Iterable[PrintedLine]) -> frozenset[str]:
    """Return all words within lines, those with hyphens too: they tell whether one that a line divides has one."""
    return frozenset(word.casefold() for line in lines for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", line.text)[:-1])


def _join_words(text: str, more: str, known: frozenset[str]) -> str:
    if _NO_BLANK.search(f"{text[-2:]}\n{more[:2]}"):
        return f"{text}{more}"
    if not text.endswith(_HYPHENS) or not text[-2:-1].isalpha() or not more[:1].isalpha():
        return f"{text} {more}"
    before, after = re.findall(r"[^\W\d_]+", text)[-1], re.findall(r"[^\W\d_]+", more)[0]
    whole, divided = f"{before}{after}".casefold(), f"{before}-{after}".casefold()
    keeps = text[-1] != "\u00ad" and whole not in known and (divided in known or more[0].isupper())
    return f"{text[:-1]}-{more}" if keeps else f"{text[:-1]}{more}"


def _put_titles(paragraphs: Sequence[PrintedLine], wanted: Sequence[Entry]) -> list[Line]:
    """Put each title of the table of contents before the paragraph with which it begins, and leave out the same words set as its heading."""
    titles: dict[int, str] = {}
    headings = set[int]()
    for entry in wanted:
        own = [place for place, each in enumerate(paragraphs) if each.page == entry.page]
        same = next((place for place in own if _plain(paragraphs[place].text) == _plain(entry.title)), None)
        below = [place for place in own if entry.low is None or paragraphs[place].low <= entry.low]
        later = next((place for place, each in enumerate(paragraphs) if each.page > entry.page), len(paragraphs))
        place = same if same is not None else min(below, default=later)
        if same is not None:
            headings.add(same)
        titles[place] = f"{titles[place]}. {entry.title}" if place in titles else entry.title
    made: list[Line] = []
    for place, each in enumerate(paragraphs):
        if place in titles:
            made.append(Line(titles[place], 1))
        if place not in headings:
            made.append(Line(each.text))
    return made


def _part_notes(lines: list[Line]) -> list[Line]:
    """Let notes that have one heading in the whole book be a chapter, which can be left out: it may be set smaller than those of chapters, and be missing
    in the table of contents."""
    headings = [place for place, line in enumerate(lines) if _NOTES.fullmatch(line.text.strip())]
    for place in headings if len(headings) == 1 else ():
        listed = (_LISTED.match(line.text) for line in lines[place + 1 : place + 1 + NOTES_WITHIN])
        if any(found is not None and _read_sign(found) == "1" for found in listed):
            return [*lines[:place], replace(lines[place], level=find_level(lines)), *lines[place + 1 :]]
    return lines


def _plain(words: str) -> str:
    return "".join(each for each in words.casefold() if each.isalnum())


def _find_headings(paragraphs: Sequence[PrintedLine]) -> list[Line]:
    """Take what says that a chapter begins as headings, else what is set larger than the text; several in a row are one."""
    body = _find_body(paragraphs)
    large = {place for place, each in enumerate(paragraphs) if each.size > LARGER * body and len(each.text) < HEADING_MOST}
    short = [(place, each.text) for place, each in enumerate(paragraphs) if len(each.text) < HEADING_MOST]
    spoken = {place for place, text in short if CHAPTER.fullmatch(text)}
    says_so = len(spoken) > 1
    if says_so:
        spoken |= {place for place, text in short if place in large and _NOTES.fullmatch(text)}
    sizes = sorted({paragraphs[place].size for place in large}, reverse=True)
    made: list[Line] = []
    for place, each in enumerate(paragraphs):
        level = (2 if place in spoken else 0) if says_so else sizes.index(each.size) + 1 if place in large else 0
        follows = place and place in large and made[-1].level and paragraphs[place - 1].page == each.page
        if follows and len(made[-1].text) + len(each.text) < HEADING_MOST:
            made[-1] = Line(f"{made[-1].text.rstrip('.:')}. {each.text}", made[-1].level)
        else:
            made.append(Line(each.text, level))
    return made
