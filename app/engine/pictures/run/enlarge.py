"""Enlarge a picture by a small network, in tiles that overlap as far as the network sees, so that no border shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file

from app.engine.models.enlargers import Base, Enlarger, list_shapes, locate_enlarger, read_enlarger
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.pictures.run.compact import Compact

TILE: Final = 256
"""Pixels a side of what is computed at once, before it is enlarged: larger ones are no quicker."""


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

    def enlarge(self, picture: Image.Image, times: int, name: str, device: Any) -> Image.Image:
        """Enlarge by the network that a request names; without one by a formula."""
        if times == 1:
            return picture
        if not name:
            return picture.resize((picture.width * times, picture.height * times), Image.Resampling.LANCZOS)
        if self._loaded is None or self._name != name:
            self._name, self._loaded = name, load_enlarger(locate_enlarger(name))
        net, facts = self._loaded
        on_processor = torch.device(device).type == "cpu"  # where convolutions take half the time in this order
        order = torch.channels_last if on_processor else torch.contiguous_format
        return enlarge(picture, times, net.to(device, memory_format=order), facts.reach)  # type: ignore[call-overload]


@torch.no_grad()
def enlarge(picture: Image.Image, times: int, net: Compact, reach: int, tile: int = TILE) -> Image.Image:
    """Make a picture `times` as large: the network as often as it takes, then down to the size that was asked for."""
    width, height = picture.width * times, picture.height * times
    while net.scale > 1 and picture.width < width:
        picture = _enlarge_once(picture, net, reach, tile)
    return picture if picture.size == (width, height) else picture.resize((width, height), Image.Resampling.LANCZOS)


def _enlarge_once(picture: Image.Image, net: Compact, reach: int, tile: int) -> Image.Image:
    small, scale = np.asarray(picture.convert("RGB")), net.scale
    large = np.array(picture.convert("RGB").resize((picture.width * scale, picture.height * scale), BASES[net.base]))
    for top, bottom in _cut(small.shape[0], tile):
        for left, right in _cut(small.shape[1], tile):
            above, before = max(0, top - reach), max(0, left - reach)
            made = _compute(net, small[above : bottom + reach, before : right + reach])
            inner = made[(top - above) * scale :, (left - before) * scale :][: (bottom - top) * scale, : (right - left) * scale]
            place = large[top * scale : bottom * scale, left * scale : right * scale]
            place[:] = np.clip(np.rint(place + inner), 0, 255)
    return Image.fromarray(large)


def _cut(side: int, tile: int) -> Iterator[tuple[int, int]]:
    """Cut a side into tiles of about the same length."""
    count = -(-side // tile)
    for place in range(count):
        yield place * side // count, (place + 1) * side // count


def _compute(net: Compact, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return what is to be added to the base's pixels."""
    device = next(net.parameters()).device
    made = net(torch.from_numpy(np.array(pixels)).to(device).permute(2, 0, 1)[None].float() / 255)[0]
    if not bool(torch.isfinite(made).all()):
        raise NumbersBroke(0)
    found: NDArray[np.float32] = made.mul_(255).permute(1, 2, 0).cpu().numpy()
    return found
