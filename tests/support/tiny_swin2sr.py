"""Write a small Swin2SR enlarger with random weights, as transformers itself saves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers.models.swin2sr import Swin2SRConfig, Swin2SRForImageSuperResolution


def make(scale: int = 2, upsampler: str = "pixelshuffle", **other: Any) -> Swin2SRForImageSuperResolution:
    torch.manual_seed(5)
    small = {"embed_dim": 12, "depths": [2], "num_heads": [2], "image_size": 64}
    net = Swin2SRForImageSuperResolution(Swin2SRConfig(window_size=8, upscale=scale, upsampler=upsampler, **{**small, **other}))
    with torch.no_grad():  # as the library draws them, weights leave next to no picture
        for name, weight in net.named_parameters():
            if weight.ndim > 1 and "position_bias" not in name:
                weight.normal_(0, weight[0].numel() ** -0.5 * (0.2 if "final" in name else 1))
    return net.eval()


def write(folder: Path, **how: Any) -> Path:
    make(**how).save_pretrained(folder)
    return folder
