"""A part as it is heard while the script is still spoken: piece by piece it is what the joined file has."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from app.engine.speech.sound import join_sound, sound, spoken_parts
from app.engine.speech.sound.heard_part import choose_gains, cut_next, measure_file
from app.engine.speech.sound.join_sound import Segment
from app.engine.speech.sound.spoken_parts import SpokenPart

RATE = 16_000


def part(seconds: float = 1.2) -> sound.Samples:
    times = np.arange(int(seconds * RATE)) / RATE
    quiet = np.zeros(int(0.4 * RATE))
    return np.concatenate([quiet, 0.2 * np.sin(2 * np.pi * 150 * times), quiet]).astype(np.float32)


@pytest.mark.parametrize("cuts", [(), (0.9,), (0.3, 0.7, 1.1), (0.1, 0.6, 1.75)])
def test_piece_after_piece_is_the_whole_part(cuts: tuple[float, ...]) -> None:
    spoken, gain = part(), 1.5
    whole = cut_next(spoken, RATE, True, 0.0, 1.0, gain, join_sound.PEAK)
    first, last = sound.find_spoken_span(spoken, RATE)
    assert first > 0.25 * RATE and len(whole.samples) == last - first
    fade = int(join_sound.FADE_S * RATE)
    np.testing.assert_allclose(whole.samples, join_sound.fade_edges(spoken[first:last] * np.float32(gain), fade), atol=1e-6)
    heard, so_far = 0.0, list[sound.Samples]()
    for cut in (*cuts, None):
        done = cut is None
        found = cut_next(spoken if cut is None else spoken[: int(cut * RATE)], RATE, done, heard, 1.0, gain, join_sound.PEAK)
        so_far.append(found.samples)
        heard = found.until_s
    joined = np.concatenate(so_far)
    assert len(joined) == len(whole.samples)
    np.testing.assert_allclose(joined, whole.samples, atol=2e-2)


def test_a_voice_that_becomes_quieter_on_the_way_does_so_without_a_step() -> None:
    spoken = np.full(2 * RATE, 0.2, np.float32)
    plain = cut_next(spoken, RATE, True, 1.0, 1.0, 1.0, 1.0, 1.0).samples
    lowered = cut_next(spoken, RATE, True, 1.0, 1.0, 0.5, 1.0, 1.0).samples[: RATE // 2] / plain[: RATE // 2]
    assert lowered[0] == pytest.approx(1.0, abs=1e-3) and lowered[-1] == pytest.approx(0.5)
    assert np.abs(np.diff(lowered)).max() < 1e-3
    begun = cut_next(spoken, RATE, True, 0.0, 1.0, 0.5, 1.0, 1.0).samples
    assert begun[RATE // 4] == pytest.approx(0.1), "a part begins with the gain that it goes on with"


def test_a_part_at_another_speed_is_heard_once_it_is_whole() -> None:
    spoken = part()
    assert not len(cut_next(spoken[:RATE], RATE, False, 0.0, 1.25, 1.0, 1.0).samples)
    found = cut_next(spoken, RATE, True, 0.0, 1.25, 1.0, 1.0)
    first, last = sound.find_spoken_span(spoken, RATE)
    assert len(found.samples) == pytest.approx((last - first) / 1.25, rel=0.02)


def test_silence_is_heard_as_it_is_joined() -> None:
    silent = np.zeros(RATE, np.float32)
    assert not len(cut_next(silent, RATE, False, 0.0, 1.0, 1.0, 1.0).samples), "it may be the begin of a part"
    assert len(cut_next(silent, RATE, True, 0.0, 1.0, 1.0, 1.0).samples) == RATE


def test_what_is_limited_is_so_in_pieces_as_in_whole() -> None:
    """The peaks of each beat lie above the ceiling, and the limiter looks over the cuts between pieces."""
    times = np.arange(2 * RATE) / RATE
    spoken = (0.4 * np.sin(2 * np.pi * 150 * times) * (1 + np.sin(2 * np.pi * 7 * times))).astype(np.float32)
    whole = cut_next(spoken, RATE, True, 0.0, 1.0, 2.0, join_sound.PEAK).samples
    heard, pieces = 0.0, list[sound.Samples]()
    for cut in (0.5, 0.9, 1.3, 2.0):
        found = cut_next(spoken[: int(cut * RATE)], RATE, cut == 2.0, heard, 1.0, 2.0, join_sound.PEAK)
        heard = found.until_s
        pieces.append(found.samples)
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-5)
    assert np.abs(whole).max() == pytest.approx(join_sound.PEAK, abs=1e-3)


@pytest.mark.parametrize("rate", [8000, 24_000, 44_100])
@pytest.mark.parametrize("length", [1, 3, 500, 20_000])
def test_no_sample_is_above_the_ceiling_and_what_is_far_from_a_peak_stays(rate: int, length: int) -> None:
    samples = np.random.default_rng(length).normal(0, 1, length).astype(np.float32)
    assert np.abs(join_sound.limit(samples, rate, 0.5)).max() <= 0.5 + 1e-6
    quiet = np.full(length, 0.4, np.float32)
    assert join_sound.limit(quiet, rate, 0.5) is quiet
    alone = np.full(2 * rate, 0.4, np.float32)
    alone[rate] = 1.0
    changed = np.flatnonzero(join_sound.limit(alone, rate, 0.5) < 0.3999) - rate
    assert -join_sound.LOOKAHEAD_S * rate <= changed[0] < 0 < changed[-1] < 0.12 * rate, (
        "a moment before, and 6 dB in a tenth of a second after"
    )


def test_each_voice_has_a_gain_of_its_own_and_one_for_all_it_says() -> None:
    def measure(voice: int, loud: float, volume_db: float = 0.0) -> tuple[Segment, join_sound.Loudness]:
        return Segment(Path(), voice=voice, volume_db=volume_db), join_sound.measure_loudness(part() * np.float32(loud), RATE)

    said = [measure(1, 1.0), measure(1, 0.5), measure(2, 0.25)]
    gains = join_sound.choose_gains(said, -30.0)
    assert gains[2] / gains[1] == pytest.approx(np.sqrt((1 + 0.25) / 2) / 0.25, rel=0.01), "by the loudness of all that a voice says"
    assert join_sound.find_level(loudness.times(gains[each.voice]) for each, loudness in said) == pytest.approx(-30.0, abs=0.01)
    assert join_sound.choose_gains([*said, measure(3, 0.01)], -30.0)[3] == pytest.approx(gains[1], rel=0.01), "noise is no voice"
    assert {*join_sound.choose_gains(said, None).values()} == {1.0}
    assert join_sound.choose_gains([measure(1, 0.0)], -18.0) == {1: 1.0}
    loud = join_sound.choose_gains(said, 6.0)
    assert loud[1] == pytest.approx(2 * join_sound.PEAK / 0.2, rel=0.01), "its peak is limited by 6 dB and no more"
    assert loud[2] / loud[1] == pytest.approx(gains[2] / gains[1]), "and all voices stay alike"
    assert join_sound.choose_gains([*said, measure(4, 1.0, 12.0)], 6.0)[4] == pytest.approx(loud[1] / 4, rel=0.02), (
        "also with a volume of its own"
    )


def test_a_voice_that_begins_quietly_is_as_loud_as_wanted_later() -> None:
    def measure(loud: float) -> tuple[Segment, join_sound.Loudness]:
        return Segment(Path(), voice=1), join_sound.measure_loudness(part() * np.float32(loud), RATE)

    known, gains = [measure(0.2)], dict[int, float]()
    for each in (measure(1.0), measure(1.0), measure(0.1)):
        before, gains = gains, choose_gains(gains, known, known[-1][0], True, -30.0)
        assert gains[1] <= before.get(1, gains[1]), "it grows no louder on the way"
        known.append(each)
    assert gains == join_sound.choose_gains(known[:-1], -30.0)
    assert choose_gains(gains, known, known[-1][0], True, -30.0, begins=False) == gains, "within a part it grows no louder"


def hear(known: list[tuple[Segment, join_sound.Loudness]]) -> dict[int, float]:
    """Return the gains with which a script's last part is heard, each part after those before it."""
    gains = dict[int, float]()
    for place, (segment, _) in enumerate(known):
        before, gains = gains, choose_gains(gains, known[: place + 1], segment, True, -18.0)
        assert all(gains[voice] <= gain * 1.1221 for voice, gain in before.items()), "it rises by a decibel at most"
    return gains


