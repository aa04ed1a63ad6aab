"""Gather the sentences of a script into parts, and choose the pause before each. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.text.numerals import SCALES, SMALL, TENS, ordinal
from app.engine.speech.text.pronounce import count_signs

_NONVERBAL = re.compile(r"\([^()]{1,40}\)")
_LETTER = re.compile(r"\b[B-HJ-Z]\b")
NAME_BYTES = 3
"""A letter read by its name takes as long as a word of so many bytes more."""
SENTENCE_S: Final = 0.3
CLAUSE_S: Final = 0.1
"""Parts pause for SENTENCE_S after a sentence, and this long where one had to be cut."""
SHORT: Final = 0.3
"""A part below this share of the length to aim at is short: it is joined to a neighbour, if both fit."""


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: int
    text: str
    name: str = ""
    """Speakers have names in a script with a cast."""

    def __str__(self) -> str:
        return f"[{self.name or f'S{self.speaker}'}] {self.text}"


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float
    layout: bool = False
    """True: a paragraph, a heading or a break means it, and no mark. Beside a mark it counts nothing, of two the longer one counts."""


@dataclass(frozen=True, slots=True)
class ScriptPart:
    """The text spoken in one run of the model."""

    turns: tuple[Turn, ...]
    seconds: float
    """The seconds are only forecast."""
    pause_before_s: float = 0.0
    model: str = ""
    """It speaks the part; empty stands for the request's."""
    volume_db: float = 0.0
    pace: float = 1.0

    @property
    def text(self) -> str:
        return " ".join(map(str, self.turns))

    @property
    def speakers(self) -> frozenset[int]:
        return frozenset(turn.speaker for turn in self.turns)


def group_speakers(parts: Sequence[ScriptPart]) -> list[int]:
    """Return for each part the first of its group of speakers: those whom parts have together were spoken in one breath, and belong as loud beside each
    other as they are."""
    groups = list[frozenset[int]]()
    for part in parts:
        together = part.speakers.union(*(each for each in groups if each & part.speakers))
        groups = [*(each for each in groups if not each & together), together]
    return [min(each) for part in parts for each in groups if each & part.speakers]


def estimate_seconds(text: str, limits: VoiceLimits = DIA) -> float:
    """Estimate the time this text takes to speak; a laugh or a sigh counts one second."""
    spoken, nonverbals = _NONVERBAL.subn("", text)
    names = 0 if limits.letters is None else len(_LETTER.findall(spoken)) * NAME_BYTES
    return (len(spoken.encode()) + names) / limits.bytes_per_s + nonverbals


def forecast_seconds(turns: Iterable[Turn], limits: VoiceLimits) -> float:
    """Forecast how long a part of these turns lasts, silence at its ends included."""
    if limits.letters is None or limits.signs_per_s is None:
        return limits.silence_s + sum(estimate_seconds(turn.text, limits) for turn in turns)
    return limits.silence_s + count_signs((turn.text for turn in turns), limits.letters) / limits.signs_per_s


@dataclass(frozen=True, slots=True)
class _Atom:
    """What is not cut any more: a sentence, or a piece of one."""

    turn: Turn
    seconds: float
    bytes: int
    ends: bool
    """True: a sentence ends with it."""


@dataclass(slots=True)
class _Stretch:
    """What is spoken between two pauses."""

    pause_s: float
    layout: bool
    turns: list[Turn]
    seconds: float = 0.0


def gather_parts(marks: Iterable[Turn | Pause], limits: VoiceLimits) -> tuple[list[ScriptPart], float]:
    """Gather turns into parts, each with the pause before it; return the pause after the last, too."""
    stretches = [_Stretch(0.0, False, [])]
    for mark in marks:
        last = stretches[-1]
        if isinstance(mark, Turn):
            last.turns.append(mark)
            last.seconds += estimate_seconds(mark.text, limits)
        elif last.turns:
            stretches.append(_Stretch(mark.seconds, mark.layout, []))
        elif mark.layout and (len(stretches) == 1 or not last.layout):
            continue  # the script's begin, or a pause that was asked for
        elif mark.layout:
            last.pause_s = max(last.pause_s, mark.seconds)
        else:
            last.pause_s, last.layout = (0.0 if last.layout else last.pause_s) + mark.seconds, False
    after = stretches.pop() if len(stretches) > 1 and not stretches[-1].turns else _Stretch(0.0, False, [])
    joined = _join_short(stretches, limits)
    parts = [part for stretch in joined if stretch.turns for part in _balance(stretch, limits)]
    return parts, after.pause_s if not after.layout or not parts else 0.0


def _join_short(stretches: list[_Stretch], limits: VoiceLimits) -> list[_Stretch]:
    """Join a paragraph or heading that is too short for the voice to speak alone to the next one, the last to the one before."""
    joined: list[_Stretch] = []
    for stretch in stretches:
        last = joined[-1] if joined else None
        if (
            last is not None
            and stretch.layout
            and min(last.seconds, stretch.seconds) < limits.part_least_s
            and (last.seconds < limits.part_least_s or stretch is stretches[-1])
        ):
            last.turns += stretch.turns
            last.seconds += stretch.seconds
        else:
            joined.append(stretch)
    return joined


