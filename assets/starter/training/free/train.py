"""Trains the free voice's Dia on its corpus, on a processor or a card. The loss and the helper heads are the first edition's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ..voice import model
from ..voice.train import COOLING_SHARE, Course, Trainee, optimizers, step_once
from .batches import Batch, batches
from .clock import clock
from .corpus import DELAY

RATE = 3.5e-3
SAVED_EVERY_S, TOLD_EVERY = 60, 10
FRAMES = {"cpu": 1600, "cuda": 24_000}
"""In one batch."""
WORKERS = {"cpu": 0, "cuda": 6}
KEPT = {"cpu": 0.99, "cuda": 0.998}
"""Of the averaged weights at each step."""


def begin(books: Tensor, rate: float, device: str = "cpu") -> Course:
    trainee = Trainee(model.dia(DELAY), books).to(device)
    return Course(trainee, optimizers(trainee, rate), {name: weight.clone() for name, weight in trainee.plain().items()})


def shown(phrases: Path, seed: int, device: str) -> Iterator[Batch]:
    """Batches on the device, made by processes of their own where there is a card to be fed."""
    made = DataLoader(Endless(phrases, seed, FRAMES[device]), batch_size=None, num_workers=WORKERS[device], pin_memory=device == "cuda")
    return (batch.to(device) for batch in made)


class Endless(IterableDataset[Batch]):
    """Batches of a seed; each worker has its own."""

    def __init__(self, phrases: Path, seed: int, frames: int) -> None:
        self._phrases, self._seed, self._frames = phrases, seed, frames

    def __iter__(self) -> Iterator[Batch]:
        torch.set_num_threads(1)
        worker = get_worker_info()
        return batches(self._phrases, self._seed + 1000 * (worker.id if worker else 0), self._frames)


def fit(sounds: Path, phrases: Path, out: Path, seconds: float, rate: float = RATE, seed: int = 1, device: str = "cpu") -> None:
    """Trains for `seconds`. Until `out` is there, <out>.going holds the averaged weights and all that is needed to go on after an interruption."""
    torch.manual_seed(seed)
    now_s = clock(device)
    with np.load(sounds) as held:
        books = torch.from_numpy(held["books"])
    going = out.with_suffix(".going")
    course = begin(books, rate, device)
    if going.exists():
        course.load(going)
    begun, saved = now_s() - course.spent_s, time.monotonic()
    for batch in shown(phrases, seed + course.step, device):
        course.spent_s = now_s() - begun
        left = 1 - course.spent_s / seconds
        if left <= 0:
            break
        course.step += 1
        now = rate * min(1.0, course.step / 50, left / COOLING_SHARE)
        parts = step_once(course.trainee, course.steppers, batch, now)
        keep = min(KEPT[device], course.step / (course.step + 20))
        plain = course.trainee.plain()
        torch._foreach_lerp_(list(course.average.values()), [plain[name] for name in course.average], 1 - keep)
        if course.step % TOLD_EVERY == 1:
            for name, value in parts.items():
                course.told[name] = 0.8 * course.told.get(name, float(value)) + 0.2 * float(value)
            course.trainee.telling = min(0.9, max(0.0, (course.told["guide"] - 0.6) / 1.5))
        if course.step % 100 == 1:
            told = " ".join(f"{name} {value:.3f}" for name, value in course.told.items())
            print(f"step {course.step} {course.spent_s:.0f}s rate {now:.2e} telling {course.trainee.telling:.2f} {told}", flush=True)
        if time.monotonic() - saved > SAVED_EVERY_S:
            course.save(going)
            saved = time.monotonic()
    course.save(going)
    going.rename(out)
