"""A part as it is heard while the script is still spoken: piece by piece it is what the joined file has."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.speech.sound import join_sound, sound
from app.engine.speech.sound.heard_part import cut_next
from app.engine.speech.sound.lufs import measure_lufs

RATE = 16_000


def part(seconds: float = 1.2) -> sound.Samples:
    times = np.arange(int(seconds * RATE)) / RATE
    quiet = np.zeros(int(0.4 * RATE))
    return np.concatenate([quiet, 0.2 * np.sin(2 * np.pi * 150 * times), quiet]).astype(np.float32)


@pytest.mark.parametrize("cuts", [(), (0.9,), (0.3, 0.7, 1.1), (0.1, 0.6, 1.75)])
def test_piece_after_piece_is_the_whole_part(cuts: tuple[float, ...]) -> None:
    spoken, gain = part(), 1.5
    whole = cut_next(spoken, RATE, True, 0.0, 1.0, gain)
    first, last = sound.find_spoken_span(spoken, RATE)
    assert first > 0.25 * RATE and len(whole.samples) == last - first
    fade = int(join_sound.FADE_S * RATE)
    np.testing.assert_allclose(whole.samples, join_sound.fade_edges(spoken[first:last] * np.float32(gain), fade), atol=1e-6)
    heard, so_far = 0.0, list[sound.Samples]()
    for cut in (*cuts, None):
        done = cut is None
        found = cut_next(spoken if cut is None else spoken[: int(cut * RATE)], RATE, done, heard, 1.0, gain)
        so_far.append(found.samples)
        heard = found.until_s
    joined = np.concatenate(so_far)
    assert len(joined) == len(whole.samples)
    np.testing.assert_allclose(joined, whole.samples, atol=2e-2)


def test_a_part_at_another_speed_is_heard_once_it_is_whole() -> None:
    spoken = part()
    assert not len(cut_next(spoken[:RATE], RATE, False, 0.0, 1.25, 1.0).samples)
    found = cut_next(spoken, RATE, True, 0.0, 1.25, 1.0)
    first, last = sound.find_spoken_span(spoken, RATE)
    assert len(found.samples) == pytest.approx((last - first) / 1.25, rel=0.02)


def test_silence_is_heard_as_it_is_joined() -> None:
    silent = np.zeros(RATE, np.float32)
    assert not len(cut_next(silent, RATE, False, 0.0, 1.0, 1.0).samples), "it may be the begin of a part"
    assert len(cut_next(silent, RATE, True, 0.0, 1.0, 1.0).samples) == RATE


def test_one_gain_for_all_parts_as_before() -> None:
    loud, quiet = part(), part() * np.float32(0.1)
    known = [join_sound.measure_loudness(each, RATE) for each in (loud, quiet)]
    gain = join_sound.choose_gain(known, -30.0)
    told = measure_lufs(np.concatenate([loud, quiet]) * gain, RATE)
    assert told == pytest.approx(-30.0 + 10 * np.log10(2), abs=0.5), "the quiet half has next to no power"
    assert join_sound.choose_gain(known, None) == 1 and join_sound.choose_gain([join_sound.measure_loudness(quiet * 0, RATE)], -18.0) == 1
    assert join_sound.choose_gain(known, 6.0) == pytest.approx(join_sound.PEAK / 0.2, rel=0.01), "no peak clips"
