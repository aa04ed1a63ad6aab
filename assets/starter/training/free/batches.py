"""What Dia is shown in training: batches of scripts with spoiled pasts, frames dropped and repeated. Knows no weights."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..voice import model
from ..voice.batches import corrupted
from . import corpus

POOL = 512
LONGEST_FRAMES = 480


@dataclass(frozen=True, slots=True)
class Batch:
    ids: Tensor
    mask: Tensor
    inputs: Tensor
    labels: Tensor
    place: Tensor
    spoken: Tensor

    def to(self, device: str) -> Batch:
        return Batch(*(getattr(self, each.name).to(device, non_blocking=True) for each in fields(self)))


def warped(example: corpus.Example, rng: np.random.Generator) -> corpus.Example:
    """Drops and repeats up to 5% of the frames, so that the place is told by what was said and not only by the clock."""
    if rng.random() < 0.6:
        return example
    rate = rng.uniform(0, 0.05)
    times = 1 + (rng.random(len(example.codes)) < rate).astype(int) - (rng.random(len(example.codes)) < rate).astype(int)
    keep = np.repeat(np.arange(len(times)), np.maximum(times, 0))
    return corpus.Example(example.ids, example.codes[keep], example.place[keep])


def collate(examples: list[corpus.Example], rng: np.random.Generator) -> Batch:
    """Pads to one shape; rows are positions of the decoder, row r predicts what is laid at r + 1."""
    longest_text = math.ceil(max(len(example.ids) for example in examples) / 16) * 16
    rows = math.ceil((max(len(example.codes) for example in examples) + max(corpus.DELAY) + 2) / 16) * 16
    count = len(examples)
    ids, mask = torch.zeros(count, longest_text, dtype=torch.long), torch.zeros(count, longest_text, dtype=torch.long)
    inputs, labels = torch.empty(count, rows, len(corpus.DELAY), dtype=torch.long), torch.empty(count, rows, len(corpus.DELAY), dtype=torch.long)
    place, spoken = torch.zeros(count, rows), torch.zeros(count, rows, dtype=torch.bool)
    for row, example in enumerate(examples):
        mask[row, : len(example.ids)] = 1
        ids[row, : len(example.ids)] = torch.tensor(example.ids)
        codes = example.codes.astype(np.int64)
        inputs[row] = torch.from_numpy(model.delayed(corrupted(codes, rng), rows + 1, corpus.DELAY)[:-1])
        labels[row] = torch.from_numpy(model.delayed(codes, rows + 1, corpus.DELAY)[1:])
        frames = len(example.place)
        place[row, :frames] = torch.from_numpy(example.place)
        place[row, frames:] = len(example.ids) - 1
        spoken[row, : frames + 1] = True
    labels[(labels == model.PAD) | (labels == model.BOS)] = model.IGNORED
    return Batch(ids, mask, inputs, labels, place, spoken)


def shards(folder: Path) -> list[Path]:
    """What there is so far of the phrases, which may still be in the making."""
    return sorted((folder if folder.exists() else folder.with_suffix(".part")).glob("*.npz"))


def batches(folder: Path, seed: int, frames: int, least_shards: int = 1) -> Iterator[Batch]:
    """Batches without end, of new scripts of like lengths, at most `frames` each."""
    rng, draws = random.Random(seed), np.random.default_rng(seed)
    phrases: dict[str, list[corpus.Phrase]] = {}
    known: set[str] = set()
    while True:
        fresh = [path for path in shards(folder) if path.name not in known]
        if len(known) + len(fresh) < least_shards:
            time.sleep(0.2)
            continue
        corpus.read(fresh, phrases)
        known |= {path.name for path in fresh}
        drawn = (warped(corpus.draw(rng, phrases, LONGEST_FRAMES), draws) for _ in range(POOL))
        pool = sorted(drawn, key=lambda example: len(example.codes))
        groups: list[list[corpus.Example]] = [[]]
        for example in pool:
            if (len(groups[-1]) + 1) * len(example.codes) > frames and groups[-1]:
                groups.append([])
            groups[-1].append(example)
        rng.shuffle(groups)
        for group in groups:
            yield collate(group, draws)
