"""Enlarge a picture by a small network, in tiles that overlap as far as the network sees, so that no border shows."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file

from app.base.path_checks import is_file
from app.compat.machine.meter import read
from app.compat.planning.types import Dtype
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Step, Stopped
from app.engine.jobs.tasks import Enlarge
from app.engine.models import enlargers
from app.engine.models.enlargers import Base, Enlarger, locate_enlarger, read_enlarger
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.painted_tiles import find_larger
from app.engine.models.rrdb import Tiling
from app.engine.models.safetensors import unwrap
from app.engine.models.swin2sr import CONFIG, Swin2sr
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run.compact import Compact
from app.engine.pictures.run.input_images import open_image
from app.engine.pictures.run.rrdb import Rrdb

if TYPE_CHECKING:
    from app.engine.pictures.families.swin2sr_file import Swin2srNet

    Net = Compact | Rrdb | Swin2srNet

TILE: Final = 256
"""What is computed at once has so many pixels a side, before it is enlarged: larger tiles are no quicker."""
TILE_LEAST: Final = 32
FREE_SHARE: Final = 0.5
ENLARGED: Final = "enlarged.png"
Tiles = Generator[tuple[int, int], None, Image.Image]
"""They yield how many tiles are done, and of how many, and return the picture at the end."""

BASES: Final[Mapping[Base, Image.Resampling]] = {"nearest": Image.Resampling.NEAREST, "lanczos": Image.Resampling.LANCZOS}


def load_enlarger(path: Path) -> tuple[Net, Enlarger]:
    """Load in float32, which every device computes rightly; raise a Trouble for a file that is no enlarger."""
    facts = read_enlarger(path)
    if isinstance(facts, Swin2sr):
        from app.engine.pictures.families.swin2sr_file import Swin2srNet  # it brings transformers

        return Swin2srNet(facts).eval(), facts
    tensors = unwrap(load_file(path))
    net: Net
    if isinstance(facts, enlargers.Compact):
        net = Compact(facts.scale, facts.features, facts.convolutions, facts.base)
        net.load_state_dict({name: each.float() for name, each in tensors.items()})
    else:
        net = Rrdb(facts.features, facts.growth, facts.blocks, facts.doublings, facts.fold)
        net.load_state_dict({name: tensors[file].float() for name, file in facts.names.items()})
    return net.eval(), facts


class Enlargers:
    """The enlarger that was used last stays loaded: a compact one has a few hundred kilobytes, one of ESRGAN 67 MB, Swin2SR 48 MB."""

    def __init__(self) -> None:
        self._stamp: object = None
        self._overflowed: object = None
        """The one of this stamp is computed in float32: float16 was too small for its numbers."""
        self._loaded: tuple[Net, Enlarger] | None = None

    def enlarge(self, picture: Image.Image, size: tuple[int, int], name: str, device: Any) -> Image.Image:
        """Enlarge by the network that a request names; without one by a formula."""
        return _run_through(self.enlarge_in_tiles(picture, size, name, device))

    def enlarge_in_tiles(self, picture: Image.Image, size: tuple[int, int], name: str, device: Any, dtype: Dtype = "float32") -> Tiles:
        """`dtype`: what the plan computes in. Swin2SR takes float16 where that is it: bfloat16 tells apart fewer lights than a picture has, and the
        other networks are quick enough in float32."""
        if size == picture.size:
            return picture
        if not name:
            return picture.resize(size, Image.Resampling.LANCZOS)
        path = locate_enlarger(name)
        stamp = name, dtype, *_stamp_files(path)
        if self._loaded is None or self._stamp != stamp:
            self._loaded, self._stamp = load_enlarger(path), stamp
        net, facts = self._loaded
        on_processor = torch.device(device).type == "cpu"  # where convolutions take half the time in this order
        order = torch.channels_last if on_processor else torch.contiguous_format
        net.to(device, memory_format=order)  # type: ignore[call-overload]
        halved = isinstance(facts, Swin2sr) and dtype == "float16" and not on_processor and self._overflowed != stamp
        if halved:
            net.half()
        try:
            return (yield from _enlarge_in_tiles(picture, size, net, facts.tiling, choose_tile(facts, read().free_bytes)))
        except NumbersBroke:
            if not halved:
                raise
        self._loaded, self._overflowed = None, stamp  # loaded anew, as its weights are rounded by now
        return (yield from self.enlarge_in_tiles(picture, size, name, device, dtype))


def _stamp_files(path: Path) -> list[tuple[str, int, int]]:
    """Tell a file, or those that a folder's network is read from, by sizes and times."""
    files = [path / CONFIG, *sorted(path.glob(f"*{enlargers.ENDING}"))] if path.is_dir() else [path]
    return [(each.name, (found := each.stat()).st_size, found.st_mtime_ns) for each in files if is_file(each)]


def choose_tile(facts: Enlarger, free_bytes: int) -> int:
    """Return how large tiles may be, so that one takes no more than its share of the memory that is free now."""
    tile = TILE
    while tile > TILE_LEAST and facts.count_bytes(*[tile + 2 * (facts.tiling.reach + facts.tiling.soft)] * 2) > FREE_SHARE * free_bytes:
        tile //= 2
    return tile


