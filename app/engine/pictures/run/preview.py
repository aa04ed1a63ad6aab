"""Draw previews without the VAE: a linear map from latents to colours, fitted once to the loaded VAE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from PIL import Image

from app.base import atomic_write

PATCH_PIXELS: Final = 16
PATCHES: Final = 5
"""The chart has 80 x 80 pixels: it is quick to encode, and its hundred latents are enough for any number of channels."""
LEAST_SIDE: Final = 256


@dataclass(frozen=True, slots=True)
class LatentColours:
    """rgb = latents @ weight + bias, in -1..1."""

    weight: torch.Tensor
    bias: torch.Tensor

    def draw(self, latents: torch.Tensor) -> Image.Image:
        """Draw VAE latents [n, C, h, w] in rows, enlarged so that the browser's smoothing looks right."""
        values = _lay_out(latents.float().cpu()).permute(1, 2, 0) @ self.weight + self.bias
        pixels = ((values.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).numpy()
        small = Image.fromarray(pixels)
        times = max(1, -(-LEAST_SIDE // max(small.size)))
        return small.resize((small.width * times, small.height * times), Image.Resampling.BILINEAR)


def _lay_out(latents: torch.Tensor) -> torch.Tensor:
    """Put pictures [n, C, h, w] into one [C, rows * h, across * w], the last row filled up with zeros."""
    across = math.ceil(math.sqrt(len(latents)))
    missing = -len(latents) % across
    whole = torch.cat([latents, latents.new_zeros(missing, *latents.shape[1:])])
    return torch.cat([torch.cat(list(row), dim=2) for row in torch.split(whole, across)], dim=1)


def fit_colours(vae: Any, device: torch.device) -> LatentColours:
    """Fit by least squares on a chart of soft coloured patches that the VAE encodes: works for any model, without a table."""
    scale = 2 ** (len(vae.config.block_out_channels) - 1)
    patches = np.random.default_rng(0).integers(0, 256, (PATCHES, PATCHES, 3), dtype=np.uint8)
    side = PATCHES * max(PATCH_PIXELS, scale)
    chart = Image.fromarray(patches).resize((side, side), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.asarray(chart, dtype=np.float32) / 127.5 - 1).permute(2, 0, 1)[None]
    with torch.no_grad():
        encoded = vae.encode(pixels.to(device, vae.dtype)).latent_dist.mode()
    latents = encoded[0].float().cpu().flatten(1).T
    colours = torch.nn.functional.avg_pool2d(pixels, scale)[0].flatten(1).T
    ones = torch.ones(len(latents), 1)
    # Ridge regression: tiny or untrained VAEs leave some channels undetermined.
    design = torch.cat([latents, ones], 1).double()
    ridge = 1e-4 * torch.eye(design.shape[1], dtype=torch.float64) * design.square().mean()
    solved = torch.linalg.solve(design.T @ design + ridge * len(design), design.T @ colours.double()).float()
    return LatentColours(solved[:-1], solved[-1])


def write(picture: Image.Image, path: Path) -> None:
    """Write the preview atomically, as JPEG."""
    with atomic_write.replacing(path) as unfinished:
        picture.save(unfinished, "JPEG", quality=85)
