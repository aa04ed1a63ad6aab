"""Write the training pictures once, as bytes in a memory-mapped file; captions are generated at each use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assets.starter.training.painter.draw import draw
from assets.starter.training.painter.scenes import scene

FIRST_SEED = {128: 0, 256: 1_000_000}


def write_pictures(folder: Path, size: int, count: int) -> Iterator[str]:
    """Draw the scenes first_seed, first_seed + 1 ..., unless the file exists."""
    done, unfinished = folder / f"pictures-{size}.npy", folder / f"pictures-{size}.part.npy"
    if done.exists():
        return
    pictures = np.lib.format.open_memmap(unfinished, "w+", np.uint8, (count, size, size, 3))
    for i in range(count):
        pictures[i] = draw(scene(FIRST_SEED[size] + i), size)
        if i % 1000 == 999 or i == count - 1:
            yield f"drawn {i + 1}/{count} of {size} px"
    pictures.flush()
    unfinished.replace(done)


def read_pictures(folder: Path, size: int) -> NDArray[np.uint8]:
    pictures: NDArray[np.uint8] = np.load(folder / f"pictures-{size}.npy", mmap_mode="r")
    return pictures
