"""Judge a starter voice on sentences that its training never met, beside flite, and list the required scores that it misses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from app.engine.speech.text import numerals, pronounce, written_out

from . import codec, judge, moonshine, sentences, speak
from .flite import SPEAKERS, Flite

GATE = {
    "digits_wer": 0.01,
    "words_wer_above_flite": 0.08,
    "lost_or_repeated_share": 0.0,
    "unended_share": 0.0,
    "clipped_share": 0.02,
    "ready_wer_above_flite": 0.1,
    "semitones_apart_at_least": 5.0,
    "ready_near_share_at_least": 0.8,
    "prompt_taken_share_at_least": 0.7,
}
BATCH = 16
CLAUSE = 4
"""A clause is lost, or repeated, where so many words in a row are, and flite's are not."""
TUNING, TEST = 0, 1
DIGIT_PHRASES, SENTENCES = 40, 160
Sound = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Trial:
    """One text to speak: the speaker, whether it is figures alone, the text."""

    speaker: str
    digits: bool
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one text: word errors of the voice and of flite, and the quality of the sound."""

    trial: Trial
    words: int
    errors: int
    flite_errors: int
    length_ratio: float
    clause_gone_wrong: bool
    clipped: bool
    ended: bool
    hz: float
    heard: str


def trials(texts: Path, part: int, count: int = SENTENCES, digits: int = DIGIT_PHRASES) -> list[Trial]:
    """Return held-out sentences of at least three words, those of TUNING or those of TEST, and phrases of figures, by both speakers in turn."""
    pool = [text for text in sentences.drawn(texts, 7, True, 0, 0) if len(text.split()) > 2]
    kept = [text for text in sorted(pool, key=sentences.key) if len(sentences.key(text)) % 2 == part]
    rng = random.Random(part)
    chosen = [(False, text) for text in rng.sample(kept, count)]
    chosen += [(True, " ".join(rng.choices(numerals.SMALL[:10], k=rng.randint(3, 8))) + ".") for _ in range(digits)]
    return [Trial(tuple(SPEAKERS)[number % 2], digit, text) for number, (digit, text) in enumerate(chosen)]


def script(trial: Trial, letters: pronounce.Letters) -> str:
    """Return what the encoder reads, as the app makes it."""
    return f"[{trial.speaker}] {pronounce.to_sounds(written_out.write_out(trial.text), letters)}"


SURELY_VOICED, LEAST_FRAMES = 0.6, 4


def median_hz(sound: Sound) -> float:
    """Return the median pitch of clearly voiced frames; not a number where there are none."""
    if len(sound) < LEAST_FRAMES * codec.HOP:
        return float("nan")
    tone = codec.pitch(torch.from_numpy(sound), len(sound) // codec.HOP)
    voiced = tone[tone[:, 1] > SURELY_VOICED, 0]
    return float(150 * voiced.median().exp()) if len(voiced) else float("nan")


def span_s(sound: Sound) -> float:
    """Return the seconds from the first to the last 25 ms that are within 35 dB of the loudest."""
    loud = judge.loudness_db(sound)
    heard = np.flatnonzero(loud > loud.max() - 35) if len(loud) else np.empty(0)
    return (heard[-1] - heard[0] + 1) * judge.FRAME_S if len(heard) else 0.0


def by_flite(flite: Flite, trial: Trial) -> Sound:
    """Return what flite itself says for a trial."""
    return np.asarray(flite.say(SPEAKERS[trial.speaker], trial.text).samples / 32768, np.float32)


def judged(asked: Sequence[Trial], said: Sequence[speak.Spoken]) -> list[Verdict]:
    """Judge every trial beside flite."""
    flite, ears = Flite(), {False: judge.Judge(), True: judge.Judge(numerals.SMALL[:10])}
    verdicts = []
    for trial, spoken in zip(asked, said, strict=True):
        wanted = sentences.key(trial.text).split()
        own = by_flite(flite, trial)
        heard, flite_heard = (ears[trial.digits].listen(sound) for sound in (spoken.sound, own))
        gone, flite_gone = (judge.lost_and_repeated(wanted, words) for words in (heard, flite_heard))
        verdicts.append(
            Verdict(
                trial,
                len(wanted),
                judge.word_errors(wanted, heard),
                judge.word_errors(wanted, flite_heard),
                span_s(spoken.sound) / span_s(own),
                any(ours >= CLAUSE > theirs for ours, theirs in zip(gone, flite_gone, strict=True)),
                judge.clipped_end(spoken.sound),
                spoken.ended,
                median_hz(spoken.sound),
                " ".join(heard),
            )
        )
    return verdicts


def second_opinion(ear: moonshine.Moonshine, asked: Sequence[Trial], said: Sequence[speak.Spoken]) -> dict[str, Any]:
    """Return the word errors that another judge hears in the sentences, flite's for the same, and the share that lost or repeated a clause."""
    flite, words, errors, flite_errors, gone = Flite(), 0, 0, 0, []
    for trial, spoken in zip(asked, said, strict=True):
        if not trial.digits:
            wanted, heard = sentences.key(written_out.write_out(trial.text)).split(), ear.listen(spoken.sound)
            words += len(wanted)
            errors += judge.word_errors(wanted, heard)
            flite_errors += judge.word_errors(wanted, ear.listen(by_flite(flite, trial)))
            gone.append(max(judge.lost_and_repeated(wanted, heard)) >= CLAUSE)
    return {
        "words": words,
        "wer": round(errors / words, 4),
        "flite_wer": round(flite_errors / words, 4),
        "lost_or_repeated_share": round(float(np.mean(gone)), 4),
    }


