"""Give a picture to a model that sees: resized, with colours as in its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from PIL import Image


@dataclass(frozen=True, slots=True)
class Colours:
    """Of red, green and blue: the mean of the pictures that a model was trained with, and their spread."""

    mean: tuple[float, float, float]
    spread: tuple[float, float, float]


IMAGENET: Final = Colours((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PLAIN: Final = Colours((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
CLIP: Final = Colours((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))


def scale(picture: Image.Image, size: tuple[int, int], colours: Colours, how: Image.Resampling = Image.Resampling.BICUBIC) -> torch.Tensor:
    """Return a batch of this one picture, in float32."""
    pixels = np.asarray(picture.resize(size, how), np.float32) / 255
    scaled = (pixels - np.array(colours.mean, np.float32)) / np.array(colours.spread, np.float32)
    return torch.from_numpy(scaled).permute(2, 0, 1)[None]
