"""Train the UNet on latents: v-prediction, new captions each time, a tenth of them dropped, averaged weights."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from diffusers import UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from transformers import CLIPTextModel, CLIPTokenizer

from assets.starter.training.painter.captions import say
from assets.starter.training.painter.scenes import scene
from assets.starter.training.painter.text import tokens_of
from assets.starter.training.painter.together import average_gradients, rank_here
from assets.starter.training.pictures.autoencoder import as_input, latents_of
from assets.starter.training.pictures.model import SCALING, make_scheduler
from assets.starter.training.pictures.state import load_state, save_state

DROPPED_CAPTIONS = 0.1
WARM_UP_STEPS = 200
TOWARDS_NOISE = 0.4, 1.0  # at the beginning and at the end


@dataclass(frozen=True, slots=True)
class Source:
    """Pictures of the scenes first_seed, first_seed + 1 ..., `batch` of them per step."""

    pictures: NDArray[np.uint8]
    first_seed: int
    batch: int


@dataclass(frozen=True, slots=True)
class Course:
    """How the UNet is trained. Large pictures are used only in the last `decay` steps, while the rate goes down: they cost four times as
    much and teach words no better."""

    small: Source
    big: Source
    share_of_big: float
    steps: int
    decay: int
    peak: float
    """The highest learning rate."""
    seed: int = 3

    def rate(self, step: int) -> float:
        """Return the learning rate: warm-up, constant, and linear decay to 0 over the last `decay` steps."""
        down = min(1.0, (self.steps - step) / self.decay) if self.decay else 1.0
        return self.peak * min(1.0, (step + 1) / WARM_UP_STEPS) * down

    def towards_noise(self, step: int) -> float:
        first, last = TOWARDS_NOISE
        return first + (last - first) * step / self.steps

    def choose_source(self, step: int, rng: np.random.Generator) -> Source:
        return self.big if step >= self.steps - self.decay and rng.random() < self.share_of_big else self.small


def _loss(unet: UNet2DConditionModel, clean: Tensor, hidden: Tensor, alphas: Tensor, towards_noise: float) -> Tensor:
    """Return the loss at random times, drawn nearer to pure noise where only the caption says what to paint: a uniform draw to a power
    below one, nearer the smaller the power."""
    when = (torch.arange(len(clean)) + torch.rand(())) / len(clean)  # evenly spread over a batch
    when = (when**towards_noise * len(alphas)).long().clamp(max=len(alphas) - 1)
    signal, spread = alphas[when].sqrt().view(-1, 1, 1, 1), (1 - alphas[when]).sqrt().view(-1, 1, 1, 1)
    noise = torch.randn_like(clean)
    with torch.autocast("cpu", torch.bfloat16):
        found = unet(signal * clean + spread * noise, when, hidden, return_dict=False)[0]
    return functional.mse_loss(found.float(), signal * noise - spread * clean)


def _draw_batch(source: Source, encoder: CLIPTextModel, tokenizer: CLIPTokenizer, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return the latents of random pictures, and the encoder's hidden states of their captions."""
    chosen = np.sort(rng.integers(len(source.pictures), size=source.batch))
    captions = [say(scene(source.first_seed + int(i)), int(rng.integers(1 << 40))) for i in chosen]
    captions = [c if rng.random() > DROPPED_CAPTIONS else "" for c in captions]
    with torch.no_grad():
        hidden = encoder(tokens_of(tokenizer, captions)).last_hidden_state
    return latents_of(as_input(source.pictures[chosen])) * SCALING, hidden


def train_unet(unet: UNet2DConditionModel, encoder: CLIPTextModel, tokenizer: CLIPTokenizer, course: Course, keep: Path) -> Iterator[str]:
    """Train in place, resuming from `keep`; save the averaged weights in keep/unet and yield lines of progress."""
    steps, first = course.steps, 0
    mean = copy.deepcopy(unet)
    optimizer = torch.optim.AdamW(unet.parameters(), course.peak, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    trained = {"unet": unet, "mean": mean, "optimizer": optimizer}
    if (keep / "state.pt").exists():
        first = load_state(keep, trained)
    unet.set_attn_processor(AttnProcessor())  # torch's fused attention has the slower backward pass on a CPU
    alphas = make_scheduler().alphas_cumprod
    rank = rank_here()
    rng = np.random.default_rng([course.seed, first, rank])
    torch.manual_seed(course.seed + first + 1_000_003 * rank)
    parameters: list[Tensor] = list(unet.parameters())
    averages: list[Tensor] = list(mean.parameters())
    began_s, losses = time.monotonic(), []
    for step in range(first, steps):
        clean, hidden = _draw_batch(course.choose_source(step, rng), encoder, tokenizer, rng)
        for group in optimizer.param_groups:
            group["lr"] = course.rate(step)
        loss = _loss(unet, clean, hidden, alphas, course.towards_noise(step))
        loss.backward()
        average_gradients(parameters)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1 - min(0.999, (step + 1) / (step + 11)))
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise ArithmeticError(f"the loss at step {step} is {losses[-1]}")
        if rank == 0 and (step % 100 == 99 or step == steps - 1):
            mean.save_pretrained(keep / "unet")
            save_state(keep, trained, step + 1)
            yield f"unet {step + 1}/{steps} loss {sum(losses[-100:]) / len(losses[-100:]):.4f} {time.monotonic() - began_s:.0f} s"
    unet.load_state_dict(mean.state_dict())