def run(task: Enlarge, device: str, control: Control, job: Path, dtype: Dtype = "float32") -> Iterator[Event]:
    """Enlarge a finished picture, tile by tile; the last event is Finished or Stopped."""
    began_s, picture = time.monotonic(), open_image(task.picture)
    tiles = Enlargers().enlarge_in_tiles(picture, find_larger(picture.size, task.times), task.enlarger, device, dtype)
    while True:
        if control.stopped:
            yield Stopped((), time.monotonic() - began_s)
            return
        try:
            done, total = next(tiles)
        except StopIteration as end:
            picture = end.value
            break
        elapsed_s = time.monotonic() - began_s
        yield Step(done, total, done / max(elapsed_s, 1e-9), "tiles", elapsed_s / done * (total - done), read())
    picture_settings.write_enlarged(picture, job / ENLARGED, Path(task.picture), task.times, task.enlarger)
    yield Finished((str(job / ENLARGED),), time.monotonic() - began_s, 0.0, "tiles", read().highest_bytes)


def enlarge(picture: Image.Image, times: float, net: Net, tiling: Tiling, tile: int = TILE) -> Image.Image:
    """Make a picture `times` as large: the network as often as it takes, then down to the size that was asked for."""
    return _run_through(_enlarge_in_tiles(picture, find_larger(picture.size, times), net, tiling, tile))


def _run_through(tiles: Tiles) -> Image.Image:
    while True:
        try:
            next(tiles)
        except StopIteration as end:
            picture: Image.Image = end.value
            return picture


def _enlarge_in_tiles(picture: Image.Image, size: tuple[int, int], net: Net, tiling: Tiling, tile: int) -> Tiles:
    sizes = [picture.size]
    while len(sizes) == 1 or (net.scale > 1 and sizes[-1][0] < size[0]):
        sizes.append((sizes[-1][0] * net.scale, sizes[-1][1] * net.scale))
    counts = [math.prod(-(-side // tile) for side in each) for each in sizes[:-1]]
    for place in range(len(counts)):
        picture = yield from _enlarge_once(picture, net, tiling, tile, sum(counts[:place]), sum(counts))
    return picture if picture.size == size else picture.resize(size, Image.Resampling.LANCZOS)


def _enlarge_once(picture: Image.Image, net: Net, tiling: Tiling, tile: int, done: int, total: int) -> Tiles:
    small, scale = np.asarray(picture.convert("RGB")), net.scale
    high, wide = small.shape[:2]
    shape = wide * scale, high * scale
    base = BASES[net.base] if isinstance(net, Compact) else None
    large = np.array(Image.new("RGB", shape) if base is None else picture.convert("RGB").resize(shape, base))
    reach, soft, cell = tiling
    for top, bottom in _cut(high, tile, cell):
        for left, right in _cut(wide, tile, cell):
            # what is kept of a tile overlaps with what is kept of its neighbours
            upper, first, lower, last = max(0, top - soft), max(0, left - soft), min(high, bottom + soft), min(wide, right + soft)
            above, before = max(0, upper - reach), max(0, first - reach)
            made = _compute(net, small[above : lower + reach, before : last + reach])
            inner = made[(upper - above) * scale :, (first - before) * scale :][: (lower - upper) * scale, : (last - first) * scale]
            place = large[upper * scale : lower * scale, first * scale : last * scale]
            if soft:
                share = (
                    _fade(len(inner), 2 * soft * scale if top else 0)[:, None, None]
                    * _fade(inner.shape[1], 2 * soft * scale if left else 0)[:, None]
                )
                inner = place + (inner - place) * share
            elif base is not None:
                inner = place + inner
            place[:] = np.clip(np.rint(inner), 0, 255)
            done += 1
            yield done, total
    return Image.fromarray(large)


def _fade(length: int, over: int) -> NDArray[np.float32]:
    """Return how much of a tile counts along a side: from none to all over so many pixels, where another one was before it."""
    found = np.ones(length, np.float32)
    found[:over] = (np.arange(min(over, length), dtype=np.float32) + 1) / (over + 1)
    return found


def _cut(side: int, tile: int, cell: int) -> Iterator[tuple[int, int]]:
    """Cut a side into tiles of about the same length."""
    count = -(-side // tile)
    borders = [place * side // count // cell * cell for place in range(count)]
    yield from zip(borders, (*borders[1:], side), strict=True)


@torch.no_grad()
def _compute(net: Net, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the tile's pixels, or of a compact network what is to be added to those of its base."""
    device, dtype = (first := next(net.parameters())).device, first.dtype
    small = torch.from_numpy(np.array(pixels)).to(device).permute(2, 0, 1)[None].float() / 255
    made = net(small.to(dtype))[0].float()
    if not bool(torch.isfinite(made).all()):
        raise NumbersBroke(0)
    found: NDArray[np.float32] = made.mul_(255).permute(1, 2, 0).cpu().numpy()
    return found
