"""Compute exact attention in little memory, in tiles of queries and keys."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from app.compat.attention.call import AttentionCall
from app.compat.attention.prepare import by_group, fully_masked_rows, split_heads, visible_mask
from app.compat.attention.tile_size import Tile
from app.compat.planning.quickest_way import FEW_ROWS, MANY_NUMBERS, is_reading_bound


class Scratch:
    """Buffers reused by all tiles of a call; allocating per tile is slower."""

    def __init__(self, *tensors: Tensor | None) -> None:
        self._held: dict[str, Tensor] | None = None if wants_gradients(*tensors) else {}

    @property
    def reused(self) -> bool:
        return self._held is not None

    def __call__(self, name: str, like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor | None:
        """Return the buffer; None if gradients are wanted, because torch allocates new memory then."""
        if self._held is None:
            return None
        numel = math.prod(shape)
        if name not in self._held or self._held[name].numel() < numel:
            self._held[name] = like.new_empty(numel, dtype=dtype)
        return self._held[name][:numel].view(shape)


def wants_gradients(*tensors: Tensor | None) -> bool:
    """Whether gradients are wanted, forward or backward."""
    if torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in tensors):
        return True
    return bool(forward_ad._current_level >= 0)


class Block(NamedTuple):
    """Operands of one tile, with batch and heads merged and the queries of a group together."""

    lines: Tensor
    """The lines are the queries, widened."""
    keys: Tensor
    values: Tensor
    mask: Tensor | None
    """It masks all queries, in five dimensions: those of `shape` and the keys."""
    shape: tuple[int, int, int, int]
    """It counts batch, key/value heads, groups and queries."""
    start: int
    """The first query of this tile has this index."""
    causal: bool
    scale: float
    dropout: float
    contiguous: bool
    """Copy keys and values that lie apart."""

    @property
    def stop(self) -> int:
        return self.start + self.shape[-1]

    @property
    def length(self) -> int:
        """Number of keys that its queries may see."""
        return min(self.stop, self.keys.shape[1]) if self.causal else self.keys.shape[1]

    def mask_over(self, first: int, last: int) -> Tensor | None:
        return visible_mask(self.mask, self.causal, start=self.start, stop=self.stop, first=first, last=last, device=self.lines.device)


def attend_in_tiles(call: AttentionCall, tile: Tile, prescale: bool, contiguous: bool = False) -> Tensor:
    """Compute attention tile by tile with Hearth's own arithmetic. Grouped heads share K and V without copies. Widen
    half precision per tile: rounded scores gave 2 to 20 times the error of torch's kernels, rounded weights alone 2
    times. `prescale`: scale the queries first, because Metal's baddbmm multiplies memory it should not read
    (mps-baddbmm). `contiguous`: copy keys and values that lie apart, piece by piece."""
    query, key, value, *_ = call
    batch, heads, queries, width = query.shape
    few, dtype, factor = key.shape[1], widened_dtype(query.dtype), call.factor
    groups, scratch = heads // few, Scratch(query, key, value, call.mask)
    mask = None if call.mask is None else split_heads(call.mask, groups)
    # If batch and heads of K and V do not merge, take them one by one rather than copy.
    together = tile.heads >= batch * few and merges_freely(key) and merges_freely(value)
    out = value.new_empty(batch, queries, heads, value.shape[-1]).transpose(1, 2)
    for part, some in head_slices(1 if together else batch, few, tile.heads):
        part = slice(None) if together else part
        keys, values = key[part, some].flatten(0, 1), value[part, some].flatten(0, 1)
        if tile.cols is None:
            keys, values = widen("keys", keys, dtype, scratch, contiguous), widen("values", values, dtype, scratch, contiguous)
        grouped, result = by_group(query, groups)[part, some], by_group(out, groups)[part, some]
        visible = None if mask is None else slice_mask(mask, part, some)
        for start in range(0, queries, tile.rows):
            stop = min(start + tile.rows, queries)
            lines = widen("lines", grouped[..., start:stop, :].reshape(keys.shape[0], -1, width), dtype, scratch)
            # baddbmm leaves its result unwritten if alpha and beta are 0 (bfloat16 on a CPU).
            scale, lines = (1.0, lines * factor) if prescale or not factor else (factor, lines)
            shape = (grouped.shape[0], grouped.shape[1], groups, stop - start)
            block = Block(lines, keys, values, visible, shape, start, call.causal, scale, call.dropout, contiguous)
            found = whole_rows(block, scratch) if tile.cols is None else running_rows(block, tile.cols, scratch)
            result[:, :, :, start:stop].copy_(found.view(*shape, -1))
    return out


def widened_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of scores and sums: at least float32."""
    return torch.promote_types(dtype, torch.float32)


def head_slices(batch: int, heads: int, at_once: int) -> Iterator[tuple[slice, slice]]:
    for at in range(batch):
        for first in range(0, heads, at_once):
            yield slice(at, at + 1), slice(first, first + at_once)


def slice_mask(mask: Tensor, part: slice, some: slice) -> Tensor:
    """Slice a mask by batch and heads where it has more than one of them."""
    mask = mask[part] if mask.shape[0] > 1 else mask
    return mask[:, some] if mask.shape[1] > 1 else mask


def merges_freely(tensor: Tensor) -> bool:
    """Return whether batch and heads merge without a copy."""
    return tensor.shape[0] == 1 or tensor.shape[1] == 1 or tensor.stride(0) == tensor.stride(1) * tensor.shape[1]


