"""Choose what of a recording becomes a voice: the best 5 to 10 seconds, by what a recogniser heard in it, and whether it is noisy or distorted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.base.sentence import Sentence, say_to_all
from app.engine.hearing.heard import Word, join_words
from app.engine.speech.sound.sound import Samples

LEAST_S, MOST_S = 5.0, 10.0
AROUND_S: Final = 0.12
"""So much is kept before the first word and after the last."""
PAUSE_S: Final = 0.2
BONUS: Final = 0.15
"""A stretch that begins, or ends, with a sentence or in a pause is worth so much more, where a word's certainty is from 0 to 1."""
NOISY_DB, QUIET_DB, CLIPPED = 15.0, -38.0, 0.001
OPENS, CLOSES, MARKS = frozenset("[(*"), frozenset("])*"), " .,!?"
NOTE_MOST: Final = 6
"""A note in brackets has at most so many words; a bracket that stays open for longer is a slip of the recogniser, and hides nothing."""
SOUNDLESS: Final = f"{MARKS}\u2026-\u2013\u2014\u2669\u266a\u266b\u266c"
"""A word of these alone is not said: marks, dashes and notes of music."""
ENDS: Final = (".", "?", "!", "\u3002", "\uff1f", "\uff01")


@dataclass(frozen=True, slots=True)
class Clip:
    begin_s: float
    end_s: float
    text: str
    notes: tuple[Sentence, ...]


def choose_clip(heard: Sequence[Word], samples: Samples, rate: int) -> Clip | None:
    """Return the stretch of 5 to 10 seconds that a recogniser is surest of and that begins and ends in a pause; of a shorter recording all
    words. None where no word is heard."""
    words = list_spoken(heard)
    if not words:
        return None
    spans = [(first, last) for first in range(len(words)) for last in _list_ends(words, first)] or [(0, len(words))]
    first, last = max(spans, key=lambda span: _rate(words, *span))
    chosen = words[first:last]
    before_s = words[first - 1].end_s if first else 0.0
    after_s = words[last].begin_s if last < len(words) else len(samples) / rate
    begin_s = max((before_s + chosen[0].begin_s) / 2 if first else 0.0, chosen[0].begin_s - AROUND_S)
    end_s = min((chosen[-1].end_s + after_s) / 2 if last < len(words) else after_s, chosen[-1].end_s + AROUND_S)
    kept = samples[int(begin_s * rate) : int(end_s * rate)]
    return Clip(begin_s, end_s, join_words([word.text for word in chosen]), judge(kept, samples, words, rate))


def list_spoken(heard: Sequence[Word]) -> list[Word]:
    """Return the words that somebody says: recognisers write what else sounds in brackets or as notes, "[Music]" or "\u266a"."""
    kept, place = list[Word](), 0
    while place < len(heard):
        note = heard[place : place + NOTE_MOST] if heard[place].text.lstrip()[:1] in OPENS else ()
        closed = next((count for count, word in enumerate(note, 1) if word.text.rstrip(MARKS)[-1:] in CLOSES), 0)
        if not closed and heard[place].text.strip(SOUNDLESS):
            kept.append(heard[place])
        place += closed or 1
    return kept


def _list_ends(words: Sequence[Word], first: int) -> list[int]:
    lasts = ((last, words[last - 1].end_s - words[first].begin_s) for last in range(first + 1, len(words) + 1))
    found = []
    for last, seconds in lasts:
        if seconds > MOST_S:
            break
        if seconds >= LEAST_S:
            found.append(last)
    return found


def _rate(words: Sequence[Word], first: int, last: int) -> float:
    sure = float(np.mean([word.sure for word in words[first:last]]))
    begins = first == 0 or words[first - 1].text.endswith(ENDS) or words[first].begin_s - words[first - 1].end_s >= PAUSE_S
    ends = last == len(words) or words[last - 1].text.endswith(ENDS) or words[last].begin_s - words[last - 1].end_s >= PAUSE_S
    return sure + BONUS * begins + BONUS * ends


def judge(kept: Samples, whole: Samples, words: Sequence[Word], rate: int) -> tuple[Sentence, ...]:
    """Say whether a stretch is distorted, quiet, or noisy compared with where nobody speaks."""
    silent = np.ones(len(whole), bool)
    for word in words:
        silent[int(max(0.0, word.begin_s - 0.05) * rate) : int((word.end_s + 0.05) * rate)] = False
    notes = []
    if len(kept) and float(np.mean(np.abs(kept) > 0.99)) > CLIPPED:
        notes.append(say_to_all("clip.distorted", "The recording is distorted: it was too loud. Record it again from farther away."))
    loud_db = _measure_db(kept)
    if loud_db < QUIET_DB:
        notes.append(say_to_all("clip.quiet", "The recording is very quiet. Record it again closer to the microphone."))
    if silent.any() and loud_db - _measure_db(whole[silent]) < NOISY_DB:
        notes.append(
            say_to_all(
                "clip.noisy", "There is noise or music in the recording, and the voice will have it, too. Record it where it is quieter."
            )
        )
    return tuple(notes)


def _measure_db(samples: Samples) -> float:
    return float(20 * np.log10(max(1e-6, np.sqrt(np.mean(samples.astype(np.float64) ** 2))))) if len(samples) else -120.0
