"""Two steps of every part of the training on made-up tones instead of flite: shows that the parts fit together, not that they learn."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ..voice import codec, speak
from . import batches, corpus, export, flite, letters, train, vocoder
from .flite import Phone

PHONE_S = 0.05
LEXICON = {"one": "wUn", "two": "tM", "six": "sIks", "no": "nN", "ten": "tEn", "net": "nEt", "tone": "tNn"}
PHONES = {"one": "w ah n", "two": "t uw", "six": "s ih k s", "no": "n ow", "ten": "t eh n", "net": "n eh t", "tone": "t ow n"}


def tones(word: str, low_hz: float) -> tuple[NDArray[np.int16], tuple[Phone, ...]]:
    """A stand-in for flite: a pause, then every phone as a tone of 50 ms, then a pause."""
    phones, pieces = [Phone("pau", -1, 0.1)], [np.zeros(1600)]
    time_s = np.arange(int(PHONE_S * codec.RATE_HZ)) / codec.RATE_HZ
    for number, phone in enumerate(PHONES[word].split(), start=1):
        height_hz = low_hz + 8 * (sum(map(ord, phone)) % 26)
        pieces.append(sum((np.sin(2 * np.pi * part * height_hz * time_s) / part for part in range(1, 12)), np.zeros(len(time_s))))
        phones.append(Phone(phone, 0, 0.1 + PHONE_S * number, phone in ("ah", "uw", "ih", "ow", "eh")))
    phones.append(Phone("pau", -1, phones[-1].end_s + 0.1))
    return (np.concatenate([*pieces, np.zeros(1600)]) * 0.15 * 32767).astype(np.int16), tuple(phones)


def write(sounds: Path, phrases: Path) -> torch.Tensor:
    """What corpus.write_sounds and write_phrases make, of tones: returns the codebooks."""
    said = [(voice, word, *tones(word, low_hz + 3 * step)) for voice, low_hz in (("#", 200.0), ("$", 110.0)) for word in LEXICON for step in range(12)]
    points = [codec.features(torch.from_numpy(samples).float() / 32768) for _, _, samples, _ in said]
    books = codec.fit_codebooks(torch.cat(points), seed=1, rounds=2, channels=len(corpus.DELAY))
    codes = [codec.quantise(part, books).numpy() for part in points]
    corpus.save_codec(sounds, books, [samples for _, _, samples, _ in said], codes)
    laid = [corpus.laid([word], voice, flite.Utterance(samples, phones, (word,)), part) for (voice, word, samples, phones), part in zip(said, codes, strict=True)]
    corpus.save(phrases / "000000.npz", laid)
    return books


def run(work: Path) -> dict[str, float]:
    """A tiny corpus, two steps of codec and Dia, export, loading and speaking; returns what a test can check."""
    sounds, phrases, table = work / "sounds.npz", work / "phrases", work / "letters.gz"
    books = write(sounds, phrases)
    letters.write(letters.learned(letters.alignments(LEXICON)[0]), table)
    vocoder.fit_decoder(sounds, work / "decoder", seconds=0.1)
    vocoder.fit_encoder(sounds, work / "encoder", seconds=0.1)
    torch.manual_seed(0)
    course = train.begin(books, 1e-3)
    shown = islice(batches.batches(phrases, seed=1, frames=1600), 2)
    losses = [float(train.step_once(course.trainee, course.steppers, batch, 1e-3)["codes"]) for batch in shown]
    course.average = course.trainee.plain()
    course.save(work / "dia.pt")
    export.write(work / "dia.pt", work / "decoder", work / "encoder", table, work / "voice")
    spoken = speak.speak(speak.load(work / "voice"), ["[S1] one two"], seed=1, max_new_tokens=24)[0]
    return {"first_loss": losses[0], "second_loss": losses[1], "frames": float(spoken.frames), "seconds": len(spoken.sound) / codec.RATE_HZ}
