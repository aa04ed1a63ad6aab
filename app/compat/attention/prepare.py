"""Prepare tensors: make 4D, align dtypes, lay out, fold heads, cut masks. Pure; copies K and V only if needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from app.base.sentence import say
from app.base.trouble import Trouble


class WrongShape(Trouble, RuntimeError):
    """Shapes that cannot be used: a sentence for people, and the error type that torch raises for programs."""


class WrongDims(WrongShape, IndexError):
    """Missing dimensions: torch raises IndexError for a mask, RuntimeError for the rest."""


Layout = Literal["separate", "fused by head", "fused by tensor", "unknown"]


def make_4d(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
    """Broadcast as torch does to (batch, heads, length, width), keeping fewer key heads; also return the original
    batch."""
    for name, each in (("query", query), ("key", key), ("value", value)):
        if each.dim() < 2:
            raise WrongShape(
                say(
                    "attention.flat",
                    "Attention got a {dims}-dimensional {name}. Give it at least 2: length and width.",
                    name=name,
                    dims=each.dim(),
                )
            )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise WrongShape(
            say(
                "attention.sizes",
                "Attention got query {query}, key {key} and value {value}. Give query and key the same width, and key and value the same length.",
                **word_each(shape_words, query, key, value),
            )
        )
    if not (query.is_floating_point() and key.is_floating_point() and value.is_floating_point()):
        raise WrongShape(
            say(
                "attention.whole-numbers",
                "Attention got tensors of {query}, {key} and {value}. Give it floating-point ones.",
                **word_each(dtype_words, query, key, value),
            )
        )
    query_shape, key_shape = query.shape, key.shape
    if (
        len(query_shape) == len(key_shape) == 4
        and key_shape[:3] == value.shape[:3]
        and query_shape[0] == key_shape[0]
        and divides(key_shape[1], query_shape[1])
    ):
        return query, key, value, query_shape[:1]
    dims = max(query.dim(), key.dim(), value.dim(), 4)
    query, key, value = (each[(None,) * (dims - each.dim())] for each in (query, key, value))
    most = max(key.shape[-3], value.shape[-3])
    if query.shape[-3] == 1 < most:
        query = query.expand(*query.shape[:-3], most, *query.shape[-2:])
    for each in (key, value):
        if not divides(each.shape[-3], query.shape[-3]):
            raise WrongShape(
                say(
                    "attention.heads",
                    "Attention got {heads} query {heads:head|heads} for {few} key/value {few:head|heads}. Make the first a multiple of the second.",
                    heads=query.shape[-3],
                    few=each.shape[-3],
                )
            )
    if key.shape[-3] != value.shape[-3]:  # rare: broadcast both to one head count
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    try:
        lead: tuple[int, ...] = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3])  # type: ignore[no-untyped-call]
    except RuntimeError:
        raise WrongShape(
            say(
                "attention.batch",
                "Attention got query {query}, key {key} and value {value}, whose batch sizes do not broadcast. Give them the same batch size.",
                **word_each(shape_words, query, key, value),
            )
        ) from None
    query, key, value = (each.expand(*lead, *each.shape[-3:]).flatten(0, dims - 4) for each in (query, key, value))
    return query, key, value, lead


def divides(few: int, heads: int) -> bool:
    """Return whether query heads divide evenly over so many key/value heads; 0 over 0 does."""
    return few in (1, heads) or (few > 0 and heads > 0 and not heads % few)


def make_mask_4d(mask: Tensor, lead: tuple[int, ...], heads: int, queries: int, keys: int) -> Tensor:
    """Make a mask 4D, each size full or 1; expand it only where several batch dimensions become one."""
    full = (*lead, heads, queries, keys)
    fits = all(size in (1, want) for size, want in zip(reversed(mask.shape), reversed(full), strict=False))
    if not fits or not 2 <= mask.dim() <= len(full):
        raise WrongDims(
            say(
                "attention.mask",
                "Attention got a mask of {given}, which does not broadcast to {heads} {heads:head|heads}, "
                "{queries} {queries:query|queries} and {keys} {keys:key|keys}. Give it at least the last two dimensions, "
                "each of that size or 1.",
                given=shape_words(mask),
                heads=heads,
                queries=queries,
                keys=keys,
            )
        )
    mask = mask[(None,) * (len(full) - mask.dim())]
    if len(lead) > 1:
        batch = lead if any(size > 1 for size in mask.shape[: len(lead)]) else mask.shape[: len(lead)]
        mask = mask.expand(*batch, *mask.shape[-3:]).flatten(0, len(lead) - 1)
    return mask


def word_each(word: Callable[[Tensor], str], query: Tensor, key: Tensor, value: Tensor) -> dict[str, str]:
    return {"query": word(query), "key": word(key), "value": word(value)}


def shape_words(tensor: Tensor) -> str:
    return "x".join(str(size) for size in tensor.shape)


def dtype_words(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def align_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast a float mask; very negative numbers stay finite, so that a row of them does not become a masked row."""
    if mask.dtype in (torch.bool, dtype):
        return mask
    if not mask.is_floating_point():
        raise WrongShape(
            say(
                "attention.mask.dtype",
                "Attention got a mask of {dtype}. Give True and False, or numbers to add to the scores.",
                dtype=dtype_words(mask),
            )
        )
    cast = mask.clamp(min=torch.finfo(dtype).min) if torch.finfo(mask.dtype).min < torch.finfo(dtype).min else mask
    return cast.to(dtype).masked_fill(mask == -torch.inf, -torch.inf)


