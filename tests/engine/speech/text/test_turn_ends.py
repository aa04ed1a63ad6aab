"""Where the turns of a clip end: made-up speakers of two pitches, with pauses between and within their turns."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.speech.sound.sound import Samples
from app.engine.speech.text.turn_ends import find_turn_ends
from app.engine.speech.text.turns import Turn

RATE = 16000
LOW, HIGH = 100.0, 180.0


def voice(hz: float, seconds: float) -> Samples:
    """A hum with overtones."""
    at = np.arange(round(seconds * RATE)) / RATE
    return np.asarray(0.1 * sum(np.sin(2 * np.pi * hz * many * at) / many for many in range(1, 8)), np.float32)


def pause(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE), np.float32)


def find(said: list[Samples], turns: list[tuple[int, int]]) -> list[float]:
    """Find the ends, in seconds, of turns of so many letters each."""
    clip = np.concatenate(said)
    words = [Turn(speaker, "x" * letters) for speaker, letters in turns]
    return [end / RATE for end in find_turn_ends(clip, RATE, words, len(clip) / RATE)]


def test_a_turn_ends_in_the_pause_and_not_where_its_letters_say() -> None:
    said = [voice(HIGH, 1.5), pause(0.2), voice(LOW, 2.5), pause(0.2), voice(HIGH, 2.0)]
    assert find(said, [(1, 20), (2, 20), (1, 20)]) == pytest.approx([1.6, 4.3], abs=0.03)


@pytest.mark.parametrize(("one", "other"), [(HIGH, LOW), (LOW, HIGH)])
def test_a_longer_pause_within_a_turn_is_no_end(one: float, other: float) -> None:
    """After the first sentence, at 1.15 s, as near to where the letters let expect it."""
    said = [voice(one, 1.0), pause(0.3), voice(one, 0.5), pause(0.15), voice(other, 1.0)]
    assert find(said, [(1, 26), (2, 24)]) == pytest.approx([1.875], abs=0.03)
    assert find(said, [(1, 26), (1, 24)]) == pytest.approx([1.15], abs=0.03), "of one speaker's two turns the pause alone tells"


def test_a_breath_is_no_pause_and_the_quietest_place_is_taken_where_there_is_none() -> None:
    soft = 0.2 * voice(HIGH, 0.06)
    said = [voice(HIGH, 1.2), soft, voice(LOW, 1.0)]
    assert find(said, [(1, 20), (2, 20)]) == pytest.approx([1.23], abs=0.04)


def test_only_the_turns_that_end_in_the_samples_have_an_end() -> None:
    """Of a long clip the first minute is read."""
    clip = np.concatenate([voice(HIGH, 1.5), pause(0.2), voice(LOW, 1.5)])
    words = [Turn(1 + place % 2, "x" * 20) for place in range(4)]
    assert [end / RATE for end in find_turn_ends(clip, RATE, words, 6.8)] == pytest.approx([1.6], abs=0.03)


def test_silence_around_the_clip_ends_no_turn() -> None:
    said = [voice(HIGH, 1.0), pause(0.1), voice(HIGH, 0.6), pause(0.3)]
    assert find(said, [(1, 28), (1, 11)]) == pytest.approx([1.05], abs=0.03), "though its letters let expect 1.4 s"
    said = [voice(HIGH, 1.2), 0.2 * voice(HIGH, 0.06), voice(LOW, 0.5), pause(0.3)]
    assert find(said, [(1, 20), (2, 10)]) == pytest.approx([1.23], abs=0.04), "nor where no pause is"
    assert find([pause(0.5)], [(1, 5), (2, 5)]) == [pytest.approx(0.25, abs=0.25)], "no sound at all ends somewhere"
    assert find([voice(HIGH, 1.0)], [(1, 5)]) == []
