"""Find where each turn of a clip ends: in a pause near where its words let expect it, and where the pitch changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.engine.speech.sound.sound import Samples, resample
from app.engine.speech.text.turns import Turn

RATE_HZ: Final = 8000
HOP_S: Final = 0.02
WINDOW_S: Final = 0.05
LOWEST_HZ, HIGHEST_HZ = 70, 400
SURELY_VOICED: Final = 0.6
QUIET: Final = 0.03
"""Below this share of the loud hops' amplitude nobody speaks."""
LEAST_PAUSE_S, LONG_PAUSE_S = 0.08, 0.3
COMPARED_S: Final = 1.0
"""So much sound on either side of a pause has its pitch compared."""
OTHER_SEMITONES: Final = 4.0
"""So far apart, it is another speaker."""
REACH_S, REACH_SHARE = 0.6, 0.3
"""A turn may end this far from where the words let expect it: so many seconds at least, or this share of its length."""


@dataclass(frozen=True, slots=True)
class _Pause:
    begin: int
    end: int
    """Both are in hops."""

    @property
    def middle(self) -> int:
        return (self.begin + self.end) // 2


def find_turn_ends(samples: Samples, rate: int, turns: Sequence[Turn], whole_s: float) -> tuple[int, ...]:
    """Return where each turn but the last ends, in samples, of those that end in them; the whole clip, of which these are the first, lasts
    `whole_s`."""
    hops = _cut_into_hops(resample(samples, rate, RATE_HZ))
    loudness = np.sqrt((hops**2).mean(axis=1))
    pitches, pauses = _track_semitones(hops), _list_pauses(loudness)
    sizes = [len(turn.text.encode()) + 1 for turn in turns]
    ends: list[int] = []
    for place in range(len(turns) - 1):
        begun = ends[-1] if ends else 0
        lasts = (whole_s / HOP_S - begun) * sizes[place] / sum(sizes[place:])
        if begun + lasts >= len(hops):
            break
        reach = max(REACH_S / HOP_S, REACH_SHARE * lasts)
        near = [pause for pause in pauses if pause.middle > begun and abs(pause.middle - begun - lasts) <= reach]
        other = turns[place].speaker != turns[place + 1].speaker

        def judge(pause: _Pause, expected: float = begun + lasts, reach: float = reach, other: bool = other) -> float:
            told = min(1.0, _measure_jump(pitches, pause) / OTHER_SEMITONES) if other else 0.0
            return told + min(1.0, (pause.end - pause.begin) * HOP_S / LONG_PAUSE_S) - abs(pause.middle - expected) / reach

        first, last = int(max(begun + 1, begun + lasts - reach)), int(begun + lasts + min(reach, (len(hops) - begun - lasts) / 2))
        quietest = first + int(np.argmin(loudness[first : last + 1]))
        ends.append(max(near, key=judge).middle if near else quietest)
    return tuple(min(len(samples), round((end + 0.5) * HOP_S * rate)) for end in ends)


def _cut_into_hops(sound: Samples) -> NDArray[np.float32]:
    hop = round(HOP_S * RATE_HZ)
    return np.pad(sound, (0, -len(sound) % hop)).reshape(-1, hop)


def _list_pauses(loudness: NDArray[np.float32]) -> list[_Pause]:
    """List the pauses between sounds; silence at either end of the clip is none."""
    quiet = np.concatenate([[False], loudness < QUIET * np.percentile(loudness, 90), [False]])
    begins, ends = np.flatnonzero(~quiet[:-1] & quiet[1:]), np.flatnonzero(quiet[:-1] & ~quiet[1:])
    spans = zip(begins.tolist(), ends.tolist(), strict=True)
    return [_Pause(begin, end) for begin, end in spans if begin > 0 and end < len(loudness) and (end - begin) * HOP_S >= LEAST_PAUSE_S]


def _measure_jump(pitches: NDArray[np.float64], pause: _Pause) -> float:
    """Return by how many semitones the pitch after a pause differs from that before it; 0 where either cannot be told."""
    compared = round(COMPARED_S / HOP_S)
    before, after = pitches[max(0, pause.begin - compared) : pause.begin], pitches[pause.end : pause.end + compared]
    known = [side[~np.isnan(side)] for side in (before, after)]
    return abs(float(np.median(known[0]) - np.median(known[1]))) if all(map(len, known)) else 0.0


def _track_semitones(hops: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return each hop's pitch in semitones, by autocorrelation; not a number where it is not clearly voiced."""
    hop, size = hops.shape[1], round(WINDOW_S * RATE_HZ)
    padded = np.pad(hops.ravel(), (0, size))
    pieces = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop][: len(hops)]
    pieces = (pieces - pieces.mean(axis=1, keepdims=True)) * np.hanning(size)
    likeness = _correlate(pieces) / _correlate(np.hanning(size)[None])
    shortest, longest = RATE_HZ // HIGHEST_HZ, RATE_HZ // LOWEST_HZ
    looked = likeness[:, shortest : longest + 1] / np.maximum(likeness[:, :1], 1e-6)
    lags = shortest + looked.argmax(axis=1)
    return np.where(looked.max(axis=1) > SURELY_VOICED, 12 * np.log2(RATE_HZ / lags), np.nan)


def _correlate(pieces: NDArray[np.float64]) -> NDArray[np.float64]:
    size = 2 * pieces.shape[1]
    return np.fft.irfft(np.abs(np.fft.rfft(pieces, size)) ** 2)[:, : size // 2]