def find_layout(query: Tensor, key: Tensor, value: Tensor) -> Layout:
    """Find how the three lie in memory, by offsets from the query's, so that slices of a fused tensor are
    recognised."""
    if query.untyped_storage().data_ptr() != key.untyped_storage().data_ptr():
        return "separate"
    step = key.storage_offset() - query.storage_offset()
    even = value.storage_offset() - key.storage_offset() == step
    if not even or query.stride() != key.stride() or key.stride() != value.stride() or query.stride(-1) != 1:
        return "unknown"
    heads, width = query.shape[1], query.shape[-1]
    if step == width and query.stride(1) == 3 * width:
        return "fused by head"
    if step == heads * width and query.stride(1) == width and query.stride(2) == 3 * heads * width:
        return "fused by tensor"
    return "unknown"


def wants_copy(tensor: Tensor, zero_strides_too: bool) -> bool:
    """Return whether to copy: torch's fused kernels need a last stride of 1, and some misread a stride of 0."""
    if tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
        return True
    strides = zip(tensor.stride(), tensor.shape, strict=True)
    return zero_strides_too and any(stride == 0 and size > 1 for stride, size in strides)


def by_group(query: Tensor, groups: int) -> Tensor:
    """Return a view of shape (batch, key/value heads, groups, length, width)."""
    batch, heads, queries, width = query.shape
    return query.view(batch, heads // groups, groups, queries, width)


def fold(query: Tensor, groups: int) -> Tensor:
    """Fold query groups into the query length: a view if the query is contiguous; K and V stay unchanged."""
    batch, heads, queries, width = query.shape
    return query.reshape(batch, heads // groups, groups * queries, width)


def unfold(out: Tensor, groups: int) -> Tensor:
    batch, heads, rows, width = out.shape
    return out.reshape(batch, heads * groups, rows // groups, width)


def split_heads(mask: Tensor, groups: int) -> Tensor:
    """Reshape to (batch, key/value heads, groups, queries, keys); sizes of 1 stay 1."""
    batch, heads, queries, keys = mask.shape
    return mask.unsqueeze(1) if heads == 1 else mask.view(batch, heads // groups, groups, queries, keys)


def fold_mask(mask: Tensor, groups: int, queries: int) -> Tensor:
    """Return the mask of a folded query, repeated along it only if its rows differ."""
    if mask.shape[1] == 1 and mask.shape[2] == 1:
        return mask
    mask = split_heads(mask, groups)
    batch, heads, _, _, keys = mask.shape
    return mask.expand(batch, heads, groups, queries, keys).reshape(batch, heads, groups * queries, keys)


def visible_mask(mask: Tensor | None, causal: bool, *, start: int, stop: int, first: int, last: int, device: torch.device) -> Tensor | None:
    """Return the mask of queries start..stop over keys first..last; causal as in torch, key j <= query i."""
    if mask is not None:
        mask = mask[..., start:stop, :] if mask.shape[-2] > 1 else mask
        mask = mask[..., first:last] if mask.shape[-1] > 1 else mask
    if not causal or last <= start + 1:
        return mask
    below = torch.arange(first, last, device=device) <= torch.arange(start, stop, device=device).unsqueeze(1)
    if mask is None:
        return below[None, None]
    return mask & below if mask.dtype == torch.bool else torch.where(below, mask, -torch.inf)


def fully_masked_rows(mask: Tensor) -> Tensor:
    """Return True for each query that may see no key at all."""
    if mask.dtype == torch.bool:
        return ~mask.any(-1, keepdim=True)
    return mask.amax(-1, keepdim=True) == -torch.inf
