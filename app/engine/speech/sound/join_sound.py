"""Join parts into one file: trim silence, change speed but not pitch, even out loudness, avoid clicks. Holds one part
at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.speech.sound import sound
from app.engine.speech.sound.lufs import measure_lufs
from app.engine.speech.sound.sound import Samples

FADE_S = 0.008
PEAK = 10 ** (-1 / 20)
"""One decibel stays free, because lossy formats overshoot."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A finished part's sound."""

    path: Path
    pause_before_s: float = 0.0
    volume_db: float = 0.0
    pace: float = 1.0


@dataclass(frozen=True, slots=True)
class Finish:
    """How the joined sound is finished."""

    coding: str = "wav"
    speed: float = 1.0
    loudness_lufs: float | None = -18.0
    tail_s: float = 0.3
    """The sound ends with so much silence."""


def join(segments: Iterable[Segment], target: Path, finish: Finish, settings: dict[str, Any]) -> float:
    """Write the file atomically; return its length in seconds."""
    segments = tuple(segments)
    rate = max(sound.measure(segment.path).rate for segment in segments)
    out_rate = sound.choose_rate(finish.coding, rate)
    gain = choose_gain((measure_loudness(*_read_segment(segment)) for segment in segments), finish.loudness_lufs)
    fade = int(FADE_S * out_rate)
    written = 0
    with sound.replacing_or_explaining(target) as unfinished:
        with sound.open_writer(unfinished, finish.coding, out_rate, settings) as file:

            def put(samples: Samples) -> None:
                nonlocal written
                sound.write_samples(file, samples)
                written += len(samples)

            held = np.zeros(fade, np.float32)  # the fading end of the previous part; the next one fades in over it
            for segment in segments:
                samples, own_rate = _read_segment(segment)
                samples = sound.resample(stretch(samples, own_rate, finish.speed * segment.pace), own_rate, out_rate) * gain
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
            sound.tag_wav(unfinished, settings)
    return written / out_rate


def _read_segment(segment: Segment) -> tuple[Samples, int]:
    samples, rate = read_spoken(segment.path)
    return make_louder(samples, segment.volume_db), rate


def make_louder(samples: Samples, volume_db: float) -> Samples:
    return samples * np.float32(10 ** (volume_db / 20)) if volume_db else samples


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


def measure_loudness(samples: Samples, rate: int) -> Loudness:
    lufs, seconds, peak = measure_lufs(samples, rate), len(samples) / rate, float(np.abs(samples).max(initial=0))
    return Loudness(10 ** (lufs / 10) * seconds, seconds, peak) if math.isfinite(lufs) else Loudness(0.0, 0.0, peak)


def choose_gain(parts: Iterable[Loudness], wanted_lufs: float | None) -> np.float32:
    """Choose one gain for all parts, so that a whisper stays quieter than the rest; low enough that no peak clips."""
    if wanted_lufs is None:
        return np.float32(1)
    parts = tuple(parts)
    power, seconds = sum(each.power for each in parts), sum(each.seconds for each in parts)
    if not power:
        return np.float32(1)
    gain = 10 ** ((wanted_lufs - 10 * math.log10(power / seconds)) / 20)
    return np.float32(min(gain, PEAK / max(each.peak for each in parts)))


def fade_edges(samples: Samples, fade: int, begins: bool = True, ends: bool = True) -> Samples:
    """Fade in where the sound begins and out where it ends; pad sound that is too short for both with silence."""
    samples = np.pad(samples, (0, max(0, 2 * fade - len(samples)) if begins and ends else 0)).astype(np.float32)
    slope = (0.5 - 0.5 * np.cos(np.linspace(0, np.pi, fade))).astype(np.float32)
    if begins:
        samples[:fade] *= slope[: len(samples)]
    if ends:
        samples[-fade:] *= slope[::-1][-len(samples) :]
    return samples
