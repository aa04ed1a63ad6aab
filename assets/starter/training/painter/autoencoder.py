"""Train the autoencoder for fixed latents, the mean colour of 4 x 4 pixels and their spread, so that the UNet can train beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL
from numpy.typing import NDArray
from torch import Tensor

from assets.starter.training.painter.together import average_gradients, rank_here
from assets.starter.training.pictures.autoencoder import as_input, decoder_loss, encoder_loss, latents_of
from assets.starter.training.pictures.passing import pass_colours


def _crops(sources: list[NDArray[np.uint8]], size: int, batch: int, rng: np.random.Generator) -> Tensor:
    source = sources[rng.integers(len(sources))]
    found = []
    for i in rng.integers(len(source), size=batch):
        y, x = rng.integers(source.shape[1] - size + 1, size=2)
        crop = source[i, y : y + size, x : x + size]
        found.append(crop[:, ::-1] if rng.random() < 0.5 else crop)
    return as_input(np.stack(found)).contiguous(memory_format=torch.channels_last)


def train_autoencoder(
    model: AutoencoderKL, sources: list[NDArray[np.uint8]], steps: int, keep: Path, seed: int = 1, fresh: bool = True
) -> Iterator[str]:
    """Train in place, the last fifth on whole 128 px pictures; yield lines of progress."""
    torch.manual_seed(seed + rank_here())
    first = as_input(sources[0][:24])
    if fresh:
        pass_colours(model, first, latents_of(first))
    rng = np.random.default_rng([seed, rank_here()])
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, 1.2e-3, weight_decay=1e-4, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.2e-3, total_steps=steps, pct_start=0.05)
    model.to(memory_format=torch.channels_last)  # 15% faster here
    began_s = time.monotonic()
    for step in range(steps):
        size, batch = (64, 16) if step < steps * 4 // 5 else (128, 6)
        pictures = _crops(sources, size, batch, rng)
        with torch.autocast("cpu", torch.bfloat16):
            loss = decoder_loss(model, pictures)
            whole = loss if step % 2 else loss + encoder_loss(model, pictures)
        whole.backward()
        average_gradients(parameters)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if rank_here() == 0 and (step % 50 == 49 or step == steps - 1):
            model.save_pretrained(keep)
            yield f"autoencoder {step + 1}/{steps} loss {loss.item():.4f} {time.monotonic() - began_s:.0f} s"
