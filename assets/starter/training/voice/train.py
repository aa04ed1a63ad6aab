"""Trains the starter's Dia on the corpus: code loss, attention guided to the character being said, helper heads that must know the place."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize
from transformers import DiaForConditionalGeneration

from . import codec, corpus, model

CHANNEL_WEIGHTS = (1.0, 0.5, 0.35, 0.25)
GUIDED_LAYERS = (1, 2, 3)
GUIDED_HEADS = 2
TOLD_LAYERS = (2, 3)
GUIDE_WEIGHT, PLACE_WEIGHT = 1.0, 0.3
TEXT_DROPOUT = 0.06
COOLING_SHARE = 0.5
OUTER_SHARE = 0.7
FRAMES_A_BATCH = 1600
POOL = 256
LONGEST_FRAMES = 320


@dataclass(frozen=True, slots=True)
class Batch:
    ids: Tensor
    mask: Tensor
    inputs: Tensor
    labels: Tensor
    place: Tensor
    spoken: Tensor


def warped(example: corpus.Example, rng: np.random.Generator) -> corpus.Example:
    """Drops and repeats up to 5% of the frames, so that the place is told by what was said and not only by the clock."""
    if rng.random() < 0.6:
        return example
    rate = rng.uniform(0, 0.05)
    times = 1 + (rng.random(len(example.codes)) < rate).astype(int) - (rng.random(len(example.codes)) < rate).astype(int)
    keep = np.repeat(np.arange(len(times)), np.maximum(times, 0))
    return corpus.Example(example.ids, example.codes[keep], example.place[keep])


def corrupted(codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """What the model is shown of its own past: spoiled by up to half, frame by frame or in spans, so that it learns to trust the text."""
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


def collate(examples: list[corpus.Example], rng: np.random.Generator) -> Batch:
    """Pads to one shape; rows are positions of the decoder, row r predicts what is laid at r + 1."""
    longest_text = math.ceil(max(len(example.ids) for example in examples) / 8) * 8
    rows = math.ceil((max(len(example.codes) for example in examples) + 5) / 8) * 8
    count = len(examples)
    ids, mask = torch.zeros(count, longest_text, dtype=torch.long), torch.zeros(count, longest_text, dtype=torch.long)
    inputs, labels = torch.empty(count, rows, codec.CHANNELS, dtype=torch.long), torch.empty(count, rows, codec.CHANNELS, dtype=torch.long)
    place, spoken = torch.zeros(count, rows), torch.zeros(count, rows, dtype=torch.bool)
    for row, example in enumerate(examples):
        mask[row, : len(example.ids)] = 1
        silent = rng.random() < TEXT_DROPOUT
        if not silent:
            ids[row, : len(example.ids)] = torch.tensor(example.ids)
        inputs[row] = torch.from_numpy(model.delayed(corrupted(example.codes, rng), rows + 1)[:-1])
        labels[row] = torch.from_numpy(model.delayed(example.codes, rows + 1)[1:])
        frames = len(example.place)
        place[row, :frames] = torch.from_numpy(example.place)
        place[row, frames:] = len(example.ids) - 1
        spoken[row, : frames + 1] = not silent
    labels[(labels == model.PAD) | (labels == model.BOS)] = model.IGNORED
    return Batch(ids, mask, inputs, labels, place, spoken)


class SharedRows(nn.Module):
    """Rows of an embedding or of the output that share what their codebook vectors share, so that like codes are learned together."""

    def __init__(self, books: Tensor, width: int, spread: float) -> None:
        super().__init__()
        known = torch.zeros(codec.CHANNELS, model.ROWS, codec.FEATURES)
        known[:, : codec.CODES] = (books - books.mean(1, keepdim=True)) / books.std((1, 2), keepdim=True)
        self.register_buffer("known", known)
        self.shared = nn.Parameter(torch.randn(codec.CHANNELS, codec.FEATURES, width) * spread / math.sqrt(codec.FEATURES))

    def forward(self, own: Tensor) -> Tensor:
        return own + (self.known @ self.shared).reshape(own.shape)


class Trainee(nn.Module):
    """A Dia with the helper heads that only the training needs."""

    def __init__(self, dia: DiaForConditionalGeneration, books: Tensor) -> None:
        super().__init__()
        self.dia = dia
        parametrize.register_parametrization(dia.model.decoder.embeddings.embed, "weight", SharedRows(books, model.WIDTH, 0.4))
        parametrize.register_parametrization(dia.logits_dense, "weight", SharedRows(books, model.WIDTH, 0.02))
        size = model.waves(torch.zeros(1)).shape[-1]
        self.text_place = nn.Linear(model.TEXT_WIDTH, size)
        self.sound_places = nn.ModuleList(nn.Linear(model.WIDTH, size) for _ in GUIDED_LAYERS)
        self.telling = 0.9
        self._asked: dict[int, Tensor] = {}
        self._found: dict[int, Tensor] = {}
        self._near = self._told = torch.zeros(())
        for layer in GUIDED_LAYERS:
            cross = dia.model.decoder.layers[layer].cross_attention
            cross.forward = partial(self._attend, cross, layer)

    def _attend(self, cross: nn.Module, layer: int, asked: Tensor, text: Tensor, attention_mask: Tensor | None = None, **_: object) -> tuple[Tensor, None]:
        """Dia's cross attention, with the share that the guided heads give to the right character noted; some examples are told that character."""
        queries, keys, values = (
            project(given).unflatten(-1, (cross.num_heads, -1)).transpose(1, 2)
            for project, given in ((cross.q_proj, asked), (cross.k_proj, text), (cross.v_proj, text))
        )
        scores = (queries @ keys.transpose(-1, -2)).float()
        if attention_mask is not None:
            scores = scores + attention_mask
        guided = scores[:, :GUIDED_HEADS]
        self._asked[layer] = asked
        self._found[layer] = torch.logsumexp(guided + self._near, dim=-1) - torch.logsumexp(guided, dim=-1)
        share = scores.softmax(-1)
        if layer in TOLD_LAYERS and self._told.any():
            right = self._near.softmax(-1).expand(-1, GUIDED_HEADS, -1, -1)
            mixed = torch.where(self._told[:, None, None, None], right, share[:, :GUIDED_HEADS])
            share = torch.cat([mixed, share[:, GUIDED_HEADS:]], dim=1)
        mixed_values = (share.to(values.dtype) @ values).transpose(1, 2).flatten(2)
        return cross.o_proj(mixed_values), None

    def plain(self) -> dict[str, Tensor]:
        """The weights as a Dia without helpers has them."""
        held = {name: weight for name, weight in self.dia.state_dict().items() if ".parametrizations." not in f".{name}"}
        held["model.decoder.embeddings.embed.weight"] = self.dia.model.decoder.embeddings.embed.weight.detach()
        held["logits_dense.weight"] = self.dia.logits_dense.weight.detach()
        return held

    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        far = (torch.arange(batch.ids.shape[1])[None, None] - batch.place[:, :, None].floor()).abs()
        self._near = torch.where(far < 0.5, 0.0, torch.where(far < 1.5, -1.5, -1e4))[:, None]
        self._told = (torch.rand(len(batch.ids)) < self.telling) & batch.spoken[:, 0]
        text = self.dia.model.encoder(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
        hidden = self.dia.model.decoder(
            input_ids=batch.inputs, encoder_hidden_states=text, encoder_attention_mask=batch.mask, use_cache=False,
        ).last_hidden_state
        logits = self.dia.logits_dense(hidden).view(-1, model.ROWS).float()
        lost = functional.cross_entropy(logits, batch.labels.flatten(), ignore_index=model.IGNORED, reduction="none").view(-1, codec.CHANNELS)
        told = lost.sum(0) / (batch.labels != model.IGNORED).flatten(0, 1).sum(0)
        codes = (told * torch.tensor(CHANNEL_WEIGHTS)).sum()
        guide, place = self._guide(batch, text)
        total = codes + GUIDE_WEIGHT * guide + PLACE_WEIGHT * place
        parts = {"codes": told[0], "rest": told[1:].sum(), "guide": guide, "place": place}
        return total, {name: float(part.detach()) for name, part in parts.items()}

    def _guide(self, batch: Batch, text: Tensor) -> tuple[Tensor, Tensor]:
        """How far the guided heads look from the character being said, and how wrongly the helper heads tell the place."""
        guide = place = torch.zeros(())
        target = model.waves(batch.place + 0.5)
        count = batch.spoken.sum().clamp(min=1)  # a batch whose every text was dropped has none
        for number, layer in enumerate(GUIDED_LAYERS):
            guide = guide - self._found[layer].mean(1)[batch.spoken].sum() / count / len(GUIDED_LAYERS)
            wrong = (self.sound_places[number](self._asked[layer]).float() - target).pow(2).mean(-1)
            place = place + wrong[batch.spoken].sum() / count / len(GUIDED_LAYERS)
        index = torch.arange(batch.ids.shape[1])
        own = (self.text_place(text).float() - model.waves(index + 0.5)[None]).pow(2).mean(-1)
        read = (batch.mask == 1) & batch.spoken[:, :1]
        return guide, place + own[read].sum() / read.sum().clamp(min=1)


def batches(folder: Path, seed: int) -> Iterator[Batch]:
    """Batches without end, of new scripts of like lengths."""
    rng, draws = random.Random(seed), np.random.default_rng(seed)
    recordings, left_out = corpus.read(folder / "words.npz"), corpus.banned()
    while True:
        drawn = (warped(corpus.draw(rng, recordings, left_out, LONGEST_FRAMES), draws) for _ in range(POOL))
        pool = sorted(drawn, key=lambda example: len(example.codes))
        groups: list[list[corpus.Example]] = [[]]
        for example in pool:
            if (len(groups[-1]) + 1) * len(example.codes) > FRAMES_A_BATCH and groups[-1]:
                groups.append([])
            groups[-1].append(example)
        rng.shuffle(groups)
        for group in groups:
            yield collate(group, draws)


def optimizers(trainee: Trainee, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for all else."""
    inner, outer = [], []
    for name, weight in trainee.named_parameters():
        (inner if weight.ndim == 2 and ".layers." in name else outer).append(weight)
    return [
        torch.optim.Muon(inner, lr=rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw", ns_steps=4),
        torch.optim.AdamW(outer, lr=rate, betas=(0.9, 0.97), weight_decay=0.0),
    ]


def step_once(trainee: Trainee, steppers: list[torch.optim.Optimizer], batch: Batch, rate: float) -> dict[str, float]:
    """One step of every optimizer at one rate."""
    for stepper, share in zip(steppers, (1.0, OUTER_SHARE), strict=True):
        stepper.param_groups[0]["lr"] = rate * share
    with torch.autocast("cpu", torch.bfloat16):
        loss, parts = trainee.loss(batch)
    loss.backward()
    nn.utils.clip_grad_norm_(trainee.parameters(), 1.0)
    for stepper in steppers:
        stepper.step()
        stepper.zero_grad(set_to_none=True)
    return parts


def fit(folder: Path, out: Path, seconds: float, rate: float, seed: int = 1, resume: Path | None = None, cooling_share: float = COOLING_SHARE) -> None:
    """Trains for `seconds` of one processor's time (pauses do not count); `out` holds the averaged weights every few minutes and everything needed to go on."""
    torch.manual_seed(seed)
    books = torch.from_numpy(np.load(folder / "codec.npz")["books"])
    trainee = Trainee(model.dia(), books)
    steppers = optimizers(trainee, rate)
    if resume is not None:
        held = torch.load(resume, weights_only=True)
        trainee.load_state_dict(held["trainee"])
        for stepper, state in zip(steppers, held["steppers"], strict=True):
            stepper.load_state_dict(state)
    average = {name: weight.clone() for name, weight in trainee.plain().items()}
    begun, saved = time.process_time(), time.monotonic()
    told: dict[str, float] = {}
    for step, batch in enumerate(batches(folder, seed), start=1):
        share = (time.process_time() - begun) / seconds
        if share >= 1:
            break
        now = rate * min(1.0, step / 50, (1 - share) / cooling_share)
        parts = step_once(trainee, steppers, batch, now)
        keep = min(0.99, step / (step + 20))
        for name, weight in trainee.plain().items():
            average[name].lerp_(weight, 1 - keep)
        for name, value in parts.items():
            told[name] = 0.98 * told.get(name, value) + 0.02 * value
        trainee.telling = min(0.9, max(0.0, (told["guide"] - 0.6) / 1.5))
        if step % 50 == 0:
            shown = " ".join(f"{name} {value:.3f}" for name, value in told.items())
            print(f"step {step} {time.process_time() - begun:.0f}s rate {now:.2e} {shown}", flush=True)
        if time.monotonic() - saved > 120:
            save(trainee, steppers, average, out)
            saved = time.monotonic()
    save(trainee, steppers, average, out)


def save(trainee: Trainee, steppers: list[torch.optim.Optimizer], average: dict[str, Tensor], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_suffix(".part")
    torch.save({"average": average, "trainee": trainee.state_dict(), "steppers": [stepper.state_dict() for stepper in steppers]}, part)
    part.rename(out)