def _balance(stretch: _Stretch, limits: VoiceLimits) -> Iterator[ScriptPart]:
    """Divide a stretch without pauses into parts: whole turns if they fit, whole sentences where a turn is too long, cut ones if they must be."""
    groups: list[list[_Atom]] = [[]]
    for speaker, turns in groupby(stretch.turns, key=lambda turn: turn.speaker):
        atoms = [atom for turn in turns for atom in _cut(speaker, turn.text, limits)]
        if _sum_seconds(groups[-1]) >= max(limits.part_least_s, 0.001) and not _fits([*groups[-1], *atoms], limits.part_aim_s, limits):
            groups.append([])
        for atom in atoms:
            if groups[-1] and not _fits([*groups[-1], atom], limits.part_aim_s, limits):
                groups.append([])
            groups[-1].append(atom)
    pause_s = stretch.pause_s
    for group in _even_out(groups, limits):
        spoken = tuple(_merge_neighbours(group))
        yield ScriptPart(spoken, forecast_seconds(spoken, limits), pause_s)
        pause_s = SENTENCE_S if group[-1].ends else CLAUSE_S


def _even_out(groups: list[list[_Atom]], limits: VoiceLimits) -> list[list[_Atom]]:
    """Join a part that is too short to the one before it, or give both an equal share."""
    evened: list[list[_Atom]] = []
    short_s = max(limits.part_least_s, SHORT * limits.part_aim_s)
    for group in groups:
        both = [*evened[-1], *group] if evened else []
        if both and min(_sum_seconds(evened[-1]), _sum_seconds(group)) < short_s:
            evened[-1:] = _share(both, limits) or [evened[-1], group]
        else:
            evened.append(group)
    return evened


def _share(atoms: list[_Atom], limits: VoiceLimits) -> list[list[_Atom]]:
    """Return one part of these sentences, else two of about the same length, cut within a sentence where the voice needs it; none if neither fits."""
    if _fits(atoms, limits.part_most_s, limits):
        return [atoms]
    half_s = _sum_seconds(atoms) / 2
    cut = [each for atom in atoms for each in _cut(atom.turn.speaker, atom.turn.text, limits, half_s, atom.ends)]
    for offered in (atoms, cut) if limits.part_least_s else (atoms,):
        cuts = [
            at for at in range(1, len(offered)) if all(_fits(side, limits.part_most_s, limits) for side in (offered[:at], offered[at:]))
        ]
        if cuts:
            at = min(cuts, key=lambda at: abs(_sum_seconds(offered[:at]) - half_s))
            shorter_s = min(_sum_seconds(offered[:at]), _sum_seconds(offered[at:]))
            if shorter_s >= limits.part_least_s and shorter_s > min(_sum_seconds(atoms[:1]), _sum_seconds(atoms[-1:])):
                return [offered[:at], offered[at:]]
    return []


def _merge_neighbours(atoms: list[_Atom]) -> Iterator[Turn]:
    """Merge consecutive sentences of one speaker."""
    for speaker, same in groupby((atom.turn for atom in atoms), key=lambda turn: turn.speaker):
        yield Turn(speaker, " ".join(turn.text for turn in same))


def _sum_seconds(atoms: list[_Atom]) -> float:
    return sum(atom.seconds for atom in atoms)


def _fits(atoms: list[_Atom], most_s: float, limits: VoiceLimits) -> bool:
    return (
        limits.silence_s + _sum_seconds(atoms) <= most_s
        and sum(atom.bytes + 1 for atom in atoms) - 1 <= _limit_bytes(limits)
        and (limits.speakers_a_part >= limits.speakers or len({atom.turn.speaker for atom in atoms}) <= limits.speakers_a_part)
    )


