"""Make training batches for Dia: scripts with corrupted pasts, dropped and repeated frames, prompts as an encoder finds them. Knows no weights."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import codec, corpus, model

TEXT_DROPOUT = 0.03
FRAMES_A_BATCH = 1600
POOL = 512
LONGEST_FRAMES = 360
MOST_BLUR = 0.7


@dataclass(frozen=True, slots=True)
class Batch:
    ids: Tensor
    mask: Tensor
    inputs: Tensor
    labels: Tensor
    place: Tensor
    spoken: Tensor


def warped(example: corpus.Example, rng: np.random.Generator) -> corpus.Example:
    """Drop and repeat up to 5% of the frames, so that the place follows from what was said, not only from the time."""
    if rng.random() < 0.6:
        return example
    rate = rng.uniform(0, 0.05)
    times = 1 + (rng.random(len(example.codes)) < rate).astype(int) - (rng.random(len(example.codes)) < rate).astype(int)
    keep = np.repeat(np.arange(len(times)), np.maximum(times, 0))
    return corpus.Example(example.ids, example.codes[keep], example.place[keep], int((keep < example.heard).sum()))


def corrupted(codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Corrupt up to half of the past, by frames or spans, so that the model learns to trust the text."""
    if rng.random() < 0.2:
        return codes
    rate, count = rng.uniform(0, 0.5), len(codes)
    span = 1 if rng.random() < 0.5 else int(rng.integers(2, 12))
    bad = np.repeat(rng.random(count // span + 1) < rate, span)[:count]
    shown = codes.copy()
    shown[bad] = codes[rng.integers(0, count, int(bad.sum()))]
    single = rng.random(codes.shape) < rate * 0.4
    shown[single] = rng.integers(0, codec.CODES, int(single.sum()))
    return shown


def blurred(codes: NDArray[np.int64], books: Tensor, rng: np.random.Generator) -> NDArray[np.int64]:
    """Replace codes by near ones, as prompts come from an encoder that errs."""
    points = sum((books[channel, torch.from_numpy(codes[:, channel])] for channel in range(codec.CHANNELS)), torch.zeros(()))
    beside = torch.from_numpy(rng.standard_normal(points.shape, np.float32)) * float(rng.uniform(0, MOST_BLUR)) * books[0].std(0)
    return codec.quantise(points + beside, books).numpy()


def collate(examples: list[corpus.Example], books: Tensor, rng: np.random.Generator) -> Batch:
    """Pad to one shape; rows are decoder positions, and row r predicts row r + 1."""
    longest_text = math.ceil(max(len(example.ids) for example in examples) / 8) * 8
    rows = math.ceil((max(len(example.codes) for example in examples) + 5) / 8) * 8
    count = len(examples)
    ids, mask = torch.zeros(count, longest_text, dtype=torch.long), torch.zeros(count, longest_text, dtype=torch.long)
    inputs, labels = (
        torch.empty(count, rows, codec.CHANNELS, dtype=torch.long),
        torch.empty(count, rows, codec.CHANNELS, dtype=torch.long),
    )
    place, spoken = torch.zeros(count, rows), torch.zeros(count, rows, dtype=torch.bool)
    for row, example in enumerate(examples):
        mask[row, : len(example.ids)] = 1
        silent = rng.random() < TEXT_DROPOUT
        if not silent:
            ids[row, : len(example.ids)] = torch.tensor(example.ids)
        shown = np.concatenate([blurred(example.codes[: example.heard], books, rng), corrupted(example.codes[example.heard :], rng)])
        inputs[row] = torch.from_numpy(model.delayed(shown, rows + 1)[:-1])
        labels[row] = torch.from_numpy(model.delayed(example.codes, rows + 1)[1:])
        for channel, late in enumerate(model.DELAY):
            labels[row, : late + example.heard, channel] = model.IGNORED
        frames = len(example.place)
        place[row, :frames] = torch.from_numpy(example.place)
        place[row, frames:] = len(example.ids) - 1
        spoken[row, : frames + 1] = not silent
    labels[(labels == model.PAD) | (labels == model.BOS)] = model.IGNORED
    return Batch(ids, mask, inputs, labels, place, spoken)


class Shards:
    """The sentences in a folder; those of new files join as they come."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._seen = folder, set[Path]()
        self.phrases: corpus.Phrases = {}

    def refresh(self) -> corpus.Phrases:
        for path in sorted(self._folder.glob("phrases-*[0-9].npz")):
            if path not in self._seen:
                self._seen.add(path)
                for name, said in corpus.read(path).items():
                    self.phrases.setdefault(name, []).extend(said)
        return self.phrases


def batches(folder: Path, books: Tensor, seed: int) -> Iterator[Batch]:
    """Yield batches of new scripts of similar lengths, without end."""
    rng, draws, shards = random.Random(seed), np.random.default_rng(seed), Shards(folder)
    while True:
        phrases = shards.refresh()
        drawn = (warped(corpus.draw(rng, phrases, LONGEST_FRAMES), draws) for _ in range(POOL))
        pool = sorted(drawn, key=lambda example: len(example.codes))
        groups: list[list[corpus.Example]] = [[]]
        for example in pool:
            if (len(groups[-1]) + 1) * len(example.codes) > FRAMES_A_BATCH and groups[-1]:
                groups.append([])
            groups[-1].append(example)
        rng.shuffle(groups)
        for group in groups:
            yield collate(group, books, draws)
