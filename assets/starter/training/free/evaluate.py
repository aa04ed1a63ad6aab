"""Judges a free voice beside flite on sentences that it never met: words, digits, ends, lost or repeated clauses, pitches; states the gate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ..voice import speak
from ..voice.evaluate import span_s
from ..voice.judge import word_errors
from ..voice.prompts import median_hz
from . import spelling, texts
from .flite import OWN, Flite
from .listener import Sound, heard
from .phones import sounded

GATE = {"words_wer_above_flite": 0.08, "digits_wer": 0.01, "unended_share": 0.0, "lost_or_repeated_share": 0.0, "semitones_too_near": 0.0, "voices_missed": 0.0}
SENTENCES, DIGITS = 200, 60
BATCH = 16
LEAST_SEMITONES, LOST_WORDS = 5.0, 4
SHORTEST, LONGEST = 0.7, 1.4
"""Of flite's length: what lies outside was cut short or said twice."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was heard of one sentence from the voice and from flite."""

    text: str
    voice: list[str]
    flite: list[str]
    length_ratio: float
    ended: bool

    @property
    def wanted(self) -> list[str]:
        return texts.words_of(self.text)

    @property
    def lost(self) -> bool:
        """Whether a clause is missing or said twice: the length tells, or a run of words that flite's judge heard and the voice's did not."""
        run = max((len(list(group)) for there, group in groupby(word in self.voice for word in self.flite if word in self.wanted) if not there), default=0)
        return not SHORTEST <= self.length_ratio <= LONGEST or (run >= LOST_WORDS and len(self.voice) <= len(self.flite) - LOST_WORDS)


def asked(part: int = texts.TESTED) -> tuple[list[str], list[str]]:
    """Sentences, and digits."""
    half = SENTENCES // 2
    return [*texts.held_out(part, "example", half), *texts.held_out(part, "quote", half)], texts.held_out(part, "digits", DIGITS)


def said(voice: speak.Voice, folder: Path, sentences: Sequence[str], seed: int, signs: Sequence[str] = ("",)) -> list[speak.Spoken]:
    """By both speakers in turn, a batch at a time, sentences of like length together."""
    scripts = [f"[S{number % 2 + 1}] {signs[number % len(signs)]}{sounded(text, folder / 'sounds.gz')}" for number, text in enumerate(sentences)]
    order = sorted(range(len(scripts)), key=lambda number: len(scripts[number]))
    found: dict[int, speak.Spoken] = {}
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        found.update(zip(some, speak.speak(voice, [scripts[number] for number in some], seed + start), strict=True))
    return [found[number] for number in range(len(scripts))]


def by_flite(flite: Flite, text: str, speaker: str) -> Sound:
    return flite.say(OWN[speaker], spelling.spoken(text).lower()).samples.astype(np.float32) / 32768


def judged(spoken: Sequence[speak.Spoken], sentences: Sequence[str], only: Sequence[str] = ()) -> list[Verdict]:
    flite = Flite()
    own = [by_flite(flite, text, f"S{number % 2 + 1}") for number, text in enumerate(sentences)]
    ours, theirs = heard([one.sound for one in spoken], only), heard(own, only)
    return [
        Verdict(text, first, second, span_s(one.sound) / span_s(sound), one.ended)
        for text, first, second, one, sound in zip(sentences, ours, theirs, spoken, own, strict=True)
    ]


def rate(verdicts: Sequence[Verdict], which: str) -> float:
    wanted = sum(len(verdict.wanted) for verdict in verdicts)
    return round(sum(word_errors(verdict.wanted, getattr(verdict, which)) for verdict in verdicts) / wanted, 4)


def scores(words: Sequence[Verdict], digits: Sequence[Verdict]) -> dict[str, Any]:
    """Sums of verdicts."""
    both = [*words, *digits]
    return {
        "words": {"wer": rate(words, "voice"), "flite_wer": rate(words, "flite"), "sentences": len(words), "words": sum(len(one.wanted) for one in words)},
        "digits": {"wer": rate(digits, "voice"), "flite_wer": rate(digits, "flite"), "sentences": len(digits), "words": sum(len(one.wanted) for one in digits)},
        "unended_share": round(float(np.mean([not one.ended for one in both])), 4),
        "lost_or_repeated_share": round(float(np.mean([one.lost for one in words])), 4),
        "length_ratio_mean": round(float(np.mean([one.length_ratio for one in both])), 3),
    }


def semitones(low_hz: float, high_hz: float) -> float:
    return round(12 * float(np.log2(high_hz / low_hz)), 2)


def pitches(voice: speak.Voice, folder: Path, voices: dict[str, Any]) -> dict[str, float]:
    """The median pitch of each ready voice over four sentences, in Hz."""
    some = texts.held_out(texts.TUNED, "quote", 4)
    return {name: round(float(np.nanmedian([median_hz(one.sound) for one in said(voice, folder, some, 5, (row[0],))])), 1) for name, row in voices.items()}


def evaluate(folder: Path) -> dict[str, Any]:
    """The scores of the voice in a folder."""
    voice, about = speak.load(folder), json.loads((folder / "starter.json").read_text())
    sentences, digits = asked()
    measured = scores(judged(said(voice, folder, sentences, 11), sentences), judged(said(voice, folder, digits, 12), digits, texts.DIGITS))
    found, flite = pitches(voice, folder, about["voices"]), Flite()
    text = texts.held_out(texts.TUNED, "quote", 1)[0]
    wanted = {name: median_hz(flite.say(row[0], spelling.spoken(text).lower()).samples.astype(np.float32) / 32768) for name, row in about["voices"].items()}
    ada, ben = (found[next(name for name, row in about["voices"].items() if row[0] == sign)] for sign in OWN.values())
    return {
        **measured, "pitches_hz": found, "semitones_apart": semitones(ben, ada),
        "voices_missed": sum(abs(semitones(wanted[name], hz)) > 1.5 for name, hz in found.items()),
    }


def misses(measured: dict[str, Any]) -> list[str]:
    """Every way in which scores miss the gate; empty means that the weights may be released."""
    values = {
        "words_wer_above_flite": round(measured["words"]["wer"] - measured["words"]["flite_wer"], 4), "digits_wer": measured["digits"]["wer"],
        "semitones_too_near": round(max(0.0, LEAST_SEMITONES - measured["semitones_apart"]), 2),
        **{name: measured[name] for name in ("unended_share", "lost_or_repeated_share", "voices_missed")},
    }
    return [f"{name} is {values[name]}, the gate is {limit}" for name, limit in GATE.items() if not values[name] <= limit]