def say_at(voice: int, lufs: float) -> tuple[Segment, join_sound.Loudness]:
    return Segment(Path(), voice=voice), join_sound.Loudness(4.0 * 10 ** (lufs / 10), 4.0, 10 ** ((lufs + 10) / 20))


def test_a_voice_that_was_loud_once_is_as_loud_as_joined_later() -> None:
    known = [say_at(1, lufs) for lufs in (-24, -10, *[-24] * 60)]
    assert hear(known[:2])[1] < 0.6
    assert hear(known) == pytest.approx(join_sound.choose_gains(known, -18.0), rel=0.01)


def test_a_voice_that_was_heard_becomes_no_quieter_for_one_that_shouts() -> None:
    """Beside the shout it counts as noise, and had the other one's gain for the rest of the script."""
    known = [*[say_at(2, -37)] * 3, say_at(1, -20), say_at(1, -8)]
    assert join_sound.find_noise(join_sound.find_levels(known)) == {2}
    assert hear(known)[2] == hear(known[:1])[2]
    known += [say_at(1, -20), say_at(2, -37)] * 40
    assert hear(known) == pytest.approx(join_sound.choose_gains(known, -18.0), rel=0.01)


def test_a_voice_that_was_heard_as_noise_has_its_own_gain_with_its_next_part() -> None:
    """A shout came before it, and it rose by a decibel with each of its parts."""
    known = [say_at(1, -8), say_at(2, -37)]
    gains = hear(known)
    assert gains[2] == pytest.approx(gains[1]), "beside the shout alone it is noise"
    known += [*[say_at(1, -20)] * 20, say_at(2, -37)]
    usual = join_sound.choose_gains(known, -18.0)[2]
    assert usual > 20 * gains[2]
    assert choose_gains(gains, known, known[-1][0], True, -18.0, begins=False)[2] == gains[2], "within a part it grows no louder"
    assert choose_gains(gains, known, known[-1][0], True, -18.0)[2] == pytest.approx(usual)


