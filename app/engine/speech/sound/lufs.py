"""Measure integrated loudness in LUFS (ITU-R BS.1770-4) of one channel. Pure numpy: a filter by its spectrum, then two gates."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np

from app.engine.speech.sound.sound import Samples

WINDOW_S, HOP_S = 0.4, 0.1
SILENT_LUFS: Final = -70.0
RELATIVE_LU: Final = 10.0
OFFSET: Final = -0.691
"""BS.1770 adds this, so that a tone of 1 kHz has the loudness that its level says."""
SHELF_HZ, SHELF_DB, PASS_HZ, PASS_Q = 1500.0, 4.0, 38.0, 0.5
"""The K-weighting's two filters add what a head adds above, and take away what nobody hears below."""
TAIL_S: Final = 0.5
"""After that long the filters have forgotten a sample: 38 Hz at a Q of a half falls by 120 dB in 0.12 s."""
SPECTRUM: Final = 1 << 17
"""So many samples are filtered at once, with what rings on after them."""
Floats = np.ndarray[Any, np.dtype[np.float64]]


def measure_lufs(samples: Samples, rate: int) -> float:
    """Return the loudness; sound shorter than the window is repeated to fill it; -inf for silence."""
    if not np.any(samples):
        return -math.inf
    powers = list_powers(weigh(np.resize(samples, max(len(samples), math.ceil(WINDOW_S * rate))), rate), rate)
    heard = powers[word_lufs(powers) >= SILENT_LUFS]
    if not len(heard):
        return -math.inf
    loud = heard[word_lufs(heard) > float(word_lufs(heard.mean())) - RELATIVE_LU]
    return float(word_lufs(loud.mean())) if len(loud) else -math.inf


def word_lufs(power: Any) -> Any:
    with np.errstate(divide="ignore"):
        return OFFSET + 10 * np.log10(power)


def list_powers(samples: Floats, rate: int) -> Floats:
    """Return the mean square of each window; windows overlap by three quarters."""
    sums = np.concatenate([[0.0], np.cumsum(samples**2)])
    count = max(1, round((len(samples) / rate - WINDOW_S) / HOP_S) + 1)
    first = (np.arange(count) * HOP_S * rate + 1e-6).astype(int)
    last = np.minimum(((np.arange(count) * HOP_S + WINDOW_S) * rate + 1e-6).astype(int), len(samples))
    powers: Floats = np.maximum((sums[last] - sums[first]) / (WINDOW_S * rate), 0.0)
    return powers


def weigh(samples: Samples, rate: int) -> Floats:
    """Filter block by block: each block's spectrum times the filter's, and what rings on is added to the next."""
    weights = find_weights(rate)
    made, step = np.zeros(len(samples) + SPECTRUM), SPECTRUM - math.ceil(TAIL_S * rate)
    for first in range(0, len(samples), step):
        block = samples[first : first + step].astype(np.float64)
        made[first : first + SPECTRUM] += np.fft.irfft(np.fft.rfft(block, SPECTRUM) * weights, SPECTRUM)
    return made[: len(samples)]


@lru_cache(maxsize=4)
def find_weights(rate: int) -> Any:
    """Return both filters' response; to compute it takes as long as to filter a part by it."""
    return np.prod([respond(*each, SPECTRUM) for each in design(rate)], axis=0)


def respond(numerator: Floats, denominator: Floats, size: int) -> Any:
    """Return the response of a filter at the frequencies of a spectrum of so many samples."""
    turn = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    return np.polyval(numerator[::-1], turn) / np.polyval(denominator[::-1], turn)


def design(rate: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return numerator and denominator of both filters at a rate, by the audio equaliser cookbook's formulas."""
    turn = 2 * math.pi * SHELF_HZ / rate
    gain, cosine = 10 ** (SHELF_DB / 40), math.cos(turn)
    skirt = math.sqrt(2 * gain) * math.sin(turn)
    shelf = (
        gain * np.array([gain + 1 + (gain - 1) * cosine + skirt, -2 * (gain - 1 + (gain + 1) * cosine), gain + 1 + (gain - 1) * cosine - skirt]),
        np.array([gain + 1 - (gain - 1) * cosine + skirt, 2 * (gain - 1 - (gain + 1) * cosine), gain + 1 - (gain - 1) * cosine - skirt]),
    )  # fmt: skip
    turn = 2 * math.pi * PASS_HZ / rate
    alpha, cosine = math.sin(turn) / (2 * PASS_Q), math.cos(turn)
    high = np.array([(1 + cosine) / 2, -(1 + cosine), (1 + cosine) / 2]), np.array([1 + alpha, -2 * cosine, 1 - alpha])
    return shelf, high