def _limit_bytes(limits: VoiceLimits) -> int:
    """Return the byte limit: half of the encoder's text is reserved for the previous part, which carries the voices
    over; a closing tag is included."""
    return (limits.bytes_most // 2 if limits.carries else limits.bytes_most) - len(" [S1]")


def _cut(speaker: int, text: str, limits: VoiceLimits, most_s: float | None = None, ends: bool = True) -> list[_Atom]:
    """Return a sentence whole if the voice can speak it, else in pieces."""
    room = _limit_bytes(limits) - len("[S1] ")
    whole_s = limits.part_most_s if most_s is None else most_s
    most, aim = (max(1, min(int((each_s - limits.silence_s) * limits.bytes_per_s), room)) for each_s in (whole_s, limits.part_aim_s))

    def measure(piece: str) -> float:
        return max(estimate_seconds(piece, limits) * limits.bytes_per_s, len(piece.encode()))

    pieces = [*cut_sentence(text, min(aim, most), most, measure)]
    return [
        _Atom(
            Turn(speaker, piece), estimate_seconds(piece, limits), len(f"[S{speaker}] {piece}".encode()), ends and place == len(pieces) - 1
        )
        for place, piece in enumerate(pieces)
    ]


_JOINING: Final = "and|but|or|nor|for|so|yet|because|although|though|while|when|where|which|who|whom|whose|that|if|as|until|unless|than|then|since|after|before"
_RELATING: Final = "with|without|from|into|through|to|in|on|at|of|by|over|under|between|among|about|against|like"
_BEGINNING: Final = (
    "a|an|the|this|these|those|his|her|its|my|our|your|their|he|she|it|they|we|you|i|there|then|not|no|some|every|each|all|one"
)
_AFTER_NO_RELATING: Final = "".join(rf"(?<!\b{word}\s)" for word in _RELATING.split("|"))
_MARK = re.compile(r"""(?:[;:!?]|(?<=[a-z]{3})\.|\.\.\.)["')\]]*+(?=\s)|(?<=\s)-{1,2}(?=\s)""")
_JOINED_CLAUSE = re.compile(rf""",["')]*+(?=\s(?:{_JOINING})\b)""")
_COMMA = re.compile(rf""",["')]*+(?=\s(?:(?:{_RELATING}|{_BEGINNING})\b|\w++(?<=ing)\b))""")
_LISTING_COMMA = re.compile(r""",["')]*+(?=\s)""")
"""Such commas also stand between two adjectives, as in "a slow, ceremonious pace"."""
_JOINING_WORD = re.compile(rf"\s(?=(?:(?:{_RELATING}) (?=wh))?+(?:{_JOINING})\b){_AFTER_NO_RELATING}")
_RELATING_WORD = re.compile(rf"\s(?=(?:{_RELATING})\b)")
_BLANK = re.compile(r"\s")
CUTS: Final = (
    (_MARK, 0.0), (_JOINED_CLAUSE, 0.05), (_COMMA, 0.15), (_JOINING_WORD, 0.3), (_LISTING_COMMA, 0.4), (_RELATING_WORD, 0.5), (_BLANK, 0.8),
)  # fmt: skip
"""Each says where to cut, and what it costs, beside how far it lies from where equal pieces would end, as a share of their length."""
_NUMERALS: Final = [*SMALL, *TENS, *(name for _, name in SCALES), *(ordinal(each) for each in range(1, 20)), "point", "oh"]
_NUMERAL: Final = rf"(?:{'|'.join(_NUMERALS)})\b"
_NUMBER: Final = rf"{_NUMERAL}(?:[ -](?:and )?{_NUMERAL})*+"
_COUNTED: Final = "pounds?|shillings?|pence|penny|dollars?|cents?|euros?|yen|feet|foot|inch|inches|ounces?|stone|hours?|minutes?|seconds?|degrees?|percent"
_AMOUNT = re.compile(
    rf"\b{_NUMBER}(?:,? (?:{_COUNTED})\b(?:,? (?:and )?{_NUMBER} (?:{_COUNTED})\b)*+| (?!(?:{_JOINING}|{_RELATING})\b)\w++)?+"
    rf"|(?<![\w$£€.,])[$£€]?\d\S{{0,30}}+(?: (?=[^\s\d]{{0,2}}\d|(?:{_COUNTED})\b)\S{{1,30}}+)++"
)
"""It finds an amount in words or figures, with its units or what is counted."""
AMOUNT_MOST: Final = 60
"""So many letters on either side of a place are looked at for one."""
LEAST: Final = 0.4
"""No piece is shorter than this share of an equal one where there is a choice."""


def cut_sentence(text: str, aim: int, most: int, measure: Callable[[str], float]) -> Iterator[str]:
    """Yield pieces of about `aim`, none longer than `most`, as `measure` tells; both are letters where each measures one."""
    left, begun = measure(text), 0
    while left > most:
        head = text[begun : begun + most]
        while (size := measure(head)) > most:
            head = head[: max(1, min(len(head) - 1, int(len(head) * most / size)))]
            if len(head) == 1:
                break
        share = left / math.ceil(left / aim) / max(measure(head), 1.0) * len(head)
        end = _find_best(head, text[begun + len(head) : begun + len(head) + AMOUNT_MOST], share)
        yield text[begun : begun + end].strip()
        begun += end
        left = measure(text[begun:]) if len(text) - begun <= 4 * most else left - measure(head[:end])
    if rest := text[begun:].strip():
        yield rest


def _find_best(head: str, after: str, share: float) -> int:
    """Return where to end the first piece, of which `after` follows: within an amount or a word where there is no other place."""
    places = [
        (price + abs(end - share) / share + (1.0 if end < LEAST * share else 0.0), end)
        for pattern, price in CUTS
        for found in pattern.finditer(head)
        if head[: (end := found.end())].strip()
    ]
    ends = [end for _, end in sorted(places)]
    return next((end for end in ends if not _is_in_amount(head + after, end)), ends[0] if ends else max(1, min(len(head), int(share))))


def _is_in_amount(text: str, place: int) -> bool:
    near = _AMOUNT.finditer(text, max(0, place - AMOUNT_MOST), place + AMOUNT_MOST)
    return any(found.start() < place < found.end() for found in near)
