"""Two steps of every part of the training on made-up tones instead of flite: shows that the parts fit together, not that they learn."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from . import codec, corpus, export, model, speak, train, vocoder, words
from .flite import Phone

LETTER_S = 0.05


def tones(word: str, low_hz: float) -> tuple[NDArray[np.int16], tuple[Phone, ...]]:
    """A stand-in for flite: a pause, then every letter as a tone of 50 ms and one phone, then a pause."""
    phones, pieces = [Phone("pau", -1, 0.1)], [np.zeros(1600)]
    time_s = np.arange(int(LETTER_S * codec.RATE_HZ)) / codec.RATE_HZ
    for number, letter in enumerate(word, start=1):
        height_hz = low_hz + 8 * (ord(letter) - ord("a"))
        pieces.append(sum((np.sin(2 * np.pi * part * height_hz * time_s) / part for part in range(1, 12)), np.zeros(len(time_s))))
        phones.append(Phone(letter, 0, 0.1 + LETTER_S * number))
    phones.append(Phone("pau", -1, phones[-1].end_s + 0.1))
    return (np.concatenate([*pieces, np.zeros(1600)]) * 0.15 * 32767).astype(np.int16), tuple(phones)


def write(data: Path) -> torch.Tensor:
    """What corpus.write makes, of tones: codec.npz and words.npz; returns the codebooks."""
    data.mkdir(parents=True, exist_ok=True)
    said = [(speaker, word, *tones(word, low_hz)) for speaker, low_hz in (("S1", 200.0), ("S2", 110.0)) for word in words.vocabulary()]
    points = [codec.features(torch.from_numpy(sound).float() / 32768) for _, _, sound, _ in said]
    books = codec.fit_codebooks(torch.cat(points), seed=1, rounds=2)
    codes = [codec.quantise(part, books).numpy() for part in points]
    corpus.save_codec(data / "codec.npz", books, [sound for _, _, sound, _ in said], codes)
    pieces = {
        (speaker, word, last): corpus.cut(phones, part, 0, corpus.DECAY_FRAMES if last else 0)
        for (speaker, word, _, phones), part in zip(said, codes, strict=True) for last in (False, True)
    }
    corpus.save(data / "words.npz", corpus.Recordings(pieces, {"S1": codes[0][0], "S2": codes[-1][0]}))
    return books


def run(work: Path) -> dict[str, float]:
    """A tiny corpus, two steps of codec and Dia, export, loading and speaking; returns what a test can check."""
    data = work / "data"
    books = write(data)
    vocoder.fit_decoder(data / "codec.npz", work / "codec", steps=2)
    vocoder.fit_encoder(data / "codec.npz", work / "codec", steps=2)
    torch.manual_seed(0)
    trainee = train.Trainee(model.dia(), books)
    steppers = train.optimizers(trainee, 1e-3)
    losses = [train.step_once(trainee, steppers, batch, 1e-3)["codes"] for batch in islice(train.batches(data, seed=1), 2)]
    train.save(trainee, steppers, trainee.plain(), work / "dia.pt")
    export.write(work / "dia.pt", work / "codec", work / "voice")
    spoken = speak.speak(speak.load(work / "voice"), ["[S1] one two"], seed=1, max_new_tokens=24)[0]
    return {"first_loss": losses[0], "second_loss": losses[1], "frames": float(spoken.frames), "seconds": len(spoken.sound) / codec.RATE_HZ}
