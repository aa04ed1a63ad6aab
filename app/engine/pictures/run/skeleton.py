"""Draw people's poses as OpenPose does, which control models for poses were trained on: each limb and each point in its own colour, on black."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

CERTAIN: Final = 0.3
"""Points that are less certain are left out, and limbs that end in one."""
NECK: Final = 17
"""Behind COCO's 17 points: the middle of the shoulders."""
SHOULDERS: Final = (5, 6)
ORDER: Final = (0, NECK, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3)
"""OpenPose's points by COCO's numbers: nose, neck, the right arm, the left arm, the right leg, the left leg, eyes, ears."""
LIMBS: Final = (
    (1, 2), (1, 5), (2, 3), (3, 4), (5, 6), (6, 7), (1, 8), (8, 9), (9, 10), (1, 11), (11, 12), (12, 13), (1, 0), (0, 14), (14, 16), (0, 15), (15, 17),
)  # fmt: skip
COLOURS: Final = (
    (255, 0, 0), (255, 85, 0), (255, 170, 0), (255, 255, 0), (170, 255, 0), (85, 255, 0), (0, 255, 0), (0, 255, 85), (0, 255, 170),
    (0, 255, 255), (0, 170, 255), (0, 85, 255), (0, 0, 255), (85, 0, 255), (170, 0, 255), (255, 0, 255), (255, 0, 170), (255, 0, 85),
)  # fmt: skip
"""A limb and the point of the same place have the same colour; a limb is darker."""
DARKER: Final = 0.6
RADIUS: Final = 4
SIDE: Final = 512
"""Limbs are so wide on either side, and points so large, in a picture whose shorter side has so many pixels."""

Floats = NDArray[np.float32]


def draw_poses(poses: Floats, size: tuple[int, int]) -> Image.Image | None:
    """Return the map of poses in a picture of this size; None where no point is certain. `poses`: x, y and how certain, of each person's 17 points."""
    people = [_list_points(pose) for pose in poses]
    if not any(point is not None for points in people for point in points):
        return None
    pixels, radius = np.zeros((size[1], size[0], 3), np.uint8), RADIUS * min(size) / SIDE
    for (begin, end), colour in zip(LIMBS, COLOURS, strict=False):
        for points in people:
            if (one := points[begin]) is not None and (other := points[end]) is not None:
                _fill(pixels, (one + other) / 2, (other - one) / 2, radius, tuple(int(each * DARKER) for each in colour))
    for place, colour in enumerate(COLOURS):
        for points in people:
            if (point := points[place]) is not None:
                _fill(pixels, point, np.array([radius, 0]), radius, colour)
    return Image.fromarray(pixels)


def _list_points(pose: Floats) -> list[Floats | None]:
    """List a person's points as OpenPose orders them."""
    one, other = (pose[each] for each in SHOULDERS)
    neck = [*(one[:2] + other[:2]) / 2, min(one[2], other[2])]
    return [point[:2] if point[2] >= CERTAIN else None for point in np.vstack([pose, neck])[list(ORDER)]]


def _fill(pixels: NDArray[np.uint8], middle: NDArray[Any], ahead: NDArray[Any], radius: float, colour: tuple[int, ...]) -> None:
    """Fill an ellipse. `ahead`: from its middle to its end; `radius`: how far it reaches to either side of that."""
    length = math.hypot(*ahead)
    if length == 0:
        return
    reach = max(length, radius)
    left, top, right, bottom = (np.concatenate([middle - reach, middle + reach + 1]).clip(0, [*pixels.shape[1::-1]] * 2)).astype(int)
    rows, columns = np.ogrid[top:bottom, left:right]
    down, across = rows - middle[1], columns - middle[0]
    along, aside = (across * ahead[0] + down * ahead[1]) / length, (down * ahead[0] - across * ahead[1]) / length
    pixels[top:bottom, left:right][(along / length) ** 2 + (aside / radius) ** 2 <= 1] = colour
