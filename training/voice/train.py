"""Train the starter's Dia: code loss, attention guided to the character being spoken, helper heads that predict the position."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize
from transformers import DiaForConditionalGeneration

from training.muon import Muon

from . import codec, model
from .batches import Batch, batches

CHANNEL_WEIGHTS = (0.8, 1.0, 0.5, 0.25)
"""The second stage, the coarse spectrum, carries the words; what the last ones add is mostly chance."""
GUIDED_LAYERS = (1, 2, 3)
GUIDED_HEADS = 2
TOLD_LAYERS = (2, 3)
GUIDE_WEIGHT, PLACE_WEIGHT = 1.0, 0.3
COOLING_SHARE = 0.5
OUTER_SHARE = 0.7
RATE, CONTINUED_RATE = 3e-3, 1e-3
SAVED_EVERY_S = 120


class SharedRows(nn.Module):
    """Rows of an embedding or output layer that share what their codebook vectors share, so that similar codes are learned together."""

    known: Tensor

    def __init__(self, books: Tensor, width: int, spread: float) -> None:
        super().__init__()
        known = torch.zeros(codec.CHANNELS, model.ROWS, codec.FEATURES)
        known[:, : codec.CODES] = (books - books.mean(1, keepdim=True)) / books.std((1, 2), keepdim=True)
        self.register_buffer("known", known)
        self.shared = nn.Parameter(torch.randn(codec.CHANNELS, codec.FEATURES, width) * spread / math.sqrt(codec.FEATURES))

    def forward(self, own: Tensor) -> Tensor:
        return own + (self.known @ self.shared).reshape(own.shape)


class Trainee(nn.Module):
    """A Dia with helper heads that only training needs."""

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

    def _attend(
        self, cross: Any, layer: int, asked: Tensor, text: Tensor, attention_mask: Tensor | None = None, **_: object
    ) -> tuple[Tensor, None]:
        """Run Dia's cross attention and record the share that guided heads give to the right character; some examples are given it."""
        queries, keys, values = (
            project(given).unflatten(-1, (cross.num_heads, -1)).transpose(1, 2)
            for project, given in ((cross.q_proj, asked), (cross.k_proj, text), (cross.v_proj, text))
        )
        scores = (queries @ keys.transpose(-1, -2)).float()
        if attention_mask is not None:
            scores = scores + attention_mask
        self._asked[layer] = asked
        share = scores.softmax(-1)
        self._found[layer] = (share[:, :GUIDED_HEADS] * self._near.exp()).sum(-1).clamp(min=1e-9).log()
        if layer in TOLD_LAYERS and self._told.any():
            right = self._near.softmax(-1).expand(-1, GUIDED_HEADS, -1, -1)
            mixed = torch.where(self._told[:, None, None, None], right, share[:, :GUIDED_HEADS])
            share = torch.cat([mixed, share[:, GUIDED_HEADS:]], dim=1)
        mixed_values = (share.to(values.dtype) @ values).transpose(1, 2).flatten(2)
        return cross.o_proj(mixed_values), None

    def plain(self) -> dict[str, Tensor]:
        """Return the weights of a Dia without helpers."""
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
            input_ids=batch.inputs, encoder_hidden_states=text, encoder_attention_mask=batch.mask, use_cache=False
        ).last_hidden_state
        logits = self.dia.logits_dense(hidden).view(-1, model.ROWS).float()
        lost = functional.cross_entropy(logits, batch.labels.flatten(), ignore_index=model.IGNORED, reduction="none").view(
            -1, codec.CHANNELS
        )
        means = lost.sum(0) / (batch.labels != model.IGNORED).flatten(0, 1).sum(0)
        codes = (means * torch.tensor(CHANNEL_WEIGHTS)).sum()
        guide, place = self._guide(batch, text)
        total = codes + GUIDE_WEIGHT * guide + PLACE_WEIGHT * place
        parts = {"tone": means[0], "spectrum": means[1], "rest": means[2:].sum(), "guide": guide, "place": place}
        return total, {name: float(part.detach()) for name, part in parts.items()}

    def _guide(self, batch: Batch, text: Tensor) -> tuple[Tensor, Tensor]:
        """Return the losses of the guided heads' attention and of the helper heads' positions."""
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


