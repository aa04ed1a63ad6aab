"""When words are said: the path through what a decoder looked at, pauses that no word goes over."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.hearing.alignment import align, find_loud, follow_path, make_words, tighten
from app.engine.hearing.heard import Word, join_words
from app.engine.speech.sound.sound import Samples

RATE = 8000


def speak(*spans_s: tuple[float, float], seconds: float, rate: int = RATE) -> Samples:
    """Return noise at these times, and silence elsewhere."""
    samples = np.zeros(int(seconds * rate), np.float32)
    for begin_s, end_s in spans_s:
        part = samples[int(begin_s * rate) : int(end_s * rate)]
        part[:] = np.random.default_rng(1).normal(0, 0.2, len(part))
    return samples


def test_the_path_begins_each_row_where_it_is_cheap() -> None:
    costs = np.ones((3, 9))
    costs[0, :2] = costs[1, 2:7] = costs[2, 7:] = 0
    assert follow_path(costs).tolist() == [0, 2, 7]
    assert follow_path(np.zeros((4, 2))).tolist()[0] == 0, "more tokens than places"


def test_a_token_is_where_its_heads_look_and_never_in_silence() -> None:
    looked = np.full((2, 3, 60), 0.001, np.float32)
    looked[:, 0, :20] = looked[:, 1, 40:50] = looked[:, 2, 50:] = 0.1
    looked[:, 1, 25:35] = 0.3  # a look into the pause
    loud = np.array([place < 20 or place >= 40 for place in range(60)])
    begins = align(looked, loud)
    assert begins == pytest.approx([0, 40, 50], abs=2)


def test_a_pause_is_no_part_of_a_word() -> None:
    samples = speak((0.1, 0.5), (1.5, 2.3), seconds=3)
    words = [Word("lamps", 0.0, 1.7, 1), Word("nobody", 1.7, 2.0, 1), Word("asked", 2.0, 3.0, 1)]
    found = [(word.begin_s, word.end_s) for word in tighten(words, samples, RATE)]
    assert found == [pytest.approx(each, abs=0.03) for each in ((0.1, 0.5), (1.5, 2.0), (2.0, 2.3))]
    assert tighten([], samples, RATE) == []
    assert tighten([Word("nowhere", 0.7, 1.2, 1)], samples, RATE) == [Word("nowhere", 0.7, 1.2, 1)]


def test_tokens_become_words_of_any_writing() -> None:
    tokens = [b" Every", b"one", b" said ", "\u4f60".encode()[:2], "\u4f60".encode()[2:], "\u597d\u3002".encode()]

    def decode(part: list[int]) -> str:
        return b"".join(tokens[place] for place in part).decode("utf-8", "replace")

    words = make_words(list(range(6)), lambda part: decode(list(part)), [float(at) for at in range(7)], [0.5, 1.0, 0.8, 0.4, 0.6, 0.9])
    assert [(word.text, word.begin_s, word.end_s) for word in words] == [
        ("Everyone", 0, 2),
        ("said", 2, 3),
        ("\u4f60", 3, 5),
        ("\u597d\u3002", 5, 6),
    ]
    assert words[0].sure == pytest.approx(0.75) and words[2].sure == pytest.approx(0.5)
    assert join_words([word.text for word in words]) == "Everyone said \u4f60\u597d\u3002"


def test_in_no_sound_nothing_is_loud() -> None:
    assert not find_loud(np.zeros(0, np.float32), RATE, 50).any()
