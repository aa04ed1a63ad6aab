"""Join parts into one file: trim silence, change speed but not pitch, make all voices equally loud, avoid clicks. Holds one part
at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.speech.sound import sound
from app.engine.speech.sound.lufs import measure_lufs
from app.engine.speech.sound.sound import Samples

FADE_S = 0.008
PEAK = 10 ** (-1 / 20)
"""One decibel stays free, because lossy formats overshoot."""
LIMITED_DB: Final = 6.0
"""Peaks are turned down by so much at most to make speech louder; more would be heard."""
APART_DB: Final = 20.0
"""A voice that is this much quieter than the loudest one is no voice: noise or silence, raised no more than that one."""
LOOKAHEAD_S: Final = 0.005
"""The limiter begins to turn down so long before a peak; no longer than FADE_S, which is what a part that is still spoken keeps back."""
RELEASE_DB_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A finished part's sound."""

    path: Path
    pause_before_s: float = 0.0
    volume_db: float = 0.0
    pace: float = 1.0
    voice: int = 0
    """All that one voice says is made louder alike."""

    @property
    def volume(self) -> float:
        return float(10 ** (self.volume_db / 20))


@dataclass(frozen=True, slots=True)
class Finish:
    """How the joined sound is finished."""

    coding: str = "wav"
    speed: float = 1.0
    loudness_lufs: float | None = -18.0
    tail_s: float = 0.3
    """The sound ends with so much silence."""


class Joined(NamedTuple):
    seconds: float
    lufs: float
    """Voices came out so loud, before their own volumes."""


def join(segments: Iterable[Segment], target: Path, finish: Finish, settings: dict[str, Any], title: str = "") -> Joined:
    """Write the file atomically."""
    segments = tuple(segments)
    rate = max(sound.measure(segment.path).rate for segment in segments)
    out_rate = sound.choose_rate(finish.coding, rate)
    measured = [measure_loudness(*read_spoken(segment.path)) for segment in segments]
    gains = choose_gains(zip(segments, measured, strict=True), finish.loudness_lufs)
    noise = find_noise(find_levels(zip(segments, measured, strict=True)))
    ceiling, heard = choose_ceiling(finish.loudness_lufs), list[Loudness]()
    fade = int(FADE_S * out_rate)
    written = 0
    with sound.replacing_or_explaining(target) as unfinished:
        with sound.open_writer(unfinished, finish.coding, out_rate, settings, title) as file:

            def put(samples: Samples) -> None:
                nonlocal written
                sound.write_samples(file, samples)
                written += len(samples)

            held = np.zeros(fade, np.float32)  # the fading end of the previous part; the next one fades in over it
            for segment, loudness in zip(segments, measured, strict=True):
                samples, own_rate = read_spoken(segment.path)
                samples = sound.resample(stretch(samples, own_rate, finish.speed * segment.pace), own_rate, out_rate)
                raised = samples * np.float32(gains[segment.voice] * segment.volume)
                samples = limit(raised, out_rate, ceiling)
                if segment.voice not in noise:
                    limited = samples is not raised
                    heard.append(
                        measure_loudness(samples, out_rate).times(1 / segment.volume) if limited else loudness.times(gains[segment.voice])
                    )
                samples = fade_edges(samples, fade)
                if segment.pause_before_s > 0:
                    put(held)
                    put(np.zeros(int(segment.pause_before_s * out_rate), np.float32))
                    held = np.zeros(fade, np.float32)
                samples[:fade] += held
                put(samples[:-fade])
                held = samples[-fade:]
            put(held)
            put(np.zeros(int(finish.tail_s * out_rate), np.float32))
        if finish.coding == "wav":
            sound.tag_wav(unfinished, settings, title)
    return Joined(written / out_rate, find_level(heard))


def read_spoken(path: Path) -> tuple[Samples, int]:
    """Read a part without the silence around it; a silent part is returned unchanged."""
    samples, rate = sound.read(path)
    first, last = sound.find_spoken_span(samples, rate)
    return (samples[first:last] if last else samples), rate


def require_stretch(speed: float) -> type[Any]:
    """Return the stretcher; raise Trouble where this computer has none."""
    try:
        from python_stretch.Signalsmith import Stretch
    except ImportError as missing:
        raise Trouble(
            say(
                "sound.no-stretch",
                "To change the speed to {speed}, Hearth needs python-stretch, which is not installed. Set the speed to 1, or run: pip install python-stretch",
                speed=speed,
            )
        ) from missing
    stretcher: type[Any] = Stretch
    return stretcher


def stretch(samples: Samples, rate: int, speed: float) -> Samples:
    """Change the speed but not the pitch, with Signalsmith's stretcher."""
    if speed == 1.0 or not len(samples):
        return samples
    stretcher: Any = require_stretch(speed)()
    stretcher.preset(1, float(rate))
    stretcher.setTimeFactor(speed)
    return np.asarray(stretcher.process(samples[None])[0], np.float32)


