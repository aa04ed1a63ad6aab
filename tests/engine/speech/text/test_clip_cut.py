"""What is used of a voice's clip: made-up speakers of two pitches, who say a letter in 50 ms."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from app.engine.models.voice_limits import DIA
from app.engine.speech.sound.sound import Samples
from app.engine.speech.text.clip_cut import cut_clip
from app.engine.speech.text.turns import Turn
from tests.engine.speech.text.test_turn_ends import HIGH, LOW, RATE, pause, voice

STARTER = dataclasses.replace(DIA, carries=False, clip_most_s=4.0)
PAUSE_S = 0.2


def scene(*lengths_s: float, speakers: tuple[int, int] = (1, 2)) -> tuple[Samples, tuple[Turn, ...], list[float]]:
    """Return a clip of turns with a pause after each, their words, and where they begin and end."""
    said, turns, ends = [], [], [0.0]
    for place, seconds in enumerate(lengths_s):
        speaker = speakers[place % 2]
        said += [voice(HIGH if speaker == 1 else LOW, seconds - PAUSE_S), pause(PAUSE_S)]
        turns.append(Turn(speaker, " ".join(["four"] * round(seconds * 4))))
        ends.append(ends[-1] + seconds)
    return np.concatenate(said), tuple(turns), ends


def cut(clip: Samples, turns: tuple[Turn, ...], **limits: object) -> tuple[float, tuple[Turn, ...]]:
    kept, words = cut_clip(clip, RATE, turns, len(clip) / RATE, dataclasses.replace(DIA, **limits))  # type: ignore[arg-type]
    return len(kept) / RATE, words


def test_dia_hears_a_scene_that_fits_whole() -> None:
    clip, turns, ends = scene(4.0, 5.0, 5.5)
    seconds, kept = cut(clip, turns)
    assert seconds == pytest.approx(ends[-1]) and kept == turns


@pytest.mark.parametrize("lengths_s", [(4.0, 3.0, 4.0, 6.0), (5.5, 6.0, 6.0)])
def test_a_longer_scene_is_cut_after_a_turn_and_keeps_exactly_its_words(lengths_s: tuple[float, ...]) -> None:
    """After the last that ends within 12 of the 15 s, the middle of a pause."""
    clip, turns, ends = scene(*lengths_s)
    count = sum(end <= 12.0 for end in ends) - 1
    assert 1 < count < len(turns)
    kept_s, words = cut(clip, turns)
    assert kept_s == pytest.approx(ends[count] - PAUSE_S / 2, abs=0.05) and words == turns[:count]


def test_a_turn_too_long_is_cut_between_two_words() -> None:
    clip, turns, _ = scene(2.0, 20.0)
    kept_s, words = cut(clip, turns)
    assert 8.2 <= kept_s <= 12.0 and words[0] == turns[0]
    assert turns[1].text.startswith(words[1].text) and len(words[1].text) < len(turns[1].text) / 2


@pytest.mark.parametrize(("lengths_s", "place"), [((2.0, 1.8), 0), ((3.0, 4.5, 2.0), 0), ((0.7, 1.9, 2.0), 1)])
@pytest.mark.parametrize("speakers", [(1, 2), (2, 1)])
def test_a_voice_of_fixed_tags_hears_one_speaker(lengths_s: tuple[float, ...], place: int, speakers: tuple[int, int]) -> None:
    """The first turn that is long enough, though the scene might fit."""
    clip, turns, ends = scene(*lengths_s, speakers=speakers)
    kept, words = cut_clip(clip, RATE, turns, ends[-1], STARTER)
    assert words == (turns[place],)
    begins, lasts = [*pairwise(ends)][place]
    assert len(kept) / RATE == pytest.approx(lasts - begins, abs=PAUSE_S)
    spectrum = np.abs(np.fft.rfft(kept))
    assert spectrum.argmax() * RATE / len(kept) == pytest.approx(HIGH if turns[place].speaker == 1 else LOW, abs=3)


def test_it_hears_several_turns_of_one_speaker_and_a_long_one_is_cut() -> None:
    clip, turns, ends = scene(1.5, 2.0, speakers=(1, 1))
    assert cut_clip(clip, RATE, turns, ends[-1], STARTER)[1] == turns
    clip, turns, ends = scene(6.0, 3.0)
    kept, words = cut_clip(clip, RATE, turns, ends[-1], STARTER)
    assert 2.2 <= len(kept) / RATE <= 3.2
    assert len(words) == 1 and turns[0].text.startswith(words[0].text) and len(words[0].text) < len(turns[0].text)