def test_noise_that_comes_first_is_as_quiet_as_joined_later() -> None:
    """It stayed 40 decibels too loud for the rest of the script."""
    known = [say_at(1, -60), say_at(2, -20)] * 3
    assert hear(known[:1])[1] > 100
    assert hear(known) == pytest.approx(join_sound.choose_gains(known, -18.0))


def test_a_part_is_measured_once_and_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 512 parts each look measured every file again, and the first one of a long script took 15 seconds."""
    file, samples = tmp_path / "part.wav", part()
    spoken_parts.save(SpokenPart("One.", 1, "key", 1.2, True, None, file), samples, RATE)
    noted = join_sound.measure_loudness(*join_sound.read_spoken(file))
    others = [tmp_path / f"part-{place}.wav" for place in range(600)]
    for each in others:
        each.hardlink_to(file)
        each.with_suffix(".json").hardlink_to(file.with_suffix(".json"))
    with monkeypatch.context() as patch:
        patch.setattr(join_sound, "read_spoken", lambda file: pytest.fail("it was noted"))
        assert {measure_file(each) for each in others} == {noted}
        patch.setattr(spoken_parts, "read_loudness", lambda file: pytest.fail("it was read"))
        assert {measure_file(each) for each in others} == {noted}
    sound.write(file, (samples / 2).astype(np.float32), RATE)
    os.utime(file, ns=(0, file.with_suffix(".json").stat().st_mtime_ns + 1))
    assert measure_file(file).power == pytest.approx(noted.power / 4, rel=0.01), "it was changed since"
    copy = spoken_parts.adopt(file, tmp_path, 1).path
    assert copy != file and measure_file(copy) == measure_file(file), "nor does a copy believe what was noted"