@dataclass(frozen=True, slots=True)
class Loudness:
    power: float
    """Power is summed over all of its time; silence has 0."""
    seconds: float
    peak: float

    def times(self, gain: float) -> Loudness:
        return Loudness(self.power * gain**2, self.seconds, self.peak * gain)


def measure_loudness(samples: Samples, rate: int) -> Loudness:
    lufs, seconds, peak = measure_lufs(samples, rate), len(samples) / rate, float(np.abs(samples).max(initial=0))
    return Loudness(10 ** (lufs / 10) * seconds, seconds, peak) if math.isfinite(lufs) else Loudness(0.0, 0.0, peak)


def find_level(parts: Iterable[Loudness]) -> float:
    """Return how loud parts are together, in LUFS; -inf for silence."""
    parts = tuple(parts)
    power = sum(each.power for each in parts)
    return 10 * math.log10(power / sum(each.seconds for each in parts)) if power else -math.inf


def choose_gains(parts: Iterable[tuple[Segment, Loudness]], wanted_lufs: float | None) -> dict[int, float]:
    """Choose a gain for each voice, to which its segments' own volumes are added: all voices become equally loud, and of one a whisper stays quieter
    than the rest. All are as much quieter as it takes to limit no peak by more than LIMITED_DB."""
    parts = tuple(parts)
    levels = find_levels(parts)
    if wanted_lufs is None or (loudest := max(levels.values(), default=-math.inf)) == -math.inf:
        return dict.fromkeys(levels, 1.0)
    noise = find_noise(levels)
    gains = {voice: 10 ** ((wanted_lufs - (loudest if voice in noise else level)) / 20) for voice, level in levels.items()}
    highest = max(gains[segment.voice] * loudness.peak * segment.volume for segment, loudness in parts)
    return {voice: lower_gain(gain, highest / gain) for voice, gain in gains.items()}


def find_levels(parts: Iterable[tuple[Segment, Loudness]]) -> dict[int, float]:
    """Return how loud each voice is."""
    voices = defaultdict[int, list[Loudness]](list)
    for segment, loudness in parts:
        voices[segment.voice].append(loudness)
    return {voice: find_level(spoken) for voice, spoken in voices.items()}


def find_noise(levels: dict[int, float]) -> set[int]:
    """Return what is so quiet beside the loudest voice that it is none."""
    loudest = max(levels.values(), default=-math.inf)
    return {voice for voice, level in levels.items() if level <= loudest - APART_DB}


def lower_gain(gain: float, peak: float) -> float:
    """Lower a gain so far that a peak is limited by no more than LIMITED_DB."""
    return min(gain, PEAK * 10 ** (LIMITED_DB / 20) / max(peak, 1e-9))


def choose_ceiling(wanted_lufs: float | None) -> float:
    """Return what no sample is to exceed: sound that is not levelled stays as its voice made it, where it does not clip."""
    return 1.0 if wanted_lufs is None else PEAK


def limit(samples: Samples, rate: int, ceiling: float) -> Samples:
    """Turn down what is around a peak above the ceiling, a moment ahead and slowly up again, so that it is not heard; return sound without one as it
    is."""
    if np.abs(samples).max(initial=0) <= ceiling:
        return samples
    reach, step = 1 << int(LOOKAHEAD_S * rate).bit_length() - 1, 1
    over_db = np.pad(20 * np.log10(np.maximum(np.abs(samples, dtype=np.float64) / ceiling, 1)), (reach, 0))
    while step < reach:  # the highest within reach ahead, by windows of 2, 4, 8 samples and so on
        over_db[:-step] = np.maximum(over_db[:-step], over_db[step:])
        step *= 2
    fall = np.arange(len(over_db)) * (RELEASE_DB_S / rate)
    sums = np.cumsum(np.maximum.accumulate(over_db + fall) - fall)
    means = (sums[reach:] - sums[:-reach]) / reach  # of values that all look as far as this sample, so that none is too low for it
    limited: Samples = (samples * 10 ** (-means / 20)).astype(np.float32)
    return limited


def fade_edges(samples: Samples, fade: int, begins: bool = True, ends: bool = True) -> Samples:
    """Fade in where the sound begins and out where it ends; pad sound that is too short for both with silence."""
    samples = np.pad(samples, (0, max(0, 2 * fade - len(samples)) if begins and ends else 0)).astype(np.float32)
    slope = (0.5 - 0.5 * np.cos(np.linspace(0, np.pi, fade))).astype(np.float32)
    if begins:
        samples[:fade] *= slope[: len(samples)]
    if ends:
        samples[-fade:] *= slope[::-1][-len(samples) :]
    return samples
