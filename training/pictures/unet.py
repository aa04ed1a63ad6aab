"""Train the UNet on sketches by formula: v-prediction, a tenth of the captions dropped, fine detail weighed, averaged weights."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from diffusers import UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor
from torch import Tensor, nn
from transformers import CLIPTextModel, CLIPTokenizer

from app.compat.machine.processor import multiplies_bfloat16
from training.muon import Muon
from training.pictures.captions import say
from training.pictures.data import FIRST_SEED
from training.pictures.model import SCALING, make_scheduler
from training.pictures.scenes import Scene, scene
from training.pictures.sketch import CELLS, THING_AT, sketch
from training.pictures.text import full_sketch, tokens_of

DROPPED = 0.1
DETAIL = 5.0
THINGS = 5.0
TOWARDS_NOISE = 0.75
QUARTERS = 4
Source = Callable[[np.random.Generator, int], tuple[Tensor, Tensor, Tensor]]
"""It gives latents, hidden states and sketches of so many random pictures."""


@dataclass(frozen=True, slots=True)
class Course:
    """`decay` is the share of the steps in which the rate falls to nothing."""

    name: str
    steps: int
    batch: int = 8
    rate: float = 3e-3
    decay: float = 0.6
    warm_up: int = 100

    def rate_at(self, step: int) -> float:
        return self.rate * min(1.0, (step + 1) / self.warm_up) * min(1.0, (self.steps - step) / (self.decay * self.steps))


def weights_of(clean: Tensor, rows: Tensor) -> Tensor:
    """Weigh each latent by how much its pixels differ, and by whether a thing is there; 1 in the mean."""
    detail = clean[:, 3:].abs()
    things = (rows[..., THING_AT] > 1).float().view(-1, 1, CELLS, CELLS).repeat_interleave(4, 2).repeat_interleave(4, 3)
    found = 1 + DETAIL * detail + THINGS * things
    return found / found.mean()


class Sketched:
    """Pictures with their sketches by formula."""

    def __init__(self, work: Path) -> None:
        self.latents = np.load(work / "latents.npy", mmap_mode="r")
        self.sketches = np.load(work / "sketches.npy", mmap_mode="r")
        self.empty = sketch(None)

    def __call__(self, rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor, Tensor]:
        chosen = np.sort(rng.integers(min(len(self.latents), len(self.sketches)), size=count))
        rows = self.sketches[chosen].astype(np.float32)
        rows[rng.random(count) < DROPPED] = self.empty
        said = torch.from_numpy(rows)
        clean = torch.from_numpy(self.latents[chosen].astype(np.float32)) * SCALING
        return clean, full_sketch(said), said


class Written(Sketched):
    """Pictures with what the trained text encoder writes of a caption of theirs, faults included."""

    def __init__(self, work: Path, encoder: CLIPTextModel, tokenizer: CLIPTokenizer) -> None:
        super().__init__(work)
        self.encoder, self.tokenizer = encoder.eval().requires_grad_(False), tokenizer
        self.scenes: dict[int, Scene] = {}

    def __call__(self, rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor, Tensor]:
        chosen = np.sort(rng.integers(min(len(self.latents), len(self.sketches)), size=count))
        captions = []
        for i in (int(i) for i in chosen):
            if i not in self.scenes:
                self.scenes[i] = scene(FIRST_SEED + i)
            captions.append("" if rng.random() < DROPPED else say(self.scenes[i], int(rng.integers(1 << 40))))
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            hidden = self.encoder(tokens_of(self.tokenizer, captions)).last_hidden_state.float()
        clean = torch.from_numpy(self.latents[chosen].astype(np.float32)) * SCALING
        return clean, hidden, torch.from_numpy(self.sketches[chosen].astype(np.float32))


def _steppers(unet: UNet2DConditionModel, rate: float) -> list[torch.optim.Optimizer]:
    inner, outer = list[nn.Parameter](), list[nn.Parameter]()
    for name, weight in unet.named_parameters():
        (inner if weight.ndim >= 2 and not name.startswith(("conv_in", "conv_out", "time_embedding")) else outer).append(weight)
    return [Muon(inner, rate), torch.optim.AdamW(outer, 0.4 * rate, betas=(0.9, 0.98), weight_decay=0.0)]


def _loss(unet: UNet2DConditionModel, clean: Tensor, hidden: Tensor, weights: Tensor, alphas: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss at random times drawn towards noise, each picture's own, and the times as shares."""
    share = ((torch.arange(len(clean)) + torch.rand(())) / len(clean)) ** TOWARDS_NOISE
    when = (share * len(alphas)).long().clamp(max=len(alphas) - 1)
    signal, spread = alphas[when].sqrt().view(-1, 1, 1, 1), (1 - alphas[when]).sqrt().view(-1, 1, 1, 1)
    noise = torch.randn_like(clean)
    with torch.autocast("cpu", torch.bfloat16, enabled=multiplies_bfloat16()):
        found = unet(signal * clean + spread * noise, when, hidden, return_dict=False)[0]
    off = (found.float() - (signal * noise - spread * clean)) ** 2
    return (off * weights).mean(), off.detach().mean((1, 2, 3)), share


def train_unet(unet: UNet2DConditionModel, source: Source, course: Course, work: Path) -> Iterator[str]:
    """Train in place, resuming from work/<name>.pt; keep the averaged weights in work/<name>."""
    steppers, mean, first = _steppers(unet, course.rate), copy.deepcopy(unet), 0
    kept = work / f"{course.name}.pt"
    if kept.exists():
        state = torch.load(kept, weights_only=True)
        first = int(state["step"])
        unet.load_state_dict(state["unet"])
        mean.load_state_dict(state["mean"])
        for stepper, held in zip(steppers, state["steppers"], strict=True):
            stepper.load_state_dict(held)
    unet.set_attn_processor(AttnProcessor())  # torch's fused attention has the slower backward pass on a CPU
    unet.to(memory_format=torch.channels_last)
    alphas, rng = make_scheduler().alphas_cumprod, np.random.default_rng([11, first])
    torch.manual_seed(11 + first)
    parameters, averages = list(unet.parameters()), list(mean.parameters())
    began_s = time.monotonic()
    seen: list[tuple[float, float]] = []
    for step in range(first, course.steps):
        rate = course.rate_at(step)
        for stepper, own in zip(steppers, (1.0, 0.4), strict=True):
            stepper.param_groups[0]["lr"] = rate * own
        clean, hidden, rows = source(rng, course.batch)
        loss, each, share = _loss(unet, clean, hidden, weights_of(clean, rows), alphas)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1 - min(0.998, (step + 1) / (step + 11)))
        seen += zip(share.tolist(), each.tolist(), strict=True)
        if not math.isfinite(loss.item()):
            raise ArithmeticError(f"the loss at step {step} is {loss.item()}")
        if step % 100 == 99 or step == course.steps - 1:
            mean.save_pretrained(work / course.name)
            held = [stepper.state_dict() for stepper in steppers]
            torch.save({"step": step + 1, "unet": unet.state_dict(), "mean": mean.state_dict(), "steppers": held}, kept.with_suffix(".new"))
            kept.with_suffix(".new").replace(kept)
            off = [np.mean([loss for share, loss in seen if int(share * QUARTERS) == i] or [0]) for i in range(QUARTERS)]
            seen.clear()
            yield f"{course.name} {step + 1}/{course.steps} v {' '.join(f'{x:.3f}' for x in off)} {time.monotonic() - began_s:.0f} s"
    unet.load_state_dict(mean.state_dict())
