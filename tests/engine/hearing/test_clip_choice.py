"""What of a recording becomes a voice: five to ten seconds of whole sentences, and whether they are fit for it."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.hearing.clip_choice import choose_clip
from app.engine.hearing.heard import Word
from app.engine.speech.sound import sound
from tests.support.places import TOP

RATE = 8000
WORD_S, GAP_S = 0.4, 0.1
STARTER = TOP / "assets/starter/voice"


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


def play_chords(seconds: float, rate: int) -> sound.Samples:
    """Return a chord after another, each with its overtones, struck twice a second: as a piano under a voice, or alone."""
    times, chords = np.arange(int(seconds * rate)) / rate, ((220, 277, 330), (196, 247, 294), (175, 220, 262), (165, 208, 247))
    notes = np.stack([sum(np.sin(2 * np.pi * each * over * times) / over for each in chord for over in (1, 2, 3)) for chord in chords])
    played: sound.Samples = (
        notes[(times // 0.5).astype(int) % len(chords), np.arange(len(times))] * np.exp(-2 * (times % 0.5)) / 6
    ).astype(np.float32)
    return played


def test_music_under_a_voice_is_told_of_and_the_words_are_kept() -> None:
    voice, rate = sound.read(STARTER / "voices/anna.ogg")
    said = [
        "Hello,",
        "I",
        "am",
        "Anna,",
        "one",
        "of",
        "the",
        "voices",
        "that",
        "come",
        "with",
        "Hearth.",
        "I",
        "read",
        "whatever",
        "you",
        "write.",
    ]
    still = np.zeros(rate, np.float32)
    samples, step = np.concatenate([still, voice, still]), len(voice) / rate / len(said)
    words = [Word(word, 1 + place * step, 1 + (place + 1) * step - 0.01, 0.8) for place, word in enumerate(said)]
    plain = choose_clip(words, samples, rate)
    chords = np.float32(0.3) * play_chords(len(samples) / rate, rate)[: len(samples)]
    mixed = choose_clip(words, samples + chords, rate)
    assert plain is not None and mixed is not None and plain.text == mixed.text == " ".join(said)
    assert plain.notes == () and [note.key for note in mixed.notes] == ["clip.noisy"] and "music" in str(mixed.notes[0])


@pytest.mark.parametrize("heard", ["[Music]", "(upbeat piano music)", "\u266a \u266a\u266a", "*music* [Applause]."])
def test_in_music_alone_nobody_speaks(heard: str) -> None:
    words = [Word(word, float(place), place + 0.9, 0.4) for place, word in enumerate(heard.split())]
    assert choose_clip(words, play_chords(8.0, RATE), RATE) is None
    after = [*words, Word("Well,", 9.0, 9.4, 0.9), Word("hello.", 9.5, 9.9, 0.9)]
    clip = choose_clip(after, play_chords(11.0, RATE), RATE)
    assert clip is not None and clip.text == "Well, hello.", "what is said behind it is kept"


def test_a_bracket_that_stays_open_hides_nothing() -> None:
    said = ["Well", "(as", "I", "said", "you", "come", "in", "and", "sit", "down", "by", "the", "fire"]
    words = [Word(word, 0.4 * place, 0.4 * place + 0.3, 0.9) for place, word in enumerate(said)]
    clip = choose_clip(words, play_chords(6.0, RATE), RATE)
    assert clip is not None and clip.text.endswith("by the fire")
