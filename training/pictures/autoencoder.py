"""Train the autoencoder: 256 px from fixed latents of 32 x 32, the mean colour of 8 x 8 pixels and their spread. It needs no UNet at first."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from training.muon import Muon
from training.pictures.critic import Critic, dislike, train_critic
from training.pictures.model import LATENT_FACTOR
from training.pictures.passing import pass_colours
from training.pictures.state import load_state, save_state

LOG_VARIANCE = -6.0  # the encoder's stated spread, a standard deviation of 0.05
CRITIC_FROM = 0.5  # of the steps
NOISE = 0.12
TRUE_EVERY = 3  # one step in so many learns from true latents, also where painted ones are at hand
CROP, CROPS = 16, 4  # until WHOLE_FROM it learns from cut-outs of so many latents a side, so many for each whole picture
WHOLE_FROM = 0.75
DETAIL = 4.0  # how much more a picture's busiest places count than its flat ones


def as_input(pictures: NDArray[np.uint8]) -> Tensor:
    """Convert bytes (pictures, height, width, 3) to floats from -1 to 1, channels first."""
    return torch.from_numpy(np.array(pictures, order="C")).permute(0, 3, 1, 2).float() / 127.5 - 1


def halved(pictures: Tensor) -> Tensor:
    return functional.avg_pool2d(pictures, 2)


def latents_of(pictures: Tensor) -> Tensor:
    """Return the encoder's targets for pictures of 128 px: for each 4 x 4 pixels their mean colour, and how much they differ from it."""
    mean = functional.avg_pool2d(pictures, LATENT_FACTOR)
    variance = functional.avg_pool2d(pictures.pow(2), LATENT_FACTOR) - mean.pow(2)
    return torch.cat([mean, 3 * variance.clamp(min=0).mean(1, keepdim=True).sqrt()], 1)


def encoder_loss(model: AutoencoderKL, pictures: Tensor) -> Tensor:
    """Use the squared error for the last channel: it is nearly always zero, and the absolute error would keep it there."""
    spread = model.encode(pictures).latent_dist
    off = spread.mean - latents_of(halved(pictures))
    return off[:, :3].abs().mean() + 10 * off[:, 3].pow(2).mean() + 0.003 * (spread.logvar - LOG_VARIANCE).pow(2).mean()


def _size(off: Tensor) -> Tensor:
    """Return how far off a value is; small errors count little, for nobody sees them in flat colour."""
    return (off.pow(2) + 0.0004).sqrt() - 0.02


def drawing_loss(again: Tensor, pictures: Tensor) -> Tensor:
    """Return the error of colours, and of edges at two scales; busy places count more."""
    busy = functional.interpolate(latents_of(halved(pictures))[:, 3:], scale_factor=2.0 * LATENT_FACTOR)
    weights = 1 + DETAIL * busy.clamp(max=1)
    loss = (_size(again - pictures) * weights).mean()
    for one, other, weight in ((again, pictures, weights), (halved(again), halved(pictures), halved(weights))):
        for way in (2, 3):
            loss = loss + (_size(one.diff(dim=way) - other.diff(dim=way)) * weight.narrow(way, 1, weight.shape[way] - 1)).mean()
    return loss


def cut_outs(pictures: Tensor, latents: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Cut a square out of each picture with its latents, mostly where there is detail: flat sky teaches little."""
    step, most = pictures.shape[-1] // latents.shape[-1], latents.shape[-1] - CROP
    found = []
    for picture, own in zip(pictures, latents, strict=True):
        weights = own[3].clamp(min=0).numpy().ravel() + 0.004
        row, column = divmod(int(rng.choice(weights.size, p=weights / weights.sum())), latents.shape[-1])
        y, x = (int(np.clip(at - CROP // 2 + rng.integers(-5, 6), 0, most)) for at in (row, column))
        found.append((picture[:, step * y : step * (y + CROP), step * x : step * (x + CROP)], own[:, y : y + CROP, x : x + CROP]))
    cut, kept = (torch.stack(part) for part in zip(*found, strict=True))
    return cut.contiguous(memory_format=torch.channels_last), kept


def begin_autoencoder(model: AutoencoderKL, pictures: NDArray[np.uint8]) -> None:
    first = as_input(pictures[:8])
    pass_colours(model, first, latents_of(halved(first)))


def train_autoencoder(
    model: AutoencoderKL, pictures: NDArray[np.uint8], left: NDArray[np.float32] | None, *, steps: int, batch: int, rate: float, keep: Path
) -> Iterator[str]:
    """Train in place, resuming from `keep`; save the averaged weights in keep/vae and yield lines of progress. `left` are latents of the
    same pictures as the UNet leaves them; without them true latents are made somewhat wrong."""
    keep.mkdir(parents=True, exist_ok=True)
    critic, mean = Critic(), copy.deepcopy(model)
    parameters, averages = list(model.parameters()), list(mean.parameters())
    inner = [w for name, w in model.named_parameters() if w.ndim == 4 and not name.split(".")[1].startswith("conv_")]
    outer = [w for name, w in model.named_parameters() if not (w.ndim == 4 and not name.split(".")[1].startswith("conv_"))]
    steppers = [Muon(inner, rate), torch.optim.AdamW(outer, rate, betas=(0.9, 0.98), weight_decay=0.0)]
    learner = torch.optim.AdamW(critic.parameters(), 3e-4, betas=(0.5, 0.9))
    trained = {"model": model, "mean": mean, "critic": critic, "inner": steppers[0], "outer": steppers[1], "learner": learner}
    first = load_state(keep, trained) if (keep / "state.pt").exists() else 0
    model.to(memory_format=torch.channels_last)
    rng, began_s, losses = np.random.default_rng([5, first]), time.monotonic(), []
    torch.manual_seed(5 + first)
    for step in range(first, steps):
        for stepper, own in zip(steppers, (1.0, 0.3), strict=True):
            stepper.param_groups[0]["lr"] = own * rate * min(1.0, (step + 1) / 50) * min(1.0, (steps - step) / (0.6 * steps))
        whole = step >= WHOLE_FROM * steps
        chosen = np.sort(rng.choice(len(pictures), batch if whole else CROPS * batch, replace=False))
        real = as_input(pictures[chosen]).contiguous(memory_format=torch.channels_last)
        true = latents_of(halved(real))
        if left is not None and step % TRUE_EVERY:
            latents = torch.from_numpy(left[chosen])
        else:
            latents = true + torch.randn_like(true) * torch.rand(len(true), 1, 1, 1) * NOISE
        if not whole:
            real, latents = cut_outs(real, latents, rng)
        with torch.autocast("cpu", torch.bfloat16):
            decoded = model.decode(latents).sample.float()
            loss = drawing_loss(decoded, real)
            total = loss + encoder_loss(model, real) if step % 4 == 0 else loss
            if step > CRITIC_FROM * steps:
                total = total + dislike(model, critic, decoded, loss)
        total.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        if step > CRITIC_FROM * steps - 50:
            train_critic(critic, learner, real, decoded.detach())
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1 - min(0.99, (step + 1) / (step + 11)))
        losses.append(loss.item())
        if step % 100 == 99 or step == steps - 1:
            mean.save_pretrained(keep / "vae")
            save_state(keep, trained, step + 1)
            yield f"{keep.name} {step + 1}/{steps} loss {sum(losses[-100:]) / len(losses[-100:]):.4f} {time.monotonic() - began_s:.0f} s"
    model.load_state_dict(mean.state_dict())
