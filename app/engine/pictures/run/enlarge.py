"""Enlarge a picture by a small network, in tiles that overlap as far as the network sees, so that no border shows."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file

from app.compat.machine.meter import read
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Step, Stopped
from app.engine.jobs.tasks import Enlarge
from app.engine.models.enlargers import Base, Enlarger, list_shapes, locate_enlarger, read_enlarger
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.models.painted_tiles import find_larger
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run.compact import Compact
from app.engine.pictures.run.input_images import open_image

TILE: Final = 256
"""What is computed at once has so many pixels a side, before it is enlarged: larger tiles are no quicker."""
ENLARGED: Final = "enlarged.png"
Tiles = Generator[tuple[int, int], None, Image.Image]
"""They yield how many tiles are done, and of how many, and return the picture at the end."""

BASES: Final[Mapping[Base, Image.Resampling]] = {"nearest": Image.Resampling.NEAREST, "lanczos": Image.Resampling.LANCZOS}


def load_enlarger(path: Path) -> tuple[Compact, Enlarger]:
    """Load in float32, which every device computes rightly; raise a Trouble for a file that is no enlarger."""
    facts = read_enlarger(path)
    shape = facts.scale, facts.features, facts.convolutions
    tensors = load_file(path)
    net = Compact(*shape, facts.base)
    net.load_state_dict({name: tensors[name].float() for name in list_shapes(*shape)})
    return net.eval(), facts


class Enlargers:
    """The enlarger that was used last stays loaded: it has a few hundred kilobytes, seldom a few megabytes."""

    def __init__(self) -> None:
        self._name = ""
        self._loaded: tuple[Compact, Enlarger] | None = None

    def enlarge(self, picture: Image.Image, size: tuple[int, int], name: str, device: Any) -> Image.Image:
        """Enlarge by the network that a request names; without one by a formula."""
        return _run_through(self.enlarge_in_tiles(picture, size, name, device))

    def enlarge_in_tiles(self, picture: Image.Image, size: tuple[int, int], name: str, device: Any) -> Tiles:
        if size == picture.size:
            return picture
        if not name:
            return picture.resize(size, Image.Resampling.LANCZOS)
        if self._loaded is None or self._name != name:
            self._name, self._loaded = name, load_enlarger(locate_enlarger(name))
        net, facts = self._loaded
        on_processor = torch.device(device).type == "cpu"  # where convolutions take half the time in this order
        order = torch.channels_last if on_processor else torch.contiguous_format
        net.to(device, memory_format=order)  # type: ignore[call-overload]
        return (yield from _enlarge_in_tiles(picture, size, net, facts.reach, TILE))


def run(task: Enlarge, device: str, control: Control, job: Path) -> Iterator[Event]:
    """Enlarge a finished picture, tile by tile; the last event is Finished or Stopped."""
    began_s, picture = time.monotonic(), open_image(task.picture)
    tiles = Enlargers().enlarge_in_tiles(picture, find_larger(picture.size, task.times), task.enlarger, device)
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


def enlarge(picture: Image.Image, times: float, net: Compact, reach: int, tile: int = TILE) -> Image.Image:
    """Make a picture `times` as large: the network as often as it takes, then down to the size that was asked for."""
    return _run_through(_enlarge_in_tiles(picture, find_larger(picture.size, times), net, reach, tile))


def _run_through(tiles: Tiles) -> Image.Image:
    while True:
        try:
            next(tiles)
        except StopIteration as end:
            picture: Image.Image = end.value
            return picture


def _enlarge_in_tiles(picture: Image.Image, size: tuple[int, int], net: Compact, reach: int, tile: int) -> Tiles:
    sizes = [picture.size]
    while net.scale > 1 and sizes[-1][0] < size[0]:
        sizes.append((sizes[-1][0] * net.scale, sizes[-1][1] * net.scale))
    counts = [math.prod(-(-side // tile) for side in each) for each in sizes[:-1]]
    for place in range(len(counts)):
        picture = yield from _enlarge_once(picture, net, reach, tile, sum(counts[:place]), sum(counts))
    return picture if picture.size == size else picture.resize(size, Image.Resampling.LANCZOS)


def _enlarge_once(picture: Image.Image, net: Compact, reach: int, tile: int, done: int, total: int) -> Tiles:
    small, scale = np.asarray(picture.convert("RGB")), net.scale
    large = np.array(picture.convert("RGB").resize((picture.width * scale, picture.height * scale), BASES[net.base]))
    for top, bottom in _cut(small.shape[0], tile):
        for left, right in _cut(small.shape[1], tile):
            above, before = max(0, top - reach), max(0, left - reach)
            made = _compute(net, small[above : bottom + reach, before : right + reach])
            inner = made[(top - above) * scale :, (left - before) * scale :][: (bottom - top) * scale, : (right - left) * scale]
            place = large[top * scale : bottom * scale, left * scale : right * scale]
            place[:] = np.clip(np.rint(place + inner), 0, 255)
            done += 1
            yield done, total
    return Image.fromarray(large)


def _cut(side: int, tile: int) -> Iterator[tuple[int, int]]:
    """Cut a side into tiles of about the same length."""
    count = -(-side // tile)
    for place in range(count):
        yield place * side // count, (place + 1) * side // count


@torch.no_grad()
def _compute(net: Compact, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what is to be added to the base's pixels."""
    device = next(net.parameters()).device
    made = net(torch.from_numpy(np.array(pixels)).to(device).permute(2, 0, 1)[None].float() / 255)[0]
    if not bool(torch.isfinite(made).all()):
        raise NumbersBroke(0)
    found: NDArray[np.float32] = made.mul_(255).permute(1, 2, 0).cpu().numpy()
    return found