def compute_scores(block: Block, keys: Tensor, mask: Tensor | None, scratch: Scratch) -> Tensor:
    """Compute the scores of all of the block's queries over some of its keys, masked."""
    lines, scale = block.lines, block.scale
    unused, out = lines.new_empty(1), scratch("scores", lines, *lines.shape[:2], keys.shape[1])
    if scale == 1.0:
        found = torch.bmm(lines, keys.transpose(1, 2), out=out)
    elif keys.device.type == "cpu" and is_reading_bound(lines.shape[1], keys.numel()):
        # Long keys as the left operand are read once and in order: 1.3 ms against 2.1 at Dia's decode.
        found = torch.baddbmm(unused, keys, lines.transpose(1, 2), beta=0, alpha=scale).transpose(1, 2)
    else:
        found = torch.baddbmm(unused, lines, keys.transpose(1, 2), beta=0, alpha=scale, out=out)
    if mask is None:
        return found
    wide = found.view(*block.shape, -1) if found.is_contiguous() else found.contiguous().view(*block.shape, -1)
    wide = wide.masked_fill_(~mask, -torch.inf) if mask.dtype == torch.bool else wide.add_(mask)
    return wide.view(found.shape)


def drop(weights: Tensor, dropout: float) -> Tensor:
    return torch.nn.functional.dropout(weights, dropout) if dropout else weights


def whole_rows(block: Block, scratch: Scratch) -> Tensor:
    """Compute attention over all keys at once; a row that sees nothing gives zeros."""
    keys, values = block.keys[:, : block.length], block.values[:, : block.length]
    mask = block.mask_over(0, block.length)
    dead = None if mask is None else fully_masked_rows(mask)
    if mask is not None and dead is not None and wants_gradients(block.lines, keys, values, mask):
        mask = mask | dead if mask.dtype == torch.bool else mask.masked_fill(dead, 0)  # 0 / 0 would make all gradients NaN
    found = compute_scores(block, keys, mask, scratch)
    # On a CPU each row is read before it is written: in place it uses half the cache (375 ms against 467).
    in_place = scratch.reused and found.device.type == "cpu" and found.is_contiguous()
    weights = torch.softmax(found, -1, out=found if in_place else scratch("softmax", found, *found.shape))
    result = torch.bmm(drop(weights, block.dropout), values)
    if dead is None:
        return result
    return result.view(*block.shape, -1).masked_fill_(dead, 0).view(result.shape)


def running_rows(block: Block, cols: int, scratch: Scratch) -> Tensor:
    """Compute over keys in chunks with a running maximum (Rabe & Staats, arXiv 2112.05682); blind rows give zeros."""
    lines, values = block.lines, block.values
    highest = lines.new_full((*lines.shape[:2], 1), -torch.inf)
    total, sums = torch.zeros_like(highest), lines.new_zeros((*lines.shape[:2], values.shape[-1]))
    for first in range(0, block.length, cols):
        last = min(first + cols, block.keys.shape[1])
        some, their = (
            widen(name, each[:, first:last], lines.dtype, scratch, block.contiguous)
            for name, each in (("keys", block.keys), ("values", values))
        )
        found = compute_scores(block, some, block.mask_over(first, last), scratch)
        higher = torch.maximum(highest, found.detach().amax(-1, keepdim=True))
        base = higher.masked_fill(higher == -torch.inf, 0)
        weights, fade = found.sub_(base).exp_(), torch.exp(highest - base)
        total = total * fade + weights.sum(-1, keepdim=True)
        sums = sums * fade + torch.bmm(drop(weights, block.dropout), their)
        highest = higher
    return sums / total.masked_fill(total == 0, 1)


def is_step(query: Tensor, key: Tensor, value: Tensor, dtypes: Collection[torch.dtype]) -> bool:
    """Return whether this is Dia's step: one query over grouped keys too large for a cache, laid out like a K/V
    cache."""
    query_shape, key_shape = query.shape, key.shape
    return (
        len(query_shape) == 4
        and query_shape[2] == 1
        and key_shape == value.shape
        and query_shape[0] == key_shape[0]
        and query_shape[3] == key_shape[3]
        and key_shape[1] < query_shape[1] <= key_shape[1] * FEW_ROWS
        and not query_shape[1] % key_shape[1]
        and query.dtype == key.dtype == value.dtype
        and query.dtype in dtypes
        and key.numel() >= MANY_NUMBERS
        and key.device.type == "cpu"
        and lies_in_rows(key)
        and lies_in_rows(value)
    )


def lies_in_rows(cache: Tensor) -> bool:
    """Return whether each head's rows lie one after another, and heads merge without a copy: also in a longer cache, cut."""
    return cache.stride(3) == 1 and cache.stride(2) == cache.shape[3] and merges_freely(cache)


def attend_step(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
    """Compute what attend_in_tiles would, without its Python overhead, a tenth of the time beside cold caches."""
    batch, heads, _, width = key.shape
    lines = query.reshape(batch * heads, -1, width)
    keys, values = key.flatten(0, 1), value.flatten(0, 1)
    alpha = width**-0.5 if scale is None else scale
    found = torch.baddbmm(lines.new_empty(1), keys, lines.transpose(1, 2), beta=0, alpha=alpha)
    return torch.bmm(torch.softmax(found.transpose(1, 2), -1), values).view(query.shape)


def widen(name: str, tensor: Tensor, dtype: torch.dtype, scratch: Scratch, contiguous: bool = False) -> Tensor:
    """Convert to the dtype of scores, in reused memory. `contiguous`: copy what lies apart in memory too."""
    if tensor.dtype == dtype and (tensor.is_contiguous() or not contiguous):
        return tensor
    out = scratch(name, tensor, *tensor.shape, dtype=dtype)
    if out is not None:
        return out.copy_(tensor)
    return tensor.to(dtype).contiguous() if contiguous else tensor.to(dtype)
