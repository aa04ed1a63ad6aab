"""See how far away things in a picture are: transformers' own depth estimation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import torch
from PIL import Image
from transformers.models.depth_anything import DepthAnythingForDepthEstimation

from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.loading.release_memory import release
from app.engine.pictures.families import seen_pixels
from app.engine.pictures.families.reader_file import load_reader

SIDE: Final = 518
"""It sees so many pixels of the shorter side, as in its training; a long picture is seen smaller."""
LONGER_MOST: Final = 2 * SIDE
PATCH: Final = 14


@torch.no_grad()
def see_depth(folder: Path, picture: Image.Image) -> Image.Image | None:
    """Return a map as large as the picture: white is near, black is far. None where all is as far away. The model is asked once and leaves the memory."""
    seen = load_reader(DepthAnythingForDepthEstimation, folder)(_scale(picture)).predicted_depth[0]
    release()
    if not bool(torch.isfinite(seen).all()):
        raise NumbersBroke(0)
    fitted = np.asarray(Image.fromarray(seen.numpy()).resize(picture.size, Image.Resampling.BICUBIC))
    low, high = float(fitted.min()), float(fitted.max())
    if high - low <= 1e-6 * abs(high):
        return None
    return Image.fromarray(np.rint((fitted - low) / (high - low) * 255).astype(np.uint8)).convert("RGB")


def _scale(picture: Image.Image) -> torch.Tensor:
    ratio = min(SIDE / min(picture.size), LONGER_MOST / max(picture.size))
    width, height = (max(PATCH, round(side * ratio / PATCH) * PATCH) for side in picture.size)
    return seen_pixels.scale(picture.convert("RGB"), (width, height), seen_pixels.IMAGENET)
