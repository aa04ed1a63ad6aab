"""Gather the turns of a script into parts, split where a speaker would breathe. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from app.engine.text.voice_limits import DIA, VoiceLimits

_NONVERBAL = re.compile(r"\([^()]{1,40}\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?:[\"')]*)\s+")
_CLAUSE_END = re.compile(r"(?<=[,;:])\s+")
_LETTER = re.compile(r"\b[B-HJ-Z]\b")
NAME_BYTES = 3
"""A letter read by its name takes as long as a word of so many bytes more."""
_WORD_END = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: int
    text: str

    def __str__(self) -> str:
        return f"[S{self.speaker}] {self.text}"


@dataclass(frozen=True, slots=True)
class ScriptPart:
    """The text spoken in one run of the model."""

    turns: tuple[Turn, ...]
    seconds: float
    """An estimate."""
    pause_before_s: float = 0.0

    @property
    def text(self) -> str:
        return " ".join(map(str, self.turns))

    @property
    def speakers(self) -> frozenset[int]:
        return frozenset(turn.speaker for turn in self.turns)


def estimate_seconds(text: str, limits: VoiceLimits = DIA) -> float:
    """Estimate the time this text takes to speak; a laugh or a sigh counts one second."""
    spoken, nonverbals = _NONVERBAL.subn("", text)
    names = 0 if limits.letters is None else len(_LETTER.findall(spoken)) * NAME_BYTES
    return (len(spoken.encode()) + names) / limits.bytes_per_s + nonverbals


def gather_parts(marks: Iterable[Turn | float], limits: VoiceLimits) -> tuple[list[ScriptPart], float]:
    """Gather turns into parts, each with the pause after its last turn."""
    parts: list[ScriptPart] = []
    group: list[Turn] = []
    pause_s = 0.0

    def close() -> None:
        nonlocal group, pause_s
        if group:
            parts.extend(_balance(group, pause_s, limits))
            group, pause_s = [], 0.0

    for mark in marks:
        if isinstance(mark, Turn):
            group.append(mark)
        else:
            close()
            pause_s += mark
    close()
    return parts, pause_s


def _balance(turns: list[Turn], pause_s: float, limits: VoiceLimits) -> list[ScriptPart]:
    """Divide a stretch without pauses into parts: whole turns if they fit, sentences where a turn is too long."""
    groups: list[list[Turn]] = [[]]
    for turn in turns:
        filled = _sum_seconds(groups[-1], limits)
        whole = filled + estimate_seconds(turn.text, limits) <= limits.part_aim_s and _fits([*groups[-1], turn], limits)
        if groups[-1] and not whole and filled >= limits.part_least_s:
            groups.append([])
        atoms = [turn] if whole else [Turn(turn.speaker, piece) for piece in _split_text(turn.text, limits)]
        for atom in atoms:
            more = [*groups[-1], atom]
            if groups[-1] and (_sum_seconds(more, limits) > limits.part_aim_s or not _fits(more, limits)):
                groups.append([])
            groups[-1].append(atom)
    if len(groups) > 1 and _sum_seconds(groups[-1], limits) < limits.part_least_s:
        groups[-2:] = _share_last(groups[-2] + groups[-1], limits)
    parts = [ScriptPart(tuple(_merge_neighbours(group)), _sum_seconds(group, limits)) for group in groups]
    return [replace(parts[0], pause_before_s=pause_s), *parts[1:]]


def _share_last(atoms: list[Turn], limits: VoiceLimits) -> list[list[Turn]]:
    """Join a last part that is too short to the one before it, or give it an equal share."""
    if _sum_seconds(atoms, limits) <= limits.part_most_s and _fits(atoms, limits):
        return [atoms]
    atoms = [Turn(atom.speaker, piece) for atom in atoms for piece in _split_text(atom.text, limits)]
    cuts = [at for at in range(1, len(atoms)) if _fits(atoms[:at], limits) and _fits(atoms[at:], limits)]
    at = min(cuts, key=lambda at: abs(_sum_seconds(atoms[:at], limits) - _sum_seconds(atoms[at:], limits)))
    return [atoms[:at], atoms[at:]]


def _merge_neighbours(atoms: list[Turn]) -> Iterator[Turn]:
    """Merge consecutive turns of one speaker."""
    for index, atom in enumerate(atoms):
        if not index or atoms[index - 1].speaker != atom.speaker:
            same = [atom.text]
            for other in atoms[index + 1 :]:
                if other.speaker != atom.speaker:
                    break
                same.append(other.text)
            yield Turn(atom.speaker, " ".join(same))


def _sum_seconds(turns: list[Turn], limits: VoiceLimits) -> float:
    return sum(estimate_seconds(turn.text, limits) for turn in turns)


def _fits(turns: list[Turn], limits: VoiceLimits) -> bool:
    return len(" ".join(map(str, turns)).encode()) <= _limit_bytes(limits)


def _limit_bytes(limits: VoiceLimits) -> int:
    """Return the byte limit: half of the encoder's text is reserved for the previous part, which carries the voices
    over; a closing tag is included."""
    return (limits.bytes_most // 2 if limits.carries else limits.bytes_most) - len(" [S1]")


def _split_text(text: str, limits: VoiceLimits) -> list[str]:
    """Split at sentences; if too long, at clauses, then words, then letters."""
    most = min(int(limits.part_aim_s * limits.bytes_per_s), _limit_bytes(limits) - len("[S1] "))
    pieces = _split_at(text, _SENTENCE_END)
    for end in (_CLAUSE_END, _WORD_END):
        pieces = [part for piece in pieces for part in (_pack(_split_at(piece, end), most) if _count_bytes(piece) > most else [piece])]
    return [letters for piece in pieces for letters in _split_letters(piece, most)]


def _split_at(text: str, end: re.Pattern[str]) -> list[str]:
    """Split between the match's signs and its blanks, so that no sign is lost."""
    places = [0, *(found.start() + len(found[0].rstrip()) for found in end.finditer(text)), len(text)]
    return [piece for a, b in pairwise(places) if (piece := text[a:b].strip())]


def _pack(pieces: list[str], most: int) -> list[str]:
    """Pack pieces into as few texts as possible, none longer than `most` bytes unless a single piece is."""
    packed: list[str] = []
    for piece in pieces:
        if packed and _count_bytes(packed[-1]) + 1 + _count_bytes(piece) <= most:
            packed[-1] += f" {piece}"
        else:
            packed.append(piece)
    return packed


def _split_letters(piece: str, most: int) -> Iterator[str]:
    """Split a single word that is longer than the limit."""
    while _count_bytes(piece) > most:
        letters = piece.encode()[: max(1, most)].decode(errors="ignore") or piece[0]
        yield letters
        piece = piece[len(letters) :]
    yield piece


def _count_bytes(text: str) -> int:
    return len(text.encode())
