"""Leave latents as the UNet leaves them: from these the decoder learns to make the crisp drawing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from diffusers import UNet2DConditionModel
from torch import Tensor

from training.pictures.autoencoder import as_input, halved, latents_of
from training.pictures.data import FIRST_LARGE_SEED
from training.pictures.model import SCALING, make_scheduler
from training.pictures.scenes import scene
from training.pictures.sketch import sketch
from training.pictures.text import full_sketch

STROKES = 4
NOISED = 60, 420  # how far back towards noise a latent goes before the UNet paints it again


@torch.no_grad()
def painted_over(unet: UNet2DConditionModel, clean: Tensor, hidden: Tensor) -> Tensor:
    """Add noise to true latents and denoise them again in a few steps."""
    alphas = make_scheduler().alphas_cumprod
    first = int(torch.randint(*NOISED, ()))
    levels = [round(first * (1 - i / STROKES)) for i in range(STROKES)]
    found = clean * SCALING
    found = alphas[first].sqrt() * found + (1 - alphas[first]).sqrt() * torch.randn_like(found)
    for now, then in zip(levels, (*levels[1:], None), strict=True):
        speed, alpha = unet(found, now, hidden, return_dict=False)[0], alphas[now]
        picture, noise = (alpha.sqrt() * found - (1 - alpha).sqrt() * speed, alpha.sqrt() * speed + (1 - alpha).sqrt() * found)
        found = picture if then is None else alphas[then].sqrt() * picture + (1 - alphas[then]).sqrt() * noise
    return found / SCALING


def write_left(work: Path, unet: UNet2DConditionModel, batch: int = 8) -> Iterator[str]:
    """Write what the UNet makes of the true latents of work/large.npy, brought back towards noise, unless the file exists."""
    if (work / "left.npy").exists():
        return
    torch.manual_seed(6)
    pictures = np.load(work / "large.npy", mmap_mode="r")
    left, began_s = np.zeros((len(pictures), 4, 32, 32), np.float32), time.monotonic()
    for start in range(0, len(pictures), batch):
        part = slice(start, min(len(pictures), start + batch))
        rows = torch.from_numpy(np.stack([sketch(scene(FIRST_LARGE_SEED + i)) for i in range(part.start, part.stop)]))
        with torch.no_grad():
            left[part] = painted_over(unet, latents_of(halved(as_input(pictures[part]))), full_sketch(rows)).numpy()
        if start % 400 == 0:
            yield f"left {start}/{len(pictures)} {time.monotonic() - began_s:.0f} s"
    np.save(work / "left.npy", left)
