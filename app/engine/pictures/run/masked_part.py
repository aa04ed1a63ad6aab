"""The masked part of a picture: which box around the mask is painted, and how that is put back so that its edge does not show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PIL import Image, ImageChops, ImageFilter

Box = tuple[int, int, int, int]
"""Pillow has a box as (left, top, right, bottom)."""
SHAPE_MOST: Final = 2
"""A side may be so many times as long as the other where no size is asked for."""
WHOLE: Final = 250
"""From this level of a mask on, what was painted counts wholly."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The picture that a painted part belongs to."""

    picture: Image.Image
    mask: Image.Image
    """The mask is as large as the picture."""
    box: Box
    """The part lies there."""

    @classmethod
    def find(cls, picture: Image.Image, mask: Image.Image, padding: int, shape: tuple[int, int]) -> Surroundings:
        return cls(picture, mask, find_box(_find_marked(mask), picture.size, padding, shape))

    def cut(self, width: int, height: int) -> tuple[Image.Image, Image.Image]:
        """Return the part and its mask at the size that is painted; what is marked stays marked, however small it becomes."""
        part = self.picture.resize((width, height), Image.Resampling.LANCZOS, self.box)
        mask = self.mask.resize((width, height), Image.Resampling.BOX, self.box)
        return part, mask.point(lambda level: 255 if level else 0)

    def paste(self, painted: Image.Image, blur: int) -> Image.Image:
        """Return the picture with what was painted inside the mask; outside of it every pixel stays."""
        left, top, right, bottom = self.box
        near = find_box(self.box, self.picture.size, 2 * blur, (0, 0))
        inside = soften(self.mask.crop(near), blur).crop((left - near[0], top - near[1], right - near[0], bottom - near[1]))
        part = painted.convert("RGB")
        if part.size != inside.size:
            part = part.resize(inside.size, Image.Resampling.LANCZOS)
        finished = self.picture.copy()
        finished.paste(part, (left, top), inside)
        return finished


def find_box(marked: Box, size: tuple[int, int], padding: int, shape: tuple[int, int]) -> Box:
    """Return what is marked with padding around it, grown to the proportions of `shape`, as far as the picture reaches. (0, 0): it keeps its own."""
    spans = [(max(0, marked[axis] - padding), min(size[axis], marked[axis + 2] + padding)) for axis in (0, 1)]
    lengths = [end - begin for begin, end in spans]
    for axis in (0, 1):
        wanted = -(-lengths[1 - axis] * shape[axis] // shape[1 - axis]) if shape[1 - axis] else 0
        if wanted > lengths[axis]:
            lengths[axis] = min(size[axis], wanted)
            break
    begins = [
        min(max(0, (begin + end - length) // 2), most - length) for (begin, end), length, most in zip(spans, lengths, size, strict=True)
    ]
    return begins[0], begins[1], begins[0] + lengths[0], begins[1] + lengths[1]


def choose_shape(mask: Image.Image, padding: int) -> tuple[int, int]:
    """Return the proportions in which a part is painted where no size is asked for: its own, unless one side is far longer."""
    left, top, right, bottom = find_box(_find_marked(mask), mask.size, padding, (0, 0))
    width, height = right - left, bottom - top
    return max(width, -(-height // SHAPE_MOST)), max(height, -(-width // SHAPE_MOST))


def soften(mask: Image.Image, blur: int) -> Image.Image:
    """Return the mask with a soft edge that lies within it, so many pixels wide; narrower where the mask has no room for that."""
    while blur:
        soft = mask.filter(ImageFilter.GaussianBlur(blur / 2)).point(lambda level: max(0, 2 * level - 255))
        inside = ImageChops.darker(soft, mask)
        if inside.point(lambda level: 255 if level >= WHOLE else 0).getbbox() is not None:
            return inside
        blur //= 2
    return mask


def _find_marked(mask: Image.Image) -> Box:
    box = mask.getbbox()
    assert box is not None, "an empty mask is refused where it is opened"
    return box
