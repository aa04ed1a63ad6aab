"""Say words differently: a list of how they are spelt to be spoken, applied to a script before anything else reads it. The longest match wins, in
one linear pass, never inside of tags; and the list as a file of its own and as CSV."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.bounded_json import Bounds, parse_json
from app.base.disk_faults import word_fault
from app.base.path_checks import size_bytes
from app.base.paths import Home
from app.base.regular_file import open_regular
from app.base.sentence import say, say_to_all
from app.base.stored_json import is_right, read_stored
from app.base.trouble import BadRequest, Trouble
from app.engine.models.voice_limits import NONVERBALS
from app.engine.speech.text.cast_tags import find_tags
from app.engine.speech.text.script_characters import PLAIN
from app.engine.speech.text.script_edits import UNPARTED, WORD
from app.engine.speech.text.script_marks import MARK

Rows = tuple[tuple[str, str], ...]
"""Each word comes with how it is spelt to be spoken."""
ROWS_MOST: Final = 50_000
WORD_MOST, SPOKEN_MOST, TOKENS_MOST = 60, 200, 8
CSV_BYTES: Final = 8 << 20
HEAD: Final = ("word", "spoken")
SKIPPED_TOLD: Final = 5
FIELD: Final = Bounds(most_bytes=64 << 10, depth=2, values=4000)
"""The field of Speak, which has the words of this script, may hold no more."""
_TOKEN: Final = re.compile(f"{WORD.pattern}|[^\\w\\s]")
_APOSTROPHES: Final = str.maketrans("’‘ʼ", "'''")
_GOES_ON: Final = re.compile(r"['’‘ʼ](?![sS]\b)\w")
"""After a match, this means that the word goes on, as can't; Anna's does not."""
_ELIDED: Final = re.compile(r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu|un|quest|quell|(?:d|n|s)?[ae]ll|coll|o)['’‘ʼ]", re.IGNORECASE)
"""French and Italian join a short word to the next one so, as in d'Anna and l'eau."""
_LAST_WORD: Final = re.compile(r"(?:^|(?<=[\W_]))[^\W_]+['’‘ʼ]$")
_BETWEEN: Final = "\0"
_JOINED: Final = re.compile(rf"[^\W_{UNPARTED}]{{2}}")
_NONVERBAL: Final = re.compile(r"\(\s*+([a-z ]{1,20})\)")


class Said(NamedTuple):
    """A stretch of a script that is said differently."""

    begin: int
    end: int
    spoken: str


class StoredList(TypedDict):
    rows: dict[Annotated[str, Field(min_length=1, max_length=WORD_MOST)], Annotated[str, Field(min_length=1, max_length=SPOKEN_MOST)]]


STORED: Final = TypeAdapter(StoredList)
_FIELD_ROWS: Final = TypeAdapter(dict[str, str])


class _Table(NamedTuple):
    exact: Mapping[tuple[str, ...], str]
    loose: Mapping[tuple[str, ...], str]
    """Words that are not in capitals match however they are written."""
    lengths: Mapping[str, tuple[int, ...]]
    """Words that begin with this token have so many, the longest first."""


@functools.lru_cache(maxsize=8)
def _build(rows: Rows) -> _Table:
    exact, loose, lengths = dict[tuple[str, ...], str](), dict[tuple[str, ...], str](), dict[str, set[int]]()
    for word, spoken in rows:
        key = tuple(token for token, _, _ in _tokenize(word))
        if not key:
            continue
        exact[key] = spoken
        if not (word.isupper() and len(word) > 1):
            loose.setdefault(tuple(each.casefold() for each in key), spoken)
        lengths.setdefault(key[0].casefold(), set()).add(len(key))
    return _Table(exact, loose, {first: tuple(sorted(all_, reverse=True)) for first, all_ in lengths.items()})


def _tokenize(text: str, begin: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield words and signs; each but the first with a blank before it if one stands there, so that C++ is not C + +."""
    last = -1
    for found in _TOKEN.finditer(text, begin):
        gap = text[last : found.start()] if 0 <= last < found.start() else ""
        yield ("" if not gap else " " if gap.isspace() else "\0") + _read_token(found), found.start(), found.end()
        last = found.end()


