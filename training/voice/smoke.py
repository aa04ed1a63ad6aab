"""Run two steps of every training part on tones instead of flite: shows that the parts fit together, not that they learn."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from app.engine.speech.text import pronounce, sounds

from . import batches, codec, corpus, export, flite, letters, ready, speak, train, vocoder

LETTER_S = 0.05
TEXTS = ("one two, three.", "A cat sat.", "Four, five!", "six seven eight nine ten?")


def tones(text: str, low_hz: float) -> tuple[NDArray[np.int16], tuple[flite.Phone, ...]]:
    """Stand in for flite: a pause, every letter as a tone of 50 ms and one phone, a pause."""
    phones, pieces, number = [flite.Phone("pau", -1, 0.1)], [np.zeros(1600)], 0
    time_s = np.arange(int(LETTER_S * codec.RATE_HZ)) / codec.RATE_HZ
    for word, said in enumerate(corpus.SPOKEN.sub(lambda found: found[0] if found[0] not in sounds.MARKS else "", text).split()):
        for letter in said.lower():
            number += 1
            height_hz = low_hz + 8 * (ord(letter) - ord("a"))
            pieces.append(sum((np.sin(2 * np.pi * part * height_hz * time_s) / part for part in range(1, 12)), np.zeros(len(time_s))))
            phones.append(flite.Phone(sorted(sounds.VOWELS | sounds.CONSONANTS)[ord(letter) - ord("a")], word, 0.1 + LETTER_S * number))
    phones.append(flite.Phone("pau", -1, phones[-1].end_s + 0.1))
    return (np.concatenate([*pieces, np.zeros(1600)]) * 0.15 * 32767).astype(np.int16), tuple(phones)


def write(sounds_path: Path, phrases: Path) -> torch.Tensor:
    """Write the files of corpus.write_sounds and write_phrases from tones; return the codebooks."""
    said = [(name, text, flite.Utterance(*tones(text, voice.pitch_hz))) for name, voice in flite.VOICES.items() for text in TEXTS]
    points = [codec.features(torch.from_numpy(one.samples).float() / 32768) for _, _, one in said]
    books = codec.fit_codebooks(torch.cat(points), seed=1, rounds=2)
    corpus.save_codec(sounds_path, books, [one.samples for _, _, one in said], [codec.quantise(part, books).numpy() for part in points])
    spoken = {who: [corpus.phrase(text, one, books) for name, text, one in said if name == who] for who in flite.VOICES}
    corpus.save(phrases / "phrases-000.npz", spoken)
    return books


def run(work: Path) -> dict[str, float]:
    """Run a tiny corpus, two steps of codec and Dia, export, loading and speaking; return what a test can check."""
    sounds_path, phrases, read = work / "sounds.npz", work / "phrases", work / "letters.bin"
    books = write(sounds_path, phrases)
    letters.save(pronounce.Letters({"one": "wUn", "two": "tK"}, {}), read)
    vocoder.fit_decoder(sounds_path, work / "decoder", steps=2)
    vocoder.fit_encoder(sounds_path, work / "encoder", steps=2)
    torch.manual_seed(0)
    course = train.begin(books, 1e-3)
    shown = islice(batches.batches(phrases, books, seed=1), 2)
    losses = [train.step_once(course.trainee, course.steppers, batch, 1e-3)["spectrum"] for batch in shown]
    course.average = course.trainee.plain()
    course.save(work / "dia.pt")
    export.write(work / "dia.pt", work / "decoder", work / "encoder", read, work / "voice")
    ready.write(work / "voice", max_new_tokens=24)
    voice = speak.load(work / "voice")
    spoken = speak.speak(voice, [f"[S1] {pronounce.to_sounds('one two', voice.letters)}"], seed=1, max_new_tokens=24)[0]
    return {"first_loss": losses[0], "second_loss": losses[1], "frames": float(spoken.frames), "seconds": len(spoken.sound) / codec.RATE_HZ}
