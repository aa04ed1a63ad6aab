"""Draw a frame from what the language model says of it: the diffusion head and its solver, with all that no step changes computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from app.engine.speech.families.vibevoice.backbone import norm
from app.engine.speech.families.vibevoice.facts import Manner

_BETA_MOST: Final = 0.999


@dataclass(frozen=True, slots=True)
class Step:
    """One step of DPM-Solver++ (2M): what is clean is guessed, and the next sample is a sum of three."""

    time: int
    sample: float
    """It weighs the sample in what is clean."""
    flow: float
    """It weighs what the head says in what is clean."""
    kept: float
    """It weighs the sample in the next one."""
    clean: float
    """It weighs what is clean in the next sample."""
    before: float
    """It weighs what was clean a step before in the next sample."""


def plan_steps(steps: int, noises: int) -> tuple[Step, ...]:
    """Return the steps from noise to a frame, for a head that was taught so many levels of noise by a cosine and says the velocity."""
    bars = [math.cos((each / noises + 0.008) / 1.008 * math.pi / 2) ** 2 for each in range(noises + 1)]
    kept = np.cumprod([1 - min(1 - after / bar, _BETA_MOST) for bar, after in pairwise(bars)])
    times = np.linspace(0, noises - 1, steps + 1).round()[::-1][:-1].astype(int)
    alphas, sigmas = np.sqrt(kept[times]), np.sqrt(1 - kept[times])
    depths = np.log(alphas) - np.log(sigmas)
    found = []
    for place, time in enumerate(times):
        last = place == steps - 1
        alpha, sigma = (1.0, 0.0) if last else (alphas[place + 1], sigmas[place + 1])
        step = math.inf if last else depths[place + 1] - depths[place]
        pull = -alpha * math.expm1(-step)
        bend = 0.5 * pull * step / (depths[place] - depths[place - 1]) if place and not last else 0.0
        found.append(Step(int(time), alphas[place], -sigmas[place], sigma / sigmas[place], pull + bend, -bend))
    return tuple(found)


class DiffusionHead:
    """The head, with its modulations fused into one layer."""

    def __init__(self, head: Any, manner: Manner) -> None:
        self._head, self._steps = head, plan_steps(manner.steps, manner.noises)
        like = head.noisy_images_proj.weight
        times = torch.tensor([each.time for each in self._steps], dtype=torch.float32, device=like.device)
        self._times = head.timestep_proj(head.timestep_embedding(times.to(like.dtype)).to(like.dtype))

    def __call__(self, conditions: Tensor, noise: Tensor, guidance: float) -> Tensor:
        """Return a frame (1, width), in float32 on the processor. `conditions`: of the text, and of none (2, width). `noise`: as the frame."""
        head, like = self._head, self._times
        told = head.final_layer.act_fn(head.cond_proj(conditions) + self._times[:, None])
        adapted = head.adaptation(told.flatten(0, 1)).unflatten(0, told.shape[:2])
        sample, before = noise, torch.zeros_like(noise)
        for step, modulated in zip(self._steps, adapted, strict=True):
            said, unsaid = self._run(sample.to(like.device, like.dtype), modulated).float().cpu()
            clean = step.sample * sample + step.flow * (unsaid + guidance * (said - unsaid))
            sample, before = step.kept * sample + step.clean * clean + step.before * before, clean
        return sample

    def _run(self, sample: Tensor, modulated: Tensor) -> Tensor:
        """Return the velocity with the text and without (2, width)."""
        head, final = self._head, self._head.final_layer
        hidden, place = head.noisy_images_proj(sample).expand(2, -1), 0
        width = hidden.shape[-1]
        for layer in head.layers:
            shift, scale, gate = modulated[:, place : place + 3 * width].chunk(3, -1)
            opened, up = layer.ffn.gate_up_proj(torch.addcmul(shift, norm(layer.norm, hidden), 1 + scale)).chunk(2, -1)
            hidden = torch.addcmul(hidden, gate, layer.ffn.down_proj(layer.ffn.act_fn(opened) * up))
            place += 3 * width
        shift, scale = modulated[:, place:].chunk(2, -1)
        made: Tensor = final.linear_2(torch.addcmul(shift, F.rms_norm(hidden, (width,), eps=final.rms_norm_eps), 1 + scale))
        return made