def optimizers(trainee: Trainee, rate: float) -> list[torch.optim.Optimizer]:
    """Return Muon for the matrices inside the layers, AdamW for all else."""
    inner, outer = list[nn.Parameter](), list[nn.Parameter]()
    for name, weight in trainee.named_parameters():
        (inner if weight.ndim == 2 and ".layers." in name else outer).append(weight)
    return [Muon(inner, lr=rate), torch.optim.AdamW(outer, lr=rate, betas=(0.9, 0.97), weight_decay=0.0)]


def step_once(trainee: Trainee, steppers: list[torch.optim.Optimizer], batch: Batch, rate: float) -> dict[str, float]:
    """Step every optimizer at one rate."""
    for stepper, share in zip(steppers, (1.0, OUTER_SHARE), strict=True):
        stepper.param_groups[0]["lr"] = rate * share
    loss, parts = trainee.loss(batch)
    loss.backward()
    nn.utils.clip_grad_norm_(trainee.parameters(), 1.0)
    for stepper in steppers:
        stepper.step()
        stepper.zero_grad(set_to_none=True)
    return parts


@dataclass(slots=True)
class Course:
    """The state of a training: all that resuming it takes."""

    trainee: Trainee
    steppers: list[torch.optim.Optimizer]
    average: dict[str, Tensor]
    step: int = 0
    spent_s: float = 0.0
    means: dict[str, float] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        part = path.with_suffix(".part")
        torch.save(
            {
                "average": self.average,
                "trainee": self.trainee.state_dict(),
                "steppers": [stepper.state_dict() for stepper in self.steppers],
                "step": self.step,
                "spent_s": self.spent_s,
                "told": self.means,
            },
            part,
        )
        part.rename(path)

    def load(self, path: Path) -> None:
        held = torch.load(path, weights_only=True)
        self.trainee.load_state_dict(held["trainee"])
        for stepper, state in zip(self.steppers, held["steppers"], strict=True):
            stepper.load_state_dict(state)
        self.average, self.step, self.spent_s, self.means = held["average"], held["step"], held["spent_s"], held["told"]


def begin(books: Tensor, rate: float, earlier: Path | None = None) -> Course:
    """Begin anew, or from the weights of a released voice in a folder. What rows share is part of those already."""
    dia = model.dia()
    if earlier:
        dia.load_state_dict({name: weight.float() for name, weight in load_file(earlier / "model.safetensors").items()})
    trainee = Trainee(dia, books)
    if earlier:
        layers: tuple[Any, ...] = (dia.model.decoder.embeddings.embed, dia.logits_dense)
        for layer in layers:
            layer.parametrizations.weight[0].shared.data.zero_()
    return Course(trainee, optimizers(trainee, rate), {name: weight.clone() for name, weight in trainee.plain().items()})


def fit(sounds: Path, phrases: Path, out: Path, seconds: float, earlier: Path | None = None, seed: int = 1) -> None:
    """Train for `seconds` of one processor's time (pauses do not count). Until `out` exists, <out>.going holds the averaged weights and
    all that resuming takes."""
    torch.manual_seed(seed)
    rate = CONTINUED_RATE if earlier else RATE
    books, going = torch.from_numpy(np.load(sounds)["books"]), out.with_suffix(".going")
    course = begin(books, rate, earlier)
    if going.exists():
        course.load(going)
    begun, saved = time.process_time() - course.spent_s, time.monotonic()
    for batch in batches(phrases, books, seed + course.step):
        course.spent_s = time.process_time() - begun
        left = 1 - course.spent_s / seconds
        if left <= 0:
            break
        course.step += 1
        now = rate * min(1.0, course.step / 50, left / COOLING_SHARE)
        parts = step_once(course.trainee, course.steppers, batch, now)
        keep = min(0.99, course.step / (course.step + 20))
        for name, weight in course.trainee.plain().items():
            course.average[name].lerp_(weight, 1 - keep)
        for name, value in parts.items():
            course.means[name] = 0.98 * course.means.get(name, value) + 0.02 * value
        course.trainee.telling = min(0.9, max(0.0, (course.means["guide"] - 0.6) / 1.5))
        if course.step % 50 == 0:
            shown = " ".join(f"{name} {value:.3f}" for name, value in course.means.items())
            print(f"step {course.step} {course.spent_s:.0f}s rate {now:.2e} {shown}", flush=True)
        if time.monotonic() - saved > SAVED_EVERY_S:
            course.save(going)
            saved = time.monotonic()
    course.save(going)
    going.rename(out)
