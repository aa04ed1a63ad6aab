"""Subtitles of a script's sound: when each sentence is said, known from its parts and their pauses, as SRT and WebVTT. A result's file holds them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from app.base.stored_json import is_right
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.text.sentences import split_sentences
from app.engine.speech.text.turn_ends import find_turn_ends
from app.engine.speech.text.turns import ScriptPart, Turn

Format = Literal["srt", "vtt"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
MEDIA: Final = {"srt": "application/x-subrip", "vtt": "text/vtt"}
LINE_MOST: Final = 42
"""A line has at most so many letters, and two are shown at once; a longer sentence is shown bit by bit."""
WIDE: Final = "\u3000"
"""From here on signs have no blanks between them: Chinese and Japanese."""
_WIDE_SIGN: Final = re.compile(r"[\u3000-\u9fff\uf900-\ufaff\uff01-\uff60]")
_STOPS: Final = "\u3001\u3002\uff0c\uff01\uff1f\uff1b\uff1a"
_CLOSING: Final = _STOPS + "\u300d\u300f\u300b\uff09\u201d\u2019\u2026\u30fc"
_OPENING: Final = "\u300c\u300e\u300a\uff08\u201c\u2018"
_SIGNS: Final = rf"(?:[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]++|{_WIDE_SIGN.pattern})[{_CLOSING}]{{0,6}}+"
_LETTERS: Final = r"[^\s\u3000-\u9fff\uf900-\ufaff\uff01-\uff60]++"
_UNIT: Final = re.compile(rf"\s?+(?:[{_OPENING}]{{0,3}}+(?:{_SIGNS}|{_LETTERS})|\S)")
"""A line may break before each of these: a word, or a wide sign with the marks that must not stand alone."""
_TAGGED: Final = re.compile(r"\[[^\[\]]{1,40}\] ?")


@dataclass(frozen=True, slots=True)
class Cue:
    begin_s: float
    end_s: float
    text: str
    words: tuple[Cue, ...] = ()
    """Words are here where it is known when each is said."""


class StoredCue(TypedDict):
    begin: float
    end: float
    text: str


_STORED: Final = TypeAdapter(list[StoredCue])


def list_cues(parts: Sequence[ScriptPart], files: Sequence[Path], speed: float) -> list[Cue]:
    """List the sentences of these parts with their times in the sound that `join` makes of their files."""
    cues, at_s = list[Cue](), 0.0
    for place, (part, file) in enumerate(zip(parts, files, strict=True)):
        samples, rate = join_sound.read_spoken(file)
        lasts_s = len(samples) / rate
        if part.pause_before_s > 0:
            at_s += part.pause_before_s + (0.0 if place else join_sound.FADE_S)
        elif place:
            at_s -= join_sound.FADE_S  # it fades in over the end of the one before
        turns = list_turns(part)
        ends = find_turn_ends(samples, rate, turns, lasts_s) if len(turns) > 1 else ()
        own = speed * part.pace
        times_s = [0.0, *(end / rate for end in ends), *[lasts_s] * (len(turns) - len(ends))]
        spans_s = [(at_s + begin / own, at_s + end / own) for begin, end in pairwise(times_s)]
        cues += [Cue(*span, turn.text) for span, turn in zip(spans_s, turns, strict=True)]
        at_s += lasts_s / own
    return cues


def list_turns(part: ScriptPart) -> list[Turn]:
    """List the sentences of a part, each as a turn; each becomes a cue."""
    return [Turn(turn.speaker, each) for turn in part.turns for each in split_sentences(turn.text)]


def add_to(settings: dict[str, Any], cues: Sequence[Cue], coding: str) -> dict[str, Any]:
    """Return a result's settings with its cues, where its format has room for them."""
    both = settings | {sound.CUES: [{"begin": round(cue.begin_s, 3), "end": round(cue.end_s, 3), "text": cue.text} for cue in cues]}
    return both if sound.has_room_for(both, coding) else settings


def read_cues(path: Path) -> list[Cue]:
    """Read the cues that a result's file holds; none if it is an earlier Hearth's or another program's."""
    stored: Any = (sound.read_tag(path) or {}).get(sound.CUES)
    return [Cue(each["begin"], each["end"], each["text"]) for each in stored] if is_right(_STORED, stored) else []


