"""What is known of an ESRGAN enlarger (RRDBNet) by the tensors of its file, in each of the three layouts that it is kept in. Loads nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from app.engine.models.safetensors import Entry

DENSE: Final = 3
"""A block has so many dense blocks, each of five convolutions that read all that the ones before them made."""
CONVOLUTIONS: Final = 5
_FOLDS: Final = {3: 1, 12: 2, 48: 4}
"""By how many channels it reads: so many pixels a side are folded into one first (pixel unshuffle)."""
_FEATURES: Final = range(1, 129)
WEIGHTS_MOST: Final = 64_000_000
"""The largest that people share have 17 million."""
_BLOCKS: Final = range(1, 65)
_DOUBLINGS: Final = range(4)


class Tiling(NamedTuple):
    """How a picture is cut for a network, in pixels of what it reads."""

    reach: int
    """Each tile is computed with so many pixels around it."""
    soft: int = 0
    """Two tiles are blended across so many pixels on both sides of their border, where their surroundings stop short of all that the network sees."""
    cell: int = 1
    """Tiles begin at multiples of it."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The names of its convolutions, in the order of the picture's way through it."""

    first: str
    dense: str
    trunk: str
    up: str
    late: str
    last: str

    def list_names(self, blocks: int, doublings: int) -> list[str]:
        places = [(block, dense, each) for block in range(blocks) for dense in range(1, DENSE + 1) for each in range(1, CONVOLUTIONS + 1)]
        return [
            self.first,
            *(self.dense.format(block=block, dense=dense, place=each) for block, dense, each in places),
            self.trunk.format(blocks=blocks),
            *(self.up.format(place=each, third=3 * each) for each in range(1, doublings + 1)),
            self.late.format(third=3 * doublings + 2),
            self.last.format(third=3 * doublings + 4),
        ]


_OWN: Final = _Layout("conv_first", "body.{block}.rdb{dense}.conv{place}", "conv_body", "conv_up{place}", "conv_hr", "conv_last")
"""As Real-ESRGAN keeps it, and Hearth's own module."""
_LAYOUTS: Final = (
    _OWN,
    _Layout("conv_first", "RRDB_trunk.{block}.RDB{dense}.conv{place}", "trunk_conv", "upconv{place}", "HRconv", "conv_last"),
    _Layout(
        "model.0", "model.1.sub.{block}.RDB{dense}.conv{place}.0", "model.1.sub.{blocks}", "model.{third}", "model.{third}", "model.{third}"
    ),
)
"""The third is that of most files that people share: its layers are counted, with the ones that have no weights."""


@dataclass(frozen=True, slots=True)
class Rrdb:
    """What is known of an ESRGAN network."""

    path: Path
    features: int
    growth: int
    """Each convolution of a dense block but its last adds so many channels to what the next ones read."""
    blocks: int
    doublings: int
    fold: int
    names: Mapping[str, str]
    """The file's name of each tensor, by that in Hearth's module."""

    @property
    def scale(self) -> int:
        """One for 3 times has the names and shapes of one for 2, triples where that doubles, and so is run as one for 2."""
        return (1 << self.doublings) // self.fold

    @property
    def tiling(self) -> Tiling:
        """It sees some 15 pixels further with each block, but blocks add little of what lies that far: 24 and a soft border show none."""
        return Tiling(24, 8, self.fold)

    @property
    def products(self) -> float:
        """It multiplies so often for each pixel that it reads: each weight once a pixel, those behind a doubling four times as often."""
        levels = {f"conv_up{each}": each for each in range(1, self.doublings + 1)} | dict.fromkeys(("conv_hr", "conv_last"), self.doublings)
        shapes = list_shapes(self.features, self.growth, self.blocks, self.doublings, self.fold)
        return sum(math.prod(shape) << 2 * levels.get(name.partition(".")[0], 0) for name, shape in shapes.items()) / self.fold**2

    def count_bytes(self, width: int, height: int) -> int:
        """Forecast the memory of one call in float32 for a tile of so many pixels: its last doubling reads one picture and writes another, with the
        half as large one still there; without any, a dense block holds all that it made while it joins it anew."""
        inside = 5 * self.features + 2 * (CONVOLUTIONS - 1) * self.growth
        late = self.features * ((2 << 2 * self.doublings) + (1 << 2 * self.doublings >> 2 if self.doublings else 0))
        return -(-width // self.fold) * -(-height // self.fold) * 4 * max(inside, late)


def read_rrdb(path: Path, entries: Mapping[str, Entry]) -> Rrdb | None:
    """Describe the file by its tensors' names and shapes; None unless every one is where a layout has it."""
    for layout in _LAYOUTS:
        if (first := entries.get(f"{layout.first}.weight")) is None or len(first.shape) != 4:
            continue
        blocks = _count(entries, (layout.dense.format(block=each, dense=1, place=1) for each in range(_BLOCKS.stop)))
        doublings = _count(entries, (layout.up.format(place=each, third=3 * each) for each in range(1, _DOUBLINGS.stop + 1)))
        growth = next(iter(entries.get(f"{layout.dense.format(block=0, dense=1, place=1)}.weight", first).shape), 0)
        features, fold = first.shape[0], _FOLDS.get(first.shape[1], 0)
        known = blocks in _BLOCKS and doublings in _DOUBLINGS and features in _FEATURES and growth in _FEATURES
        if not known or not fold or 2**doublings % fold:
            continue
        shapes = list_shapes(features, growth, blocks, doublings, fold)
        if sum(map(math.prod, shapes.values())) > WEIGHTS_MOST:
            continue
        files = [f"{name}.{each}" for name in layout.list_names(blocks, doublings) for each in ("weight", "bias")]
        names = dict(zip(shapes, files, strict=True))
        if {file: entry.shape for file, entry in entries.items()} == {names[name]: shape for name, shape in shapes.items()}:
            return Rrdb(path, features, growth, blocks, doublings, fold, names)
    return None


def _count(entries: Mapping[str, Entry], names: Iterable[str]) -> int:
    return sum(1 for _ in takewhile(lambda name: f"{name}.weight" in entries, names))


def list_shapes(features: int, growth: int, blocks: int, doublings: int, fold: int) -> dict[str, tuple[int, ...]]:
    """List the tensors of Hearth's module with their shapes, in the order of a layout's names."""
    dense = [(features + place * growth, growth if place < CONVOLUTIONS - 1 else features) for place in range(CONVOLUTIONS)]
    wide = [(3 * fold * fold, features), *dense * (DENSE * blocks), *[(features, features)] * (doublings + 2), (features, 3)]
    found: dict[str, tuple[int, ...]] = {}
    for name, (read, made) in zip(_OWN.list_names(blocks, doublings), wide, strict=True):
        found |= {f"{name}.weight": (made, read, 3, 3), f"{name}.bias": (made,)}
    return found