def _read_token(found: re.Match[str]) -> str:
    return found[0] if found[0].isascii() else unicodedata.normalize("NFC", found[0]).translate(_APOSTROPHES)


def find_said(text: str, rows: Rows, known: Collection[str] = ()) -> list[Said]:
    """Return what of a script is said differently, in order. `known`: names of the cast, whose tags stay."""
    if not rows:
        return []
    table, closed, found, at, after = _build(rows), _list_closed(text, known), list[Said](), 0, 0
    for first in _TOKEN.finditer(text):
        bare, begin = _read_token(first), first.start()
        if begin < at or (lengths := table.lengths.get(bare.casefold())) is None:
            continue
        tokens = [*itertools.islice(_tokenize(text, begin), lengths[0])]
        for length in lengths:
            if length > len(tokens):
                continue
            key = tuple(each for each, _, _ in tokens[:length])
            spoken = table.exact.get(key) or table.loose.get(tuple(each.casefold() for each in key))
            end = tokens[length - 1][2]
            while after < len(closed) and closed[after][1] <= begin:
                after += 1
            inside = after < len(closed) and closed[after][0] < end
            if spoken is None or inside or _GOES_ON.match(text, end) or _ends_word(text, begin):
                continue
            if key not in table.exact and bare[0].isupper() and spoken[0].islower():
                spoken = spoken[0].upper() + spoken[1:]
            found.append(Said(begin, end, spoken))
            at = end
            break
    return found


def _ends_word(text: str, begin: int) -> bool:
    """Tell whether this is the end of a word, as the t of can't; Anna in d'Anna is a word of its own."""
    if begin < 2 or text[begin - 1] not in "'’‘ʼ" or not text[begin - 2].isalnum():
        return False
    before = _LAST_WORD.search(text[max(0, begin - 12) : begin])
    return before is None or not _ELIDED.fullmatch(before[0])


def _list_closed(text: str, known: Collection[str]) -> list[tuple[int, int]]:
    """Return what nobody says: tags, pauses and sounds."""
    sounds = [found.span() for found in _NONVERBAL.finditer(text) if found[1].strip() in NONVERBALS]
    return sorted([*((each.begin, each.end) for each in find_tags(text, known)), *(each.span() for each in MARK.finditer(text)), *sounds])


def respell(text: str, rows: Rows, known: Collection[str] = ()) -> str:
    """Return a script as it is to be read."""
    pieces, at = list[str](), 0
    for begin, end, spoken in find_said(text, rows, known):
        pieces += [text[at:begin], spoken]
        at = end
    return "".join([*pieces, text[at:]])


def keep_used(text: str, rows: Rows, known: Collection[str] = ()) -> Rows:
    """Return the rows that a script needs."""
    found = {
        " ".join(token.strip(" \0").casefold() for token, _, _ in _tokenize(text[begin:end]))
        for begin, end, _ in find_said(text, rows, known)
    }
    return (
        tuple(row for row in rows if " ".join(token.strip(" \0").casefold() for token, _, _ in _tokenize(row[0])) in found) if found else ()
    )


def restore_spelling(texts: Iterable[str], text: str, rows: Rows, known: Collection[str] = ()) -> list[str]:
    """Return spoken sentences of a script, in order, as it is written: for readers. What is spoken otherwise than it is spelt, as figures are, stays."""
    spoken_texts = [*texts]
    shown = _BETWEEN.join(spoken_texts)
    pieces, at = list[str](), 0
    said = find_said(text, rows, known)
    plain = {spelt: " ".join(unicodedata.normalize("NFC", spelt).translate(PLAIN).split()) for spelt in {each.spoken for each in said}}
    places = _find_words(shown, {*plain.values()})
    for begin, end, spelt in said:
        spoken = plain[spelt]
        ahead = places[spoken]
        while ahead and ahead[0] < at:
            ahead.popleft()
        if ahead:
            pieces += [shown[at : ahead[0]], text[begin:end]]
            at = ahead.popleft() + len(spoken)
    return "".join([*pieces, shown[at:]]).split(_BETWEEN) if spoken_texts else []