def write(cues: Sequence[Cue], wanted: Format) -> str:
    """Return the cues as a file of this format. Where words are known, SRT has each alone, and WebVTT has their times within the sentences."""
    if wanted == "srt":
        cues = [each for cue in cues for each in cue.words or (cue,)]
    shown = [piece for cue in cues for piece in (_split_words(cue) if cue.words else split_long(cue))]
    if wanted == "srt":
        return "".join(
            f"{number}\n{_word_time(cue.begin_s, ',')} --> {_word_time(cue.end_s, ',')}\n{cue.text}\n\n"
            for number, cue in enumerate(shown, 1)
        )
    written = (f"{_word_time(cue.begin_s, '.')} --> {_word_time(cue.end_s, '.')}\n{_mark_words(cue)}\n\n" for cue in shown)
    return "WEBVTT\n\n" + "".join(written)


def _split_words(cue: Cue) -> list[Cue]:
    """Split what two lines do not hold, between words."""
    pieces: list[list[Cue]] = [[]]
    for word in cue.words:
        if pieces[-1] and sum(len(each.text) + 1 for each in pieces[-1]) + len(word.text) > 2 * LINE_MOST:
            pieces.append([])
        pieces[-1].append(word)
    begins_s = [cue.begin_s, *(piece[0].begin_s for piece in pieces[1:])]
    ends_s = [*begins_s[1:], cue.end_s]
    return [Cue(begin_s, end_s, cue.text, tuple(piece)) for piece, begin_s, end_s in zip(pieces, begins_s, ends_s, strict=True)]


def _mark_words(cue: Cue) -> str:
    """Return the text of a cue, each word after the time when it is said."""
    if not cue.words:
        return html.escape(cue.text, quote=False)
    ends = [*accumulate(len(word.text) + 1 for word in cue.words)]
    broken = min(range(len(ends)), key=lambda place: abs(2 * ends[place] - ends[-1])) if ends[-1] > LINE_MOST + 1 else len(ends)
    marked = ""
    for place, word in enumerate(cue.words):
        together = marked[-1:] >= WIDE and word.text[0] >= WIDE
        gap = "\n" if place == broken + 1 else " " if marked and not together else ""
        marked += f"{gap}<{_word_time(word.begin_s, '.')}>{html.escape(word.text, quote=False)}"
    return marked


def strip_tags(text: str) -> str:
    """Return what is said of a part: its words without the speakers' tags."""
    return " ".join(_TAGGED.sub("", text).split())


def split_long(cue: Cue) -> list[Cue]:
    """Split what two lines do not hold, at blanks or between signs that need none; each piece lasts as long as its letters take."""
    text = strip_tags(cue.text)
    wide = _width(text)
    pieces, most = [""], -(-wide // -(-wide // (2 * LINE_MOST) or 1))
    for unit in _UNIT.findall(text):
        slack = 0 if unit[0] >= WIDE else LINE_MOST // 2
        if pieces[-1] and _width(pieces[-1]) + _width(unit) > max(most, LINE_MOST) + slack:
            pieces.append("")
        pieces[-1] += unit if pieces[-1] else unit.lstrip()
    letters, made, begin_s = sum(map(len, pieces)) or 1, [], cue.begin_s
    for piece in pieces:
        end_s = begin_s + (cue.end_s - cue.begin_s) * len(piece) / letters
        made.append(Cue(begin_s, end_s, _break_line(piece)))
        begin_s = end_s
    return made


def _width(text: str) -> int:
    """Signs of Chinese and Japanese are twice as wide as letters."""
    return len(text) + len(_WIDE_SIGN.findall(text))


def _break_line(text: str) -> str:
    """Break a text into two lines of about one length, if one does not hold it; between wide signs rather after a comma."""
    if (wide := _width(text)) <= LINE_MOST:
        return text
    places = [found.start() for found in _UNIT.finditer(text)][1:]
    middle = min(places, key=lambda place: abs(2 * _width(text[:place]) - wide) - (text[place - 1] in _STOPS) * wide // 4, default=0)
    return f"{text[:middle]}\n{text[middle:].lstrip()}" if middle else text


def _word_time(seconds: float, mark: str) -> str:
    thousandths = max(0, round(seconds * 1000))
    minutes, left = divmod(thousandths, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{left // 1000:02d}{mark}{left % 1000:03d}"
