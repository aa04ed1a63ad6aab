"""Find and measure connected regions of a picture. Knows nothing of scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Region:
    """Connected pixels: `mask` covers the picture; x and y are the centre as shares of its size."""

    mask: Mask
    area: int
    x: float
    y: float
    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top


def distance(pixels: Floats, colour: Sequence[float] | Floats) -> Floats:
    """Return each pixel's distance from a colour, on the scale of 0 to 255."""
    far: Floats = np.sqrt(((pixels - np.asarray(colour, np.float64)) ** 2).sum(-1))
    return far


def regions(mask: Mask, least: int) -> list[Region]:
    """Return the regions of at least so many pixels, largest first; pixels connect by their sides."""
    height, width = mask.shape
    left = {(int(y), int(x)) for y, x in np.argwhere(mask)}
    found = []
    while left:
        start = left.pop()
        stack, members = [start], [start]
        while stack:
            y, x = stack.pop()
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if near in left:
                    left.remove(near)
                    stack.append(near)
                    members.append(near)
        if len(members) < least:
            continue
        ys, xs = np.array(members).T
        own = np.zeros_like(mask)
        own[ys, xs] = True
        found.append(Region(own, len(members), float(xs.mean() + 0.5) / width, float(ys.mean() + 0.5) / height,
                            int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1))  # fmt: skip
    return sorted(found, key=lambda region: -region.area)


def stretched(region: Region, cells: int = 24) -> Floats:
    """Scale the region's box to cells x cells shares of coverage."""
    box = region.mask[region.top : region.bottom, region.left : region.right].astype(np.float64)
    fine = 4 * cells
    ys = (np.arange(fine) * region.height // fine).clip(max=region.height - 1)
    xs = (np.arange(fine) * region.width // fine).clip(max=region.width - 1)
    cover: Floats = box[ys][:, xs].reshape(cells, 4, cells, 4).mean((1, 3))
    return cover