def _find_words(text: str, wanted: Collection[str]) -> Mapping[str, deque[int]]:
    """Return where each of these stands that is no part of another word. Signs of Chinese and Japanese are words by themselves."""
    spans = defaultdict[str, set[tuple[int, int]]](set)
    """Each first word leads to how far within them it begins, and how long they are."""
    for each in wanted:
        if first := WORD.search(each):
            spans[first[0]].add((first.start(), len(each)))
    places = defaultdict[str, deque[int]](deque)
    for word in WORD.finditer(text):
        for offset, length in spans.get(word[0], ()):
            begin, end = word.start() - offset, word.start() - offset + length
            if begin >= 0 and text[begin:end] in wanted and not _JOINED.fullmatch(text[end - 1 : end + 1]):
                places[text[begin:end]].append(begin)
    return places


def check_row(word: str, spoken: str) -> tuple[str, str]:
    """Return a row as it is kept; raise a Trouble for what is none."""
    word, spoken = " ".join(word.split()), " ".join(spoken.split())
    tokens = [*_tokenize(word)]
    if (
        not any(WORD.match(token.lstrip(" \0")) for token, _, _ in tokens)
        or len(word) > WORD_MOST
        or len(tokens) > TOKENS_MOST
        or _has_marks(word)
    ):
        raise BadRequest(
            say_to_all(
                "says.word",
                "{word} cannot be in the list. It takes words of up to {most} letters, without brackets.",
                word=word[:WORD_MOST] or "-",
                most=WORD_MOST,
            )
        )
    if not WORD.search(spoken) or len(spoken) > SPOKEN_MOST or _has_marks(spoken):
        raise BadRequest(
            say_to_all(
                "says.spoken",
                "Write how {word} is spoken, in up to {most} letters and without brackets, as another word would be spelt.",
                word=word,
                most=SPOKEN_MOST,
            )
        )
    if word == spoken:
        raise BadRequest(say_to_all("says.itself", "{word} would be spoken as itself. Spell it as it sounds.", word=word))
    return word, spoken


def _has_marks(text: str) -> bool:
    return not text.isprintable() or bool(set(text) & set("[]()\\"))


def require_no_circle(rows: Mapping[str, str]) -> None:
    """Raise a Trouble for words that are spoken as each other."""
    spoken = {word.casefold(): said.casefold() for word, said in rows.items()}
    done = set[str]()
    for start in spoken:
        path, now = dict[str, None](), start
        while now in spoken and now not in done and now not in path:
            path[now] = None
            now = spoken[now]
        if now in path:
            names = tuple([*path][[*path].index(now) :])
            raise BadRequest(
                say_to_all("says.circle", "These words would be spoken as each other: {words}. Spell each as it sounds.", words=names[:8])
            )
        done.update(path)


def read_everywhere(home: Home) -> dict[str, str]:
    """Read the words that are said differently in every script."""
    file = home.pronunciations
    try:
        found = file.stat()
        return _read(file, found.st_mtime_ns, found.st_size)
    except OSError:
        return {}


@functools.lru_cache(maxsize=2)
def _read(file: Path, _written_ns: int, _size: int) -> dict[str, str]:
    rows: dict[str, str] = read_stored(file, STORED).get("rows", {})
    return rows


def store_everywhere(home: Home, rows: Mapping[str, str]) -> None:
    if len(rows) > ROWS_MOST:
        raise BadRequest(
            say_to_all("says.many", "The list would have {count} {count:word|words}; the limit is {most}.", count=len(rows), most=ROWS_MOST)
        )
    require_no_circle(rows)
    if home.pronunciations.is_file():
        atomic_write.write_text(name_before(home), home.pronunciations.read_text("utf-8"))
    atomic_write.write_text(home.pronunciations, json.dumps({"rows": dict(rows)}, ensure_ascii=False, indent=0))


