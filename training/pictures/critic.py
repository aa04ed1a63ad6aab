"""A small critic that tells drawn from decoded patches: it keeps the decoder from blurring what it is unsure of."""

from __future__ import annotations

import itertools

import torch
from diffusers import AutoencoderKL
from torch import Tensor, nn
from torch.nn import functional

SHARE = 0.06  # how much of the drawing loss's pull the critic may have


class Critic(nn.Sequential):
    """Discriminate drawn from decoded patches of about 30 pixels."""

    def __init__(self) -> None:
        widths = (3, 16, 32, 48)
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            layers += [nn.utils.parametrizations.spectral_norm(nn.Conv2d(before, after, 4, 2, 1)), nn.LeakyReLU(0.2)]
        super().__init__(*layers, nn.Conv2d(widths[-1], 1, 3, 1, 1))


def dislike(model: AutoencoderKL, critic: Critic, decoded: Tensor, loss: Tensor) -> Tensor:
    """Return the critic's loss for decoded pictures, scaled to SHARE of the drawing loss's gradient."""
    critic.requires_grad_(False)
    told = -critic(decoded).float().mean()
    critic.requires_grad_(True)
    last = model.decoder.conv_out.weight
    ours, theirs = (torch.autograd.grad(x, last, retain_graph=True)[0].norm() for x in (loss, told))
    return SHARE * (ours / (theirs + 1e-6)).clamp(max=10).detach() * told


def train_critic(critic: Critic, optimizer: torch.optim.Optimizer, real: Tensor, decoded: Tensor) -> None:
    loss = functional.relu(1 - critic(real)).mean() + functional.relu(1 + critic(decoded)).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
