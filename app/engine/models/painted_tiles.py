"""Cut pictures that are larger than a model paints into tiles of about the size that it was trained at, which overlap. Pure."""

from __future__ import annotations

from typing import Final

OVERLAP_SHARE: Final = 1 / 8
"""Two tiles have this share of the model's own side in common: as much of two tiles is blended."""
ROOM: Final = 1.25
"""A tile may be so much larger than the model's own side, which often spares a row of them."""
CELL: Final = 64
"""Tiles begin and end at multiples of so many pixels, which every level of a denoiser can halve."""
Spans = tuple[tuple[int, int], ...]


def cut(side: int, own: int, cell: int = CELL) -> Spans:
    """Return where the tiles along a side begin and end; one for a side that the model paints whole."""
    most, overlap = _round_up(int(own * ROOM), cell), _round_up(int(own * OVERLAP_SHARE), cell)
    if side <= most:
        return ((0, side),)
    count = -(-(side - overlap) // (most - overlap))
    length = min(most, _round_up(-(-(side + (count - 1) * overlap) // count), cell))
    last = side - length
    begins = [round(place * last / (count - 1) / cell) * cell for place in range(count - 1)]
    return tuple((begin, begin + length) for begin in (*begins, last))


def find_larger(size: tuple[int, int], times: float, multiple: int = 1) -> tuple[int, int]:
    """Return the size nearest to so many times another, in multiples that a model can paint."""
    width, height = (max(1, round(side * times / multiple)) * multiple for side in size)
    return width, height


def find_tile(side: int, own: int) -> int:
    """Return how long the tiles along a side are."""
    begin, end = cut(side, own)[0]
    return end - begin


def _round_up(length: int, cell: int) -> int:
    return -(-length // cell) * cell
