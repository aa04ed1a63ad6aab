"""Judge a starter voice on unseen phrases beside flite, and list the required scores that it misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import corpus, judge, speak, words
from .flite import Flite

GATE = {
    "digits_wer": 0.04,
    "words_wer_above_flite": 0.03,
    "outside_15_percent_share": 0.05,
    "length_off_mean": 0.05,
    "clipped_share": 0.02,
    "unended_share": 0.0,
}
BATCH = 16
LOOKED_AT = 12  # so many test phrases of each kind helped to repair "you", "we" and "I": they judge no more
Sound = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Trial:
    """One phrase to speak: the speaker, the kind of phrase, the text."""

    speaker: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one phrase: word errors of the voice and of flite, and the quality of the sound."""

    trial: Trial
    words: int
    errors: int
    flite_errors: int
    length_ratio: float
    clipped: bool
    ended: bool
    heard: str


def trials(seed: int, count: int, looked_at: int = 0) -> list[Trial]:
    """Return `count` held-out phrases of each kind after the first `looked_at`, each by both speakers."""
    kept = {kind: corpus.held_out(seed, kind, looked_at + count)[looked_at:] for kind in corpus.KINDS}
    return [Trial(speaker, kind, text) for kind, texts in kept.items() for text in texts for speaker in ("S1", "S2")]


def span_s(sound: Sound) -> float:
    """Return the seconds from the first to the last 25 ms that are within 35 dB of the loudest."""
    loud = judge.loudness_db(sound)
    heard = np.nonzero(loud > loud.max() - 35)[0] if len(loud) else []
    return float(heard[-1] - heard[0] + 1) * judge.FRAME_S if len(heard) else 0.0


def judged(said: Callable[[Sequence[Trial]], list[speak.Spoken]], asked: Sequence[Trial]) -> list[Verdict]:
    """Have every trial spoken by `said` and by flite, and judged."""
    flite = Flite()
    judges = {"digits": judge.Judge(words.DIGITS), "words": judge.Judge(words.vocabulary())}
    verdicts = []
    for trial, spoken in zip(asked, said(asked), strict=True):
        ear = judges["digits" if trial.kind == "digits" else "words"]
        wanted = words.spoken_words(trial.text)
        own = flite.say(trial.speaker, trial.text).samples.astype(np.float32) / 32768
        heard = ear.listen(spoken.sound)
        verdicts.append(
            Verdict(
                trial,
                len(wanted),
                judge.word_errors(wanted, heard),
                judge.word_errors(wanted, ear.listen(own)),
                span_s(spoken.sound) / span_s(own),
                judge.clipped_end(spoken.sound),
                spoken.ended,
                " ".join(heard),
            )
        )
    return verdicts


def speaking(voice: speak.Voice, seed: int, **changed: Any) -> Callable[[Sequence[Trial]], list[speak.Spoken]]:
    """Return a function that speaks with this voice, a batch at a time."""

    def said(asked: Sequence[Trial]) -> list[speak.Spoken]:
        order = sorted(range(len(asked)), key=lambda number: len(asked[number].text))
        found: dict[int, speak.Spoken] = {}
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            scripts = [f"[{asked[number].speaker}] {asked[number].text}" for number in part]
            found.update(zip(part, speak.speak(voice, scripts, seed + start, **changed), strict=True))
        return [found[number] for number in range(len(asked))]

    return said


def scores(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Sum up verdicts: word error rates for digits and for words (loose and sentences), and the share of bad sounds."""
    rates: dict[str, Any] = {}
    for name, kinds in (("digits", {"digits"}), ("words", {"loose", "sentence"})):
        part = [verdict for verdict in verdicts if verdict.trial.kind in kinds]
        count = sum(verdict.words for verdict in part)
        rates[name] = {
            "wer": round(sum(verdict.errors for verdict in part) / count, 4),
            "flite_wer": round(sum(verdict.flite_errors for verdict in part) / count, 4),
            "phrases": len(part),
            "words": count,
            **{
                f"wer_{speaker}": round(
                    sum(v.errors for v in part if v.trial.speaker == speaker)
                    / max(1, sum(v.words for v in part if v.trial.speaker == speaker)),
                    4,
                )
                for speaker in ("S1", "S2")
            },
        }
    ratios = np.array([verdict.length_ratio for verdict in verdicts])
    return {
        **rates,
        "length_ratio_mean": round(float(ratios.mean()), 3),
        "outside_15_percent_share": round(float((np.abs(ratios - 1) > 0.15).mean()), 4),
        "clipped_share": round(float(np.mean([verdict.clipped for verdict in verdicts])), 4),
        "unended_share": round(float(np.mean([not verdict.ended for verdict in verdicts])), 4),
    }


def misses(measured: dict[str, Any]) -> list[str]:
    """List the required scores that are missed; with none the weights may be released."""
    values = {
        "digits_wer": measured["digits"]["wer"],
        "words_wer_above_flite": round(measured["words"]["wer"] - measured["words"]["flite_wer"], 4),
        "length_off_mean": round(abs(measured["length_ratio_mean"] - 1), 4),
        **{name: measured[name] for name in ("outside_15_percent_share", "clipped_share", "unended_share")},
    }
    return [f"{name} is {values[name]}, the gate is {limit}" for name, limit in GATE.items() if values[name] > limit]


def evaluate(folder: Path, count: int = 16) -> tuple[dict[str, Any], list[Verdict]]:
    """Score the voice in a folder on the test phrases."""
    voice = speak.load(folder)
    verdicts = judged(speaking(voice, seed=11), trials(corpus.TEST_SEED, count, LOOKED_AT))
    return scores(verdicts), verdicts
