"""Exact attention in little memory: how large a tile may be, and Hearth's own arithmetic over tiles of queries and keys."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection

import psutil
import torch
from torch import Tensor
from torch.autograd import forward_ad

from app.compat.remedies import by_group, dead_rows, fold, split_heads, visible

GIB = 1 << 30
COPIES = 3
"""Scores, their softmax and the masked scores may live at the same time."""
WORKSPACE_BYTES = {"cpu": 16 << 20}
"""Where tiles are fastest: on a processor they should stay in its caches (in bfloat16 14.4 ms at 16 MiB, 20.8 at 48)."""
WORKSPACE_ELSEWHERE_BYTES = 64 << 20
FEWEST_ROWS = 32
"""Narrower tiles than this read K and V too often: keys are cut instead."""
FREE_FOR_S = 1.0
FEW_ROWS = 8
MANY_NUMBERS = 1 << 20


def rows_that_fit(free_bytes: int, batch: int, heads: int, keys: int, item_bytes: int) -> int:
    """The automatic chunk: a quarter of what is free, a GiB at most, shared by the copies of the scores."""
    return max(1, int(min(free_bytes / 4, GIB) // max(1, batch * heads * keys * item_bytes * COPIES)))


class Free:
    """Free memory of a device, asked at most once a second: a generation makes hundreds of calls in that time."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, int]] = {}

    def __call__(self, device: torch.device) -> int:
        now = time.monotonic()
        asked, free = self._seen.get(device.type, (0.0, 0))
        if not asked or now - asked > FREE_FOR_S:
            free = ask_free(device)
            self._seen[device.type] = now, free
        return free


def ask_free(device: torch.device) -> int:
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + reserved
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.driver_allocated_memory())
    return int(psutil.virtual_memory().available)


def workspace_bytes(device: str) -> int:
    return WORKSPACE_BYTES.get(device, WORKSPACE_ELSEWHERE_BYTES)