def take_back(home: Home) -> None:
    """Put the list back as it was before the last change; once more, and that change is there again."""
    before = name_before(home)
    now = home.pronunciations.read_text("utf-8") if home.pronunciations.is_file() else '{"rows": {}}'
    atomic_write.write_text(home.pronunciations, before.read_text("utf-8") if before.is_file() else '{"rows": {}}')
    atomic_write.write_text(before, now)


def name_before(home: Home) -> Path:
    return home.pronunciations.with_name("pronunciations.before.json")


def read_field(held: str) -> Rows:
    """Read what the field of Speak holds; what is wrong in it is left out."""
    try:
        values = parse_json(held, FIELD) if held else {}
    except ValueError:
        return ()
    rows = list[tuple[str, str]]()
    for word, spoken in values.items() if is_right(_FIELD_ROWS, values) else ():
        try:
            rows.append(check_row(word, spoken))
        except Trouble:
            continue
    return tuple(rows)


def write_own(home: Home, rows: Rows) -> str:
    """Return a script's own words as the field holds them: those that are said otherwise everywhere, or not at all."""
    everywhere = read_everywhere(home)
    own = {word: spoken for word, spoken in rows if everywhere.get(word) != spoken}
    return json.dumps(own, ensure_ascii=False) if own else ""


def choose_rows(home: Home, text: str, own: Rows, known: Collection[str] = ()) -> Rows:
    """Return what a script needs of its own words and of those that are said so everywhere; its own go first."""
    has = {word.casefold() for word, _ in own}
    everywhere = tuple(row for row in read_everywhere(home).items() if row[0].casefold() not in has)
    return keep_used(text, (*own, *everywhere), known)


def read_csv(data: bytes) -> tuple[dict[str, str], list[str]]:
    """Read a list from elsewhere: two columns, separated by commas, semicolons or tabs. Return its rows, and the first of those that were left out."""
    if len(data) > CSV_BYTES:
        raise BadRequest(say_to_all("says.csv-large", "The list is larger than {most} MB. Divide it.", most=CSV_BYTES >> 20))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise BadRequest(say_to_all("says.csv-text", "The list is no text in UTF-8. Save it as CSV, UTF-8.")) from fault
    first = text.partition("\n")[0]
    sign = max("\t;,", key=first.count)
    rows, skipped = dict[str, str](), list[str]()
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=sign), 1):
            if not any(row) or (number == 1 and tuple(each.strip().casefold() for each in row[:2]) == HEAD):
                continue
            try:
                word, spoken = check_row(row[0], row[1] if len(row) > 1 else "")
            except Trouble:
                skipped.append(str(number))
                continue
            rows[word] = spoken
            if len(rows) > ROWS_MOST:
                raise BadRequest(
                    say_to_all(
                        "says.many", "The list would have {count} {count:word|words}; the limit is {most}.", count=len(rows), most=ROWS_MOST
                    )
                )
    except csv.Error as fault:
        raise BadRequest(
            say_to_all("says.csv", "The list cannot be read ({fault}). Save it as CSV with two columns.", fault=str(fault))
        ) from fault
    if not rows:
        raise BadRequest(
            say_to_all("says.csv-none", "The list has no line with a word and how it is spoken. Save it as CSV with these two columns.")
        )
    require_no_circle(rows)
    return rows, skipped


def read_csv_file(path: Path) -> dict[str, str]:
    """Read a list that a command names."""
    try:
        if size_bytes(path) > CSV_BYTES:
            raise BadRequest(say_to_all("says.csv-large", "The list is larger than {most} MB. Divide it.", most=CSV_BYTES >> 20))
        with open_regular(path) as file:
            return read_csv(file.read(CSV_BYTES + 1))[0]
    except OSError as fault:
        raise Trouble(
            say("says.file", "{file} cannot be opened ({fault}). Check its name.", file=str(path), fault=word_fault(fault))
        ) from fault


def write_csv(rows: Mapping[str, str]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([HEAD, *rows.items()])
    return file.getvalue()
