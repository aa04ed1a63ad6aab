"""Write pictures of 256 px with the latents that the UNet makes for them; from these the larger decoder learns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from diffusers import UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTokenizer

from assets.starter.training.painter.captions import say
from assets.starter.training.painter.draw import draw
from assets.starter.training.painter.scenes import scene
from assets.starter.training.painter.text import tokens_of
from assets.starter.training.pictures.autoencoder import as_input, latents_of
from assets.starter.training.pictures.growing import halved
from assets.starter.training.pictures.left import painted_over

SIZE = 256
FIRST_SEED = 2_000_000


def write_examples(folder: Path, unet: UNet2DConditionModel, encoder: CLIPTextModel, tokenizer: CLIPTokenizer, count: int) -> Iterator[str]:
    """Write pictures of 256 px with the latents that the UNet makes for them, unless the files exist."""
    if (folder / "left.npy").exists():
        return
    torch.manual_seed(6)
    pictures = np.lib.format.open_memmap(folder / "examples.npy", "w+", np.uint8, (count, SIZE, SIZE, 3))
    left, began_s, batch = np.zeros((count, 4, 32, 32), np.float32), time.monotonic(), 8
    for start in range(0, count, batch):
        seeds = range(FIRST_SEED + start, FIRST_SEED + min(count, start + batch))
        scenes = [scene(seed) for seed in seeds]
        part = slice(start, start + len(scenes))
        pictures[part] = np.stack([draw(each, SIZE) for each in scenes])
        with torch.no_grad():
            hidden = encoder(tokens_of(tokenizer, [say(s, seed) for s, seed in zip(scenes, seeds, strict=True)])).last_hidden_state
        left[part] = painted_over(unet, latents_of(halved(as_input(pictures[part]))), hidden).numpy()
        if start % 400 == 0:
            yield f"examples {start}/{count} {time.monotonic() - began_s:.0f} s"
    pictures.flush()
    np.save(folder / "left.npy", left)