def spoken_by(voice: speak.Voice, asked: Sequence[Trial], seed: int, **changed: Any) -> list[speak.Spoken]:
    """Speak trials, a batch at a time."""
    return in_batches(voice, [script(trial, voice.letters) for trial in asked], seed, **changed)


def in_batches(voice: speak.Voice, scripts: Sequence[str], seed: int, **changed: Any) -> list[speak.Spoken]:
    """Speak scripts of similar lengths together."""
    order = sorted(range(len(scripts)), key=lambda number: len(scripts[number]))
    found: dict[int, speak.Spoken] = {}
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        found.update(zip(part, speak.speak(voice, [scripts[number] for number in part], seed + start, **changed), strict=True))
    return [found[number] for number in range(len(scripts))]


def scores(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Sum up verdicts."""
    rates: dict[str, Any] = {}
    for name, digits in (("digits", True), ("words", False)):
        part = [verdict for verdict in verdicts if verdict.trial.digits == digits]
        count = max(1, sum(verdict.words for verdict in part))
        rates[name] = {
            "wer": round(sum(verdict.errors for verdict in part) / count, 4),
            "flite_wer": round(sum(verdict.flite_errors for verdict in part) / count, 4),
            "texts": len(part),
            "words": count,
        }
        for speaker in SPEAKERS:
            own = [verdict for verdict in part if verdict.trial.speaker == speaker]
            rates[name][f"wer_{speaker}"] = round(sum(v.errors for v in own) / max(1, sum(v.words for v in own)), 4)
    height = {speaker: float(np.nanmedian([v.hz for v in verdicts if v.trial.speaker == speaker])) for speaker in SPEAKERS}
    return {
        **rates,
        "length_ratio_mean": round(float(np.mean([verdict.length_ratio for verdict in verdicts])), 3),
        "lost_or_repeated_share": round(float(np.mean([verdict.clause_gone_wrong for verdict in verdicts])), 4),
        "clipped_share": round(float(np.mean([verdict.clipped for verdict in verdicts])), 4),
        "unended_share": round(float(np.mean([not verdict.ended for verdict in verdicts])), 4),
        "semitones_apart": round(abs(float(12 * np.log2(height["S1"] / height["S2"]))), 1),
    }


def misses(measured: dict[str, Any]) -> list[str]:
    """List the required scores that are missed; with none the weights may be released. What is not a number misses."""
    words, ready = measured["words"], measured["ready"]
    values = {
        "digits_wer": measured["digits"]["wer"],
        "words_wer_above_flite": round(words["wer"] - words["flite_wer"], 4),
        **{name: measured[name] for name in ("lost_or_repeated_share", "unended_share", "clipped_share")},
        "ready_wer_above_flite": round(ready["wer"] - ready["flite_wer"], 4),
        "semitones_apart_at_least": measured["semitones_apart"],
        "ready_near_share_at_least": ready["near_share"],
        "prompt_taken_share_at_least": measured["prompts"]["taken_share"],
    }
    return [f"{name} is {value}, the gate is {GATE[name]}" for name, value in values.items() if not _passes(name, value)]


def _passes(name: str, value: float) -> bool:
    return value >= GATE[name] if name.endswith("_at_least") else value <= GATE[name]
