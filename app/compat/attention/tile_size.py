"""Choose how much own arithmetic computes at once: a tile of heads, queries and keys, within the memory that is free."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch

from app.compat.machine.free_memory import read_available_bytes

COPIES = 3
"""At the peak so many copies are alive: scores, softmax and the masked scores."""
OWN_BYTES = 8
"""Own arithmetic takes so many bytes per score, with its weight if that cannot be written in place."""
WIDENED_BYTES = 4 << 20
"""So many bytes of keys and values are in float32 at once (2 x 16 heads, 1024 keys, width 128: 1.7 ms; with 16 MiB 2.4, with all 3.7)."""
ENOUGH_ROWS = 64
"""With fewer queries K and V are read too often: take fewer heads at once instead."""
FEWEST_ROWS = 8
"""If not even these fit, split the keys."""
FREE_FOR_S = 1.0


class Tile(NamedTuple):
    """How much own arithmetic computes at once."""

    heads: int
    """Key/value heads are counted over the whole batch."""
    rows: int
    """So many queries of each head are computed at once."""
    cols: int | None
    """So many keys are computed at once; None takes all."""


class FreeMemory:
    """Free memory of a device, read at most once a second: a generation makes hundreds of calls in that time."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[float, int]] = {}

    def __call__(self, device: torch.device) -> int:
        now = time.monotonic()
        read_s, free = self._read.get(device.type, (0.0, 0))
        if not read_s or now - read_s > FREE_FOR_S:
            free = ask_free(device)
            self._read[device.type] = now, free
        return free


def ask_free(device: torch.device) -> int:
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + reserved
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.driver_allocated_memory())
    return read_available_bytes()


def tile_size(scores: int, heads: int, groups: int, *, queries: int, keys: int, at_once: int, wanted: int | None = None) -> Tile:
    """Choose the tile of at most `scores` numbers. Reduce heads first, down to as many as the processor works on
    `at_once`, then queries; split keys only if a handful of rows of one head is too large. `wanted`: queries set by
    hand."""
    fit = scores // (groups * keys)
    fewest = min(queries, FEWEST_ROWS) if wanted is None else min(queries, wanted)
    if fit < fewest:
        return Tile(1, fewest, max(1, scores // (groups * fewest)))
    least = max(1, min(heads, at_once, fit // min(queries, ENOUGH_ROWS)))
    rows = even_rows(min(queries, fit // least), queries) if wanted is None else min(queries, wanted)
    return Tile(min(heads, fit // rows), rows, None)


def even_rows(rows: int, queries: int) -> int:
    """Split queries into chunks of about equal size."""
    return -(-queries // -(-queries // rows))
