"""See how far away things in a picture are: transformers' own depth estimation, with open tensors only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from PIL import Image
from transformers.models.depth_anything import DepthAnythingForDepthEstimation

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.judged_files import judge_folder
from app.engine.models.loading import from_pretrained, weights_complete
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.loading.release_memory import release
from app.engine.models.model_folder import check_part
from app.engine.pictures.families import seen_pixels

SIDE: Final = 518
"""It sees so many pixels of the shorter side, as in its training; a long picture is seen smaller."""
LONGER_MOST: Final = 2 * SIDE
PATCH: Final = 14
_FAULTS: Final = (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError)
"""The library raises these for settings and weights that make no such model."""


@torch.no_grad()
def see_depth(folder: Path, picture: Image.Image) -> Image.Image | None:
    """Return a map as large as the picture: white is near, black is far. None where all is as far away. The model is asked once, on the processor in
    float32, and leaves the memory again."""
    seen = _load(folder)(_scale(picture)).predicted_depth[0]
    release()
    if not bool(torch.isfinite(seen).all()):
        raise NumbersBroke(0)
    fitted = np.asarray(Image.fromarray(seen.numpy()).resize(picture.size, Image.Resampling.BICUBIC))
    low, high = float(fitted.min()), float(fitted.max())
    if high - low <= 1e-6 * abs(high):
        return None
    return Image.fromarray(np.rint((fitted - low) / (high - low) * 255).astype(np.uint8)).convert("RGB")


def _load(folder: Path) -> Any:
    judge_folder(folder)
    check_part(folder, folder)
    kind: Any = DepthAnythingForDepthEstimation
    try:
        config = from_pretrained.read_config(kind, folder)
        with from_pretrained.open_weights(folder) as weights:
            model, found = kind.from_pretrained(None, state_dict=weights, config=config, dtype=torch.float32, output_loading_info=True)
        weights_complete.check_weights(folder, found["missing_keys"], found["unexpected_keys"], found["mismatched_keys"])
    except _FAULTS as fault:
        raise Trouble(
            say(
                "guide.reader-damaged",
                "The model in {folder} that sees depth is damaged. Delete it in Models and download it again.",
                folder=str(folder),
            ),
            cure="models",
        ) from fault
    return model.eval()


def _scale(picture: Image.Image) -> torch.Tensor:
    ratio = min(SIDE / min(picture.size), LONGER_MOST / max(picture.size))
    width, height = (max(PATCH, round(side * ratio / PATCH) * PATCH) for side in picture.size)
    return seen_pixels.scale(picture.convert("RGB"), (width, height), seen_pixels.IMAGENET)
