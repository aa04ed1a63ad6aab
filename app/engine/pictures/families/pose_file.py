"""See how the people in a picture stand and move: transformers' RT-DETR finds each of them, and its ViTPose the points of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers.models.rt_detr import RTDetrForObjectDetection
from transformers.models.vitpose import VitPoseForPoseEstimation

from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.loading.release_memory import release
from app.engine.pictures.families import seen_pixels
from app.engine.pictures.families.reader_file import load_reader

Floats = NDArray[np.float32]
SIDE: Final = 640
"""A picture is squeezed into a square of so many pixels to find its people, as in training."""
PERSON: Final = 0
"""COCO's number of this class."""
CERTAIN: Final = 0.3
"""Somebody is there from here on, as ViTPose's makers take it."""
PEOPLE_MOST: Final = 20
"""The most certain ones are seen, each for a moment; of a crowd nothing could be painted after more."""
ROOM: Final = 1.25
"""So much larger than a person's box is what is seen of the picture, as in training."""
POINTS: Final = 17
"""These are COCO's: nose, then left and right of eyes, ears, shoulders, elbows, wrists, hips, knees, ankles."""
LEAST: Final = 1e-3


@torch.no_grad()
def see_poses(folder: Path, finder: Path, picture: Image.Image) -> Floats:
    """Return x, y and how certain it is, for each of each person's points. One model after the other is asked and leaves the memory."""
    shown = picture.convert("RGB")
    people = _find_people(finder, shown)
    release()
    poses = _see_each(folder, shown, people) if len(people) else np.zeros((0, POINTS, 3), np.float32)
    release()
    return poses


def _find_people(folder: Path, picture: Image.Image) -> Floats:
    """Return the middle and the sides of each person's box, in pixels."""
    pixels = seen_pixels.scale(picture, (SIDE, SIDE), seen_pixels.PLAIN, Image.Resampling.BILINEAR)
    seen = load_reader(RTDetrForObjectDetection, folder)(pixels)
    certain = seen.logits[0, :, PERSON].sigmoid()
    if not bool(torch.isfinite(certain).all()):
        raise NumbersBroke(0)
    best = certain.topk(min(PEOPLE_MOST, len(certain)))
    boxes: Floats = seen.pred_boxes[0][best.indices[best.values > CERTAIN]].numpy()
    return boxes * np.array([*picture.size, *picture.size], np.float32)


def _see_each(folder: Path, picture: Image.Image, people: Floats) -> Floats:
    model = load_reader(VitPoseForPoseEstimation, folder)
    return np.stack([_see_pose(model, picture, box) for box in people])


def _see_pose(model: Any, picture: Image.Image, box: Floats) -> Floats:
    high, wide = model.config.backbone_config.image_size
    size = np.array([wide, high])
    span = ROOM * max(box[2:] / size) * size
    corner = box[:2] - span / 2
    step = span / (size - 1)  # the first pixel lies in the corner and the last one opposite, as in training
    across, down = corner + (1 - step) / 2
    cut = picture.transform((wide, high), Image.Transform.AFFINE, (step[0], 0, across, 0, step[1], down), Image.Resampling.BILINEAR)
    heat = model(seen_pixels.scale(cut, (wide, high), seen_pixels.IMAGENET)).heatmaps[0].numpy()
    if not np.isfinite(heat).all():
        raise NumbersBroke(0)
    peaks = find_peaks(heat)
    peaks[:, :2] = peaks[:, :2] * span / (np.array([heat.shape[2], heat.shape[1]]) - 1) + corner
    return peaks


def find_peaks(heat: Floats) -> Floats:
    """Return x, y and value of each map's peak. It lies between pixels, where a bell is highest that goes through the highest one and those beside it."""
    each = np.arange(len(heat))
    y, x = np.divmod(heat.reshape(len(heat), -1).argmax(1), heat.shape[2])
    logs = np.log(np.maximum(np.pad(heat, ((0, 0), (1, 1), (1, 1)), mode="reflect"), LEAST))
    here = logs[each, y + 1, x + 1]
    return np.stack(
        (
            x + _lean(logs[each, y + 1, x], here, logs[each, y + 1, x + 2]),
            y + _lean(logs[each, y, x + 1], here, logs[each, y + 2, x + 1]),
            heat[each, y, x],
        ),
        axis=1,
    ).astype(np.float32)


def _lean(before: Floats, here: Floats, after: Floats) -> Floats:
    curve = 2 * here - before - after
    return np.where(curve > 0, (after - before) / np.maximum(2 * curve, np.finfo(np.float32).tiny), np.float32(0))
