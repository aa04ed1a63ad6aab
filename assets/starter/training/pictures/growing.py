"""Extend the autoencoder to 256 px for the same latents, and train it on latents that the UNet left."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from assets.starter.training.pictures.autoencoder import LOG_VARIANCE, as_input, latents_of
from assets.starter.training.pictures.model import make_autoencoder
from assets.starter.training.pictures.state import load_state, save_state

CRITIC_SHARE = 0.06  # how much of the drawing loss's pull the critic may have
CRITIC_FROM = 0.4  # of the steps
PEAK_RATE = 6e-4


def _shifted(name: str, by: int) -> str:
    """Return a parameter's name in the extended encoder, whose blocks move up by one."""
    head = "encoder.down_blocks."
    if not name.startswith(head):
        return name
    index, rest = name[len(head) :].split(".", 1)
    return f"{head}{int(index) + by}.{rest}"


@torch.no_grad()
def grown(small: AutoencoderKL) -> AutoencoderKL:
    """Add one doubling to the 128 px autoencoder; at first it only repeats pixels, and averages them when encoding."""
    large = make_autoencoder(3)
    state = large.state_dict()
    state |= {_shifted(name, 1): value for name, value in small.state_dict().items()}
    large.load_state_dict(state)
    for block in (large.encoder.down_blocks[0], large.decoder.up_blocks[3]):
        for resnet in block.resnets:
            resnet.conv2.weight.zero_()
            resnet.conv2.bias.zero_()
    same = torch.eye(16)[:, :, None, None]
    larger, halved = large.decoder.up_blocks[2].upsamplers[0].conv, large.encoder.down_blocks[0].downsamplers[0].conv
    larger.weight.zero_()
    larger.weight[:, :, 1:2, 1:2] = same
    halved.weight.zero_()
    halved.weight[:, :, :2, :2] = same / 4
    larger.bias.zero_()
    halved.bias.zero_()
    return large


def halved(pictures: Tensor) -> Tensor:
    return functional.avg_pool2d(pictures, 2)


class Critic(nn.Sequential):
    """Discriminate drawn from decoded patches of about 30 pixels."""

    def __init__(self) -> None:
        widths = (3, 16, 32, 48)
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            layers += [nn.utils.parametrizations.spectral_norm(nn.Conv2d(before, after, 4, 2, 1)), nn.LeakyReLU(0.2)]
        super().__init__(*layers, nn.Conv2d(widths[-1], 1, 3, 1, 1))


def drawing_loss(again: Tensor, pictures: Tensor) -> Tensor:
    """Return the error of colours, and of edges at two scales."""
    loss = (again - pictures).abs().mean()
    for one, other in ((again, pictures), (halved(again), halved(pictures))):
        loss = loss + (one.diff(dim=2) - other.diff(dim=2)).abs().mean() + (one.diff(dim=3) - other.diff(dim=3)).abs().mean()
    return loss


def _encoder_loss(model: AutoencoderKL, pictures: Tensor) -> Tensor:
    spread = model.encode(pictures).latent_dist
    off = spread.mean - latents_of(halved(pictures))
    return off[:, :3].abs().mean() + 10 * off[:, 3].pow(2).mean() + 0.003 * (spread.logvar - LOG_VARIANCE).pow(2).mean()


def _critic_loss(model: AutoencoderKL, critic: Critic, decoded: Tensor, loss: Tensor) -> Tensor:
    """Return the critic's loss for decoded pictures, scaled to CRITIC_SHARE of the drawing loss's gradient."""
    critic.requires_grad_(False)
    dislike = -critic(decoded).float().mean()
    critic.requires_grad_(True)
    last = model.decoder.conv_out.weight
    ours, theirs = (torch.autograd.grad(x, last, retain_graph=True)[0].norm() for x in (loss, dislike))
    return CRITIC_SHARE * (ours / (theirs + 1e-6)).clamp(max=10).detach() * dislike


def _train_critic(critic: Critic, optimizer: torch.optim.Optimizer, real: Tensor, decoded: Tensor) -> None:
    loss = functional.relu(1 - critic(real)).mean() + functional.relu(1 + critic(decoded)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def train_grown(
    model: AutoencoderKL, pictures: NDArray[np.uint8], left: NDArray[np.float32], steps: int, batch: int, keep: Path
) -> Iterator[str]:
    """Train in place, resuming from `keep`; save the averaged weights in keep/vae and yield lines of progress."""
    keep.mkdir(parents=True, exist_ok=True)
    critic, mean = Critic(), copy.deepcopy(model)
    parameters, averages = list(model.parameters()), list(mean.parameters())
    optimizer = torch.optim.AdamW(parameters, PEAK_RATE, betas=(0.9, 0.99), weight_decay=1e-4, fused=True)
    judge = torch.optim.AdamW(critic.parameters(), 3e-4, betas=(0.5, 0.9))
    trained = {"model": model, "mean": mean, "critic": critic, "optimizer": optimizer, "judge": judge}
    first = load_state(keep, trained) if (keep / "state.pt").exists() else 0
    model.to(memory_format=torch.channels_last)
    rng, began_s, losses = np.random.default_rng([5, first]), time.monotonic(), []
    torch.manual_seed(5 + first)
    for step in range(first, steps):
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(1.0, (step + 1) / 50) * min(1.0, (steps - step) / (0.6 * steps))
        chosen = np.sort(rng.choice(len(pictures), batch, replace=False))
        real = as_input(pictures[chosen]).contiguous(memory_format=torch.channels_last)
        true = latents_of(halved(real))
        latents = torch.from_numpy(left[chosen]) if step % 3 else true + torch.randn_like(true) * torch.rand(batch, 1, 1, 1) * 0.08
        with torch.autocast("cpu", torch.bfloat16):
            decoded = model.decode(latents).sample.float()
            loss = drawing_loss(decoded, real)
            total = loss + _encoder_loss(model, real) if step % 4 == 0 else loss
            if step > CRITIC_FROM * steps:
                total = total + _critic_loss(model, critic, decoded, loss)
        total.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step > CRITIC_FROM * steps - 50:
            _train_critic(critic, judge, real, decoded.detach())
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1 - min(0.99, (step + 1) / (step + 11)))
        losses.append(loss.item())
        if step % 200 == 199 or step == steps - 1:
            mean.save_pretrained(keep / "vae")
            save_state(keep, trained, step + 1)
            yield f"grown {step + 1}/{steps} loss {sum(losses[-100:]) / len(losses[-100:]):.4f} {time.monotonic() - began_s:.0f} s"
    model.load_state_dict(mean.state_dict())
