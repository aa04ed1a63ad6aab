"""Run two steps of every training part on tones instead of flite: shows that the parts fit together, not that they learn."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from . import batches, codec, corpus, export, flite, speak, train, vocoder, words
from .flite import Phone

LETTER_S = 0.05


def tones(word: str, low_hz: float) -> tuple[NDArray[np.int16], tuple[Phone, ...]]:
    """Stand in for flite: a pause, every letter as a tone of 50 ms and one phone, a pause."""
    phones, pieces = [Phone("pau", -1, 0.1)], [np.zeros(1600)]
    time_s = np.arange(int(LETTER_S * codec.RATE_HZ)) / codec.RATE_HZ
    for number, letter in enumerate(word, start=1):
        height_hz = low_hz + 8 * (ord(letter) - ord("a"))
        pieces.append(sum((np.sin(2 * np.pi * part * height_hz * time_s) / part for part in range(1, 12)), np.zeros(len(time_s))))
        phones.append(Phone(letter, 0, 0.1 + LETTER_S * number))
    phones.append(Phone("pau", -1, phones[-1].end_s + 0.1))
    return (np.concatenate([*pieces, np.zeros(1600)]) * 0.15 * 32767).astype(np.int16), tuple(phones)


def write(sounds: Path, phrases: Path) -> torch.Tensor:
    """Write the files of corpus.write_sounds and write_phrases from tones; return the codebooks."""
    said = [
        (speaker, word, flite.Utterance(*tones(word, low_hz)))
        for speaker, low_hz in (("S1", 200.0), ("S2", 110.0))
        for word in words.vocabulary()
    ]
    points = [codec.features(torch.from_numpy(one.samples).float() / 32768) for _, _, one in said]
    books = codec.fit_codebooks(torch.cat(points), seed=1, rounds=2)
    corpus.save_codec(sounds, books, [one.samples for _, _, one in said], [codec.quantise(part, books).numpy() for part in points])
    corpus.save(phrases, {who: [corpus.phrase(word, one, books) for speaker, word, one in said if speaker == who] for who in flite.VOICES})
    return books


def run(work: Path) -> dict[str, float]:
    """Run a tiny corpus, two steps of codec and Dia, export, loading and speaking; return what a test can check."""
    sounds, phrases = work / "sounds.npz", work / "phrases.npz"
    books = write(sounds, phrases)
    vocoder.fit_decoder(sounds, work / "decoder", steps=2)
    vocoder.fit_encoder(sounds, work / "encoder", steps=2)
    torch.manual_seed(0)
    course = train.begin(books, 1e-3)
    shown = islice(batches.batches(phrases, books, seed=1), 2)
    losses = [train.step_once(course.trainee, course.steppers, batch, 1e-3)["codes"] for batch in shown]
    course.average = course.trainee.plain()
    course.save(work / "dia.pt")
    export.write(work / "dia.pt", work / "decoder", work / "encoder", work / "voice")
    spoken = speak.speak(speak.load(work / "voice"), ["[S1] one two"], seed=1, max_new_tokens=24)[0]
    return {"first_loss": losses[0], "second_loss": losses[1], "frames": float(spoken.frames), "seconds": len(spoken.sound) / codec.RATE_HZ}
