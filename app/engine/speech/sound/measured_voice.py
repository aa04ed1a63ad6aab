"""Measure what a voice sounds like from a clip of it, pitch and pace, and word that. Pure."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from app.base.sentence import Sentence, say_to_all
from app.engine.speech.sound.sound import Samples

PITCHES: Final = (60.0, 400.0)
"""Voices speak between these, in Hz."""
FRAME_S: Final = 0.05
VOICED: Final = 0.5
"""In a vowel, more than this share of a frame's power comes again after a period."""
FRAMES_LEAST, FRAMES_MOST = 5, 400
"""With fewer vowels the pitch is not told; with more, the first ones tell it."""
LETTERS_LEAST: Final = 10
"""With fewer letters the pace is not told."""
PITCH_WORDS: Final = (
    (105, say_to_all("voice.lowest", "very low")), (140, say_to_all("voice.low", "low")),
    (175, say_to_all("voice.middle", "neither low nor high")), (225, say_to_all("voice.high", "high")),
    (math.inf, say_to_all("voice.highest", "very high")),
)  # fmt: skip
PACE_WORDS: Final = (
    (10, say_to_all("voice.slow", "slow")), (13, say_to_all("voice.calm", "calm")), (16, say_to_all("voice.brisk", "brisk")),
    (math.inf, say_to_all("voice.quick", "quick")),
)  # fmt: skip
"""A voice is called by the first row whose figure it stays below: Hz, or letters a second."""


def measure_pitch(samples: Samples, rate: int) -> float | None:
    """Return the middle pitch of the vowels in Hz; None where there are too few."""
    size = int(FRAME_S * rate)
    count = min(len(samples) // size, FRAMES_MOST)
    frames = np.asarray(samples[: count * size], np.float64).reshape(count, size)
    frames = frames - frames.mean(axis=1, keepdims=True) if count else frames
    powers = (frames**2).sum(axis=1)
    loud = frames[powers > 0.1 * np.median(powers[powers > 0])] if np.any(powers > 0) else frames[:0]
    if not len(loud):
        return None
    spectra = np.abs(np.fft.rfft(loud, 2 * size, axis=1)) ** 2
    again = np.fft.irfft(spectra, axis=1)[:, :size]
    again /= np.maximum(again[:, :1], 1e-12) * (1 - np.arange(size) / size)
    first, last = int(rate / PITCHES[1]), min(int(rate / PITCHES[0]), size * 3 // 4)
    best = again[:, first:last].max(axis=1)
    # The shortest period that is nearly as good as the best: twice a period comes again as well.
    early = first + (again[:, first:last] > 0.9 * best[:, None]).argmax(axis=1)
    tops = [lag + int(frame[lag : lag + lag // 5 + 1].argmax()) for frame, lag in zip(again, early, strict=True)]
    pitches = rate / np.array(tops)[best > VOICED]
    return float(np.median(pitches)) if len(pitches) >= FRAMES_LEAST else None


def measure_pace(words: str, seconds: float) -> float | None:
    """Return letters a second; None where too little is said."""
    letters = sum(each.isalnum() for each in words)
    return letters / seconds if letters >= LETTERS_LEAST and seconds > 0 else None


def word_voice(pitch: float | None, pace: float | None) -> tuple[Sentence, ...]:
    """Say in plain words how a voice sounds."""
    measured = ((pitch, PITCH_WORDS), (pace, PACE_WORDS))
    return tuple(next(words for below, words in rows if figure < below) for figure, rows in measured if figure is not None)
