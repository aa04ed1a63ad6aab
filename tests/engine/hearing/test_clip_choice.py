"""What of a recording becomes a voice: five to ten seconds of whole sentences, and whether they are fit for it."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.hearing.clip_choice import choose_clip
from app.engine.hearing.heard import Word

RATE = 8000
WORD_S, GAP_S = 0.4, 0.1


def record(count: int, unsure: range = range(0), loud: float = 0.1, noise: float = 0.0005) -> tuple[list[Word], np.ndarray]:
    """Return words in sentences of five, with a pause after each, and their sound."""
    words, at_s = [], 0.5
    for place in range(count):
        words.append(Word(f"w{place}" + "." * (place % 5 == 4), at_s, at_s + WORD_S, 0.3 if place in unsure else 0.9))
        at_s += WORD_S + (0.6 if place % 5 == 4 else GAP_S)
    rng = np.random.default_rng(0)
    samples = rng.normal(0, noise, int((at_s + 0.5) * RATE)).astype(np.float32)
    for word in words:
        part = samples[int(word.begin_s * RATE) : int(word.end_s * RATE)]
        part += rng.normal(0, loud, len(part)).astype(np.float32)
    return words, samples


def test_whole_sentences_of_the_surest_stretch() -> None:
    words, samples = record(60, unsure=range(25))
    clip = choose_clip(words, samples, RATE)
    assert clip is not None and 5.0 <= clip.end_s - clip.begin_s <= 10.3
    said = clip.text.split()
    assert int(said[0][1:]) >= 25 and int(said[0][1:]) % 5 == 0 and said[-1].endswith(".") and clip.notes == ()
    first = next(word for word in words if word.text == said[0])
    assert clip.begin_s == pytest.approx(first.begin_s - 0.12, abs=0.01)


def test_a_short_one_is_taken_whole() -> None:
    words, samples = record(5)
    clip = choose_clip(words, samples, RATE)
    assert clip is not None and clip.text == "w0 w1 w2 w3 w4."
    assert choose_clip([], samples, RATE) is None


@pytest.mark.parametrize(
    ("more", "key"), [({"loud": 0.8}, "clip.distorted"), ({"loud": 0.005, "noise": 0.0001}, "clip.quiet"), ({"noise": 0.04}, "clip.noisy")]
)
def test_what_is_not_fit_is_told(more: dict[str, float], key: str) -> None:
    words, samples = record(30, **more)  # type: ignore[arg-type]
    clip = choose_clip(words, samples, RATE)
    assert clip is not None and [note.key for note in clip.notes] == [key]
