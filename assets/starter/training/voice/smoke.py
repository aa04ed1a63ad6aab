"""Two steps of every part of the training on made-up tones instead of flite: shows that the parts fit together, not that they learn."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from . import codec, corpus, export, speak, train, vocoder, words
from .flite import Phone


def tones(text: str, low_hz: float) -> tuple[np.ndarray, tuple[Phone, ...]]:
    """A stand-in for flite: every letter a tone of 60 ms, every word one phone a letter."""
    phones, pieces, end_s = [], [np.zeros(1600)], 0.1
    phones.append(Phone("pau", -1, end_s))
    for number, word in enumerate(words.spoken_words(text)):
        for letter in word:
            time_s = np.arange(960) / codec.RATE_HZ
            pieces.append(0.3 * sum(np.sin(2 * np.pi * part * (low_hz + 8 * (ord(letter) - 97)) * time_s) / part for part in range(1, 12)))
            end_s += 0.06
            phones.append(Phone(letter, number, end_s))
    pieces.append(np.zeros(1600))
    phones.append(Phone("pau", -1, end_s + 0.1))
    return (np.concatenate(pieces) * 32767 * 0.5).astype(np.int16), tuple(phones)


def run(work: Path) -> dict[str, float]:
    """Writes a tiny corpus, takes two steps of codec and Dia, exports, loads and speaks; returns what a test can check."""
    data = work / "data"
    data.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    said = [(speaker, text, *tones(text, low)) for text in (words.phrase(rng, "digits") for _ in range(8)) for speaker, low in (("S1", 200.0), ("S2", 110.0))]
    points = [codec.features(torch.from_numpy(sound).float() / 32768) for _, _, sound, _ in said]
    books = codec.fit_codebooks(torch.cat(points), seed=1, rounds=3)
    codes = [codec.quantise(part, books).numpy().astype(np.uint8) for part in points]
    np.savez(data / "codec.npz", books=books.numpy(), sound=np.concatenate([sound for _, _, sound, _ in said]),
             lengths=[len(sound) for _, _, sound, _ in said], codes=np.concatenate(codes), frames=[len(part) for part in codes])
    corpus.save(data / "shard-000.npz", [
        corpus.Clip(speaker, text, part, corpus.places(text, phones, len(part))) for (speaker, text, _, phones), part in zip(said, codes, strict=True)
    ])
    vocoder.fit_decoder(data / "codec.npz", work / "codec", steps=2)
    vocoder.fit_encoder(data / "codec.npz", work / "codec", steps=2)
    torch.manual_seed(0)
    trainee = train.Trainee(train.model.dia(), books)
    steppers = train.optimizers(trainee, 1e-3)
    losses = [train.step_once(trainee, steppers, batch, 1e-3)["codes"] for batch in islice(train.batches(data, seed=1), 2)]
    train.save(trainee, steppers, trainee.plain(), work / "dia.pt")
    export.write(work / "dia.pt", work / "codec", work / "voice")
    spoken = speak.speak(speak.load(work / "voice"), ["[S1] one two"], seed=1, max_new_tokens=24)[0]
    return {"first_loss": losses[0], "second_loss": losses[1], "frames": float(spoken.frames), "seconds": len(spoken.sound) / codec.RATE_HZ}
