"""How the latents of a family become its VAE's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

Unpack = Callable[[Any, torch.Tensor, int, int], torch.Tensor]
"""It gets pipeline, latents, height and width, and makes latents for the VAE, [1, C, h, w]."""


def _unscale(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    config = pipe.vae.config
    scaling: float = config.scaling_factor
    mean, std = getattr(config, "latents_mean", None), getattr(config, "latents_std", None)
    if mean is not None and std is not None:
        shape = (1, len(mean), 1, 1)
        latents = latents * torch.tensor(std).view(shape).to(latents) / scaling
        return latents + torch.tensor(mean).view(shape).to(latents)
    return latents / scaling


def _unscale_and_shift(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    scaling: float = pipe.vae.config.scaling_factor
    shift: float = pipe.vae.config.shift_factor
    return latents / scaling + shift


def _unpack(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    plain = pipe._unpack_latents(latents, height, width, pipe.vae_scale_factor)
    return _unscale_and_shift(pipe, plain, height, width)


def _unpatch(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    if latents.ndim == 4:  # the pipeline returns its final latents ready for the VAE
        return latents
    side = pipe.vae_scale_factor * 2
    patches = latents.permute(0, 2, 1).reshape(1, latents.shape[2], height // side, width // side)
    norm = pipe.vae.bn
    mean = norm.running_mean.view(1, -1, 1, 1).to(patches)
    std = torch.sqrt(norm.running_var.view(1, -1, 1, 1) + pipe.vae.config.batch_norm_eps).to(patches)
    plain: torch.Tensor = pipe._unpatchify_latents(patches * std + mean)
    return plain


UNPACK: Final[dict[str, Unpack]] = {"scale": _unscale, "shift": _unscale_and_shift, "unpack": _unpack, "unpatch": _unpatch}