def tile_size(limit_bytes: int, row_bytes: int, queries: int, keys: int) -> tuple[int, int | None]:
    """Queries and keys at a time within a limit, where a row over all keys takes `row_bytes`; None: all keys at once."""
    rows = max(1, limit_bytes // row_bytes)
    fewest = min(queries, FEWEST_ROWS)
    if rows >= fewest:
        return min(rows, queries), None
    return fewest, max(1, limit_bytes * keys // (row_bytes * fewest))


def even(rows: int, queries: int) -> int:
    """As many chunks, all of about one size."""
    return -(-queries // -(-queries // rows))


Place = Callable[..., Tensor | None]


class Room:
    """Memory for the tiles of one call, taken once: fresh pages for every tile cost time, and the system is slow to take them back."""

    def __init__(self, *tensors: Tensor | None) -> None:
        self._held: dict[str, Tensor] | None = None if followed(*tensors) else {}

    def __call__(self, name: str, like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor | None:
        """None where gradients are wanted: torch takes fresh memory then."""
        if self._held is None:
            return None
        numel = math.prod(shape)
        if name not in self._held or self._held[name].numel() < numel:
            self._held[name] = like.new_empty(numel, dtype=dtype)
        return self._held[name][:numel].view(shape)


def followed(*tensors: Tensor | None) -> bool:
    """Whether gradients are wanted, of whatever kind."""
    if torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in tensors):
        return True
    return bool(forward_ad._current_level >= 0)


def anywhere(name: str, like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor | None:
    """Where one tile is all, torch finds the room."""
    return None


def own(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float,
    rows: int,
    cols: int | None,
    prescale: bool,
) -> Tensor:
    """Attention by Hearth's own arithmetic, `rows` queries and `cols` keys at a time. Grouped heads share K and V as they lie.

    `prescale`: the scale goes into the queries, because Metal's baddbmm multiplies what it should not read (mps-baddbmm).
    """
    if prescale or not scale:  # baddbmm leaves its result unwritten where alpha and beta are 0 (bfloat16 on a processor)
        query, scale = query * scale, 1.0
    batch, heads, queries, _ = query.shape
    groups, together = heads // key.shape[1], flat(key) and flat(value)
    mask = None if mask is None else split_heads(mask, groups)
    if together and cols is None and rows >= queries:  # one tile: a step of speech, where every microsecond counts
        keys, values, lines = key.flatten(0, 1), value.flatten(0, 1), fold(query, groups).flatten(0, 1)
        told = visible(mask, causal, 0, queries, 0, key.shape[2], query.device)
        shape: tuple[int, ...] = (batch, key.shape[1], groups, queries)
        return whole_rows(lines, keys, values, told, shape, dropout, scale, anywhere).view(batch, heads, queries, -1)
    room = Room(query, key, value, mask)
    out = value.new_empty(batch, queries, heads, value.shape[-1]).transpose(1, 2)
    # K and V whose batch and heads do not merge are taken one by one, not copied.
    for at in range(1 if together else batch):
        part = slice(None) if together else slice(at, at + 1)
        keys, values = key[part].flatten(0, 1), value[part].flatten(0, 1)
        grouped, into = by_group(query[part], groups), by_group(out[part], groups)
        seen = mask if mask is None or mask.shape[0] == 1 else mask[part]
        for start in range(0, queries, rows):
            stop = min(start + rows, queries)
            lines = grouped[..., start:stop, :].reshape(keys.shape[0], -1, query.shape[-1])
            shape = (*grouped.shape[:3], stop - start)
            if cols is None:
                last = min(stop, keys.shape[1]) if causal else keys.shape[1]
                told = visible(seen, causal, start, stop, 0, last, query.device)
                block = whole_rows(lines, keys[:, :last], values[:, :last], told, shape, dropout, scale, room)
            else:
                block = running(lines, keys, values, seen, shape, dropout, causal, scale, start, cols, room)
            into[..., start:stop, :].copy_(block.view(*shape, -1))
    return out


def flat(tensor: Tensor) -> bool:
    """Whether batch and heads merge without a copy."""
    return tensor.shape[0] == 1 or tensor.shape[1] == 1 or tensor.stride(0) == tensor.stride(1) * tensor.shape[1]


def scores(
    lines: Tensor, keys: Tensor, mask: Tensor | None, shape: tuple[int, ...], scale: float, room: Place
) -> Tensor:
    unused, place = lines.new_empty(1), room("scores", lines, *lines.shape[:2], keys.shape[1])
    if scale == 1.0:
        found = torch.bmm(lines, keys.transpose(1, 2), out=place)
    elif is_few(lines.shape[1], keys):
        # Long keys are read once and in order when they stand on the left: 1.3 ms against 2.1 at Dia's decode, 1.2 against 1.3 in bfloat16.
        found = torch.baddbmm(unused, keys, lines.transpose(1, 2), beta=0, alpha=scale).transpose(1, 2)
    else:
        found = torch.baddbmm(unused, lines, keys.transpose(1, 2), beta=0, alpha=scale, out=place)
    if mask is None:
        return found
    wide = found.view(*shape, -1) if found.is_contiguous() else found.contiguous().view(*shape, -1)
    wide = wide.masked_fill_(~mask, -torch.inf) if mask.dtype == torch.bool else wide.add_(mask)
    return wide.view(found.shape)


def is_few(rows: int, keys: Tensor) -> bool:
    """Few queries over keys that no cache holds, on a processor."""
    return rows <= FEW_ROWS and keys.numel() >= MANY_NUMBERS and keys.device.type == "cpu"


def whole_rows(
    lines: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    shape: tuple[int, ...],
    dropout: float,
    scale: float,
    room: Place,
) -> Tensor:
    dead = None if mask is None else dead_rows(mask)
    if mask is not None and dead is not None and followed(lines, keys, values, mask):
        mask = mask | dead if mask.dtype == torch.bool else mask.masked_fill(dead, 0)  # 0 / 0 would spoil all gradients
    found = scores(lines, keys, mask, shape, scale, room)
    weights = torch.softmax(found, -1, out=room("weights", found, *found.shape))
    if dropout:
        weights = torch.nn.functional.dropout(weights, dropout)
    block = torch.bmm(weights, values)
    if dead is None:
        return block
    return block.view(*shape, -1).masked_fill_(dead, 0).view(block.shape)


def is_step(query: Tensor, key: Tensor, value: Tensor, dtypes: Collection[torch.dtype]) -> bool:
    """One query over grouped keys that no cache holds, all as a key/value cache keeps them: Dia's step."""
    asked, held = query.shape, key.shape
    return (
        len(asked) == 4
        and asked[2] == 1
        and held == value.shape
        and asked[0] == held[0]
        and asked[3] == held[3]
        and held[1] < asked[1] <= held[1] * FEW_ROWS
        and not asked[1] % held[1]
        and query.dtype == key.dtype == value.dtype
        and query.dtype in dtypes
        and key.numel() >= MANY_NUMBERS
        and key.device.type == "cpu"
        and key.is_contiguous()
        and value.is_contiguous()
    )


def step(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
    """What own() comes to there, with nothing in between: beside cold caches Python itself took a tenth of the time."""
    batch, heads, length, width = key.shape
    lines = query.reshape(batch * heads, -1, width)
    keys, values = key.view(-1, length, width), value.view(-1, length, width)
    alpha = width**-0.5 if scale is None else scale
    found = torch.baddbmm(lines.new_empty(1), keys, lines.transpose(1, 2), beta=0, alpha=alpha)
    return torch.bmm(torch.softmax(found.transpose(1, 2), -1), values).view(query.shape)


def written(tensor: Tensor, place: Tensor | None, dtype: torch.dtype) -> Tensor:
    if tensor.dtype == dtype:
        return tensor
    return tensor.to(dtype) if place is None else place.copy_(tensor)


def running(
    lines: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    shape: tuple[int, ...],
    dropout: float,
    causal: bool,
    scale: float,
    start: int,
    cols: int,
    room: Place,
) -> Tensor:
    """Keys in chunks with a running maximum (Rabe & Staats, arXiv 2112.05682); a row that sees nothing gives zeros."""
    exact = torch.float64 if lines.dtype == torch.float64 else torch.float32
    highest = lines.new_full((*lines.shape[:2], 1), -torch.inf, dtype=exact)
    total, sums = torch.zeros_like(highest), lines.new_zeros((*lines.shape[:2], values.shape[-1]), dtype=exact)
    stop = start + shape[-1]
    for first in range(0, min(keys.shape[1], stop) if causal else keys.shape[1], cols):
        last = min(first + cols, keys.shape[1])
        told = visible(mask, causal, start, stop, first, last, lines.device)
        rough = scores(lines, keys[:, first:last], told, shape, scale, room)
        found = written(rough, room("exact", rough, *rough.shape, dtype=exact), exact)
        higher = torch.maximum(highest, found.detach().amax(-1, keepdim=True))
        base = higher.masked_fill(higher == -torch.inf, 0)
        weights, fade = found.sub_(base).exp_(), torch.exp(highest - base)
        total = total * fade + weights.sum(-1, keepdim=True)
        if dropout:
            weights = torch.nn.functional.dropout(weights, dropout)
        weights = written(weights, room("scores", rough, *rough.shape), values.dtype)
        sums = sums * fade + torch.bmm(weights, values[:, first:last])
        highest = higher
    return (sums / total.masked_fill(total == 0, 1)).to(values.dtype)
