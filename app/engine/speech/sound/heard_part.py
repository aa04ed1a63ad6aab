"""A part as the joined file will have it, for whoever hears the script while it is still spoken: trimmed, at its speed and loudness."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from app.engine.jobs.parts import DIGITS_MOST
from app.engine.speech.sound import join_sound, sound, spoken_parts
from app.engine.speech.sound.join_sound import FADE_S, Loudness, Segment
from app.engine.speech.sound.sound import Samples

KNOWN_S: Final = 1.0
"""So much of a voice tells how loud it is; its first moment may be quiet."""
RISE: Final = 10 ** (1 / 20)
"""A voice becomes louder by so much at most from one of its parts to the next."""
FROM_NOISE: Final = 10 ** (join_sound.APART_DB / 2 / 20)
"""Only a voice that was heard as noise, as one before it shouted, has become so much louder."""
RAMP_S: Final = 0.2
"""A voice becomes quieter over as long, where it was being heard."""


@dataclass(frozen=True, slots=True)
class HeardPart:
    samples: Samples
    rate: int
    until_s: float
    """The samples reach this far in the part as it was spoken: what comes next begins there."""


def read_part(files: Sequence[Path]) -> tuple[Samples, int]:
    """Read a finished part's file, or the pieces that there are of one that is being spoken."""
    pieces = [sound.read(file) for file in files]
    return np.concatenate([samples for samples, _ in pieces]), pieces[0][1]


def cut_next(
    spoken: Samples, rate: int, done: bool, after_s: float, speed: float, gain: float, ceiling: float, before: float = 0.0
) -> HeardPart:
    """Return what comes after `after_s`, which was heard with the gain `before` if that is another. Of a part that is not done yet, the silence at its
    end waits, and so does all of it where the speed is changed, which cannot be done piece by piece. Limited is all of it, as in the joined file, and
    then cut."""
    first, last = sound.find_spoken_span(spoken, rate)
    if done and not last:
        last = len(spoken)  # silence is joined unchanged
    fade = int(FADE_S * rate)
    begin, end = max(first, round(after_s * rate)), last if done else last - fade
    if end <= begin or not (done or speed == 1.0):
        return HeardPart(spoken[:0], rate, after_s)
    from_ = first if speed == 1.0 else begin
    raised = join_sound.stretch(spoken[from_:last], rate, speed) * np.float32(gain)
    if before and after_s:
        ramp = begin - from_, min(begin + int(RAMP_S * rate), end) - from_
        raised *= np.interp(np.arange(len(raised)), ramp, (before / gain, 1.0)).astype(np.float32)
    loud = join_sound.limit(raised, rate, ceiling)
    samples = loud[begin - from_ : len(loud) - (last - end)]
    return HeardPart(join_sound.fade_edges(samples, fade, begins=not after_s, ends=done), rate, end / rate)


def choose_gains(
    heard: dict[int, float],
    known: Sequence[tuple[Segment, Loudness]],
    segment: Segment,
    done: bool,
    wanted_lufs: float | None,
    begins: bool = True,
) -> dict[int, float]:
    """Add the gain of this segment's voice, by all that is known so far, to those with which voices were heard; none at all where too little is known
    of it. Heard voices become quieter where they turn out to be louder than they began, or for a peak, as in the joined file, but not because another
    one shouts, so that only beside that they count as noise. Louder they become again where the segment `begins`, as it is heard from its begin: a
    little, but at once where they were heard as noise."""
    own_s = sum(loudness.seconds for each, loudness in known if each.voice == segment.voice)
    if segment.voice not in heard and wanted_lufs is not None and not done and own_s < KNOWN_S:
        return {}
    chosen = join_sound.choose_gains(known, wanted_lufs)
    usual = {voice: statistics.median_low(_list_levels(known, voice)) for voice in chosen}
    drowned = join_sound.find_noise(join_sound.find_levels(known)) - join_sound.find_noise(usual)
    most = {**heard, segment.voice: _raise(heard.get(segment.voice, 0.0), chosen[segment.voice])} if begins else heard
    changed = {voice: gain if voice in drowned else min(most[voice], chosen.get(voice, gain)) for voice, gain in heard.items()}
    return {segment.voice: chosen[segment.voice], **changed}


def _raise(gain: float, chosen: float) -> float:
    return chosen if chosen > gain * FROM_NOISE else gain * RISE


def _list_levels(known: Sequence[tuple[Segment, Loudness]], voice: int) -> list[float]:
    return [join_sound.find_level([loudness]) for segment, loudness in known if segment.voice == voice]


def measure_file(file: Path) -> Loudness:
    return _measure_file(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=10**DIGITS_MOST)
def _measure_file(file: Path, _written_ns: int) -> Loudness:
    """All parts of the longest script are known at once, as each look asks for them all."""
    return spoken_parts.read_loudness(file) or join_sound.measure_loudness(*join_sound.read_spoken(file))
