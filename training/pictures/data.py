"""Write what is learned from once, in memory-mapped files: sketches, and latents of the drawings. Captions are said anew at each use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.pictures.autoencoder import as_input, latents_of
from training.pictures.draw import draw
from training.pictures.scenes import scene
from training.pictures.sketch import CELLS, USED, sketch

SIZE = 128
FIRST_SEED, FIRST_LARGE_SEED = 0, 3_000_000


def _write(path: Path, count: int, shape: tuple[int, ...], kind: type, make: Callable[[int], NDArray[Any]]) -> Iterator[str]:
    """Fill a file with make(i), unless it exists."""
    unfinished = path.with_suffix(".part.npy")
    if path.exists():
        return
    rows = np.lib.format.open_memmap(unfinished, "w+", kind, (count, *shape))
    for i in range(count):
        rows[i] = make(i)
        if i % 2000 == 1999 or i == count - 1:
            yield f"{path.stem} {i + 1}/{count}"
    rows.flush()
    unfinished.replace(path)


def _sketch_of(first: int, i: int) -> NDArray[np.float32]:
    return sketch(scene(first + i))


def _latents_of(first: int, i: int) -> NDArray[np.float32]:
    found: NDArray[np.float32] = latents_of(as_input(draw(scene(first + i), SIZE)[None]))[0].numpy()
    return found


def _drawing(first: int, size: int, i: int) -> NDArray[np.uint8]:
    return draw(scene(first + i), size)


def write_sketches(work: Path, count: int) -> Iterator[str]:
    yield from _write(work / "sketches.npy", count, (CELLS * CELLS, USED), np.float16, partial(_sketch_of, FIRST_SEED))


def write_latents(work: Path, count: int) -> Iterator[str]:
    yield from _write(work / "latents.npy", count, (4, 32, 32), np.float16, partial(_latents_of, FIRST_SEED))


def write_large(work: Path, count: int) -> Iterator[str]:
    """Draw pictures of 256 px, from which the autoencoder learns."""
    yield from _write(work / "large.npy", count, (2 * SIZE, 2 * SIZE, 3), np.uint8, partial(_drawing, FIRST_LARGE_SEED, 2 * SIZE))


WRITERS = {"sketches": write_sketches, "latents": write_latents, "large": write_large}
