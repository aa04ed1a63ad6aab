"""Answer calls too short to choose a way for: torch takes them at once, grouped natively or folded."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from app.compat.attention.call import AttentionCall
from app.compat.attention.dispatch import AS_TORCH, Dispatcher, Observe, check_shapes
from app.compat.attention.sdpa_kernels import none_takes_it
from app.compat.planning.quickest_way import is_brief, is_reading_bound

FOLDED = "folded"
TINY = 1 << 16
"""A grouped call with at most so many scores is so small that any way will do."""
ShortCall = tuple[str, int, int, bool]
"""It holds a short call's path, number of scores, number of queries, and whether torch sees its heads grouped."""
Recognise = Callable[[Tensor, Tensor, Tensor, Tensor | None, float, bool], ShortCall | None]
Answer = Callable[[Tensor, Tensor, Tensor, Tensor | None, float, bool, float | None], Tensor | None]


def answer_short_calls(dispatch: Dispatcher, observe: Observe) -> Answer:
    """Return a function that answers a short call, or returns None if a way must be chosen."""
    recognise, by_torch = recognise_short_calls(dispatch), dispatch.through_torch.by_torch

    def answer(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool, scale: float | None
    ) -> Tensor | None:
        short = recognise(query, key, value, mask, dropout, causal)
        if short is None:
            return None
        path, scores, queries, grouped = short
        try:
            if path == FOLDED:
                lines = query.reshape(query.shape[0], key.shape[1], -1, query.shape[3])
                out = by_torch(lines, key, value, None, 0.0, False, scale=scale).reshape(query.shape)
            else:
                out = by_torch(query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)
        except (RuntimeError, IndexError) as error:
            check_shapes(AttentionCall(query, key, value, mask))  # a plain sentence if the arguments are wrong
            if not none_takes_it(error):
                raise
            return None
        observe(path, scores, queries, queries)
        return out

    return answer


def recognise_short_calls(dispatch: Dispatcher) -> Recognise:
    """Return a function that describes a short call, or returns None if a way must be chosen."""
    plan, easy, small = dispatch.plan, dispatch.easy, dispatch.small
    both = bool(easy) and dispatch.on_cpu and plan.gqa == "folded" and {"flash", "math"} <= set(plan.kernels)
    native = both and plan.native_right

    def recognise(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool) -> ShortCall | None:
        query_shape, key_shape, dtype = query.shape, key.shape, value.dtype
        if (
            dtype not in easy
            or len(query_shape) != 4
            or len(key_shape) != 4
            or key_shape != value.shape
            or query_shape[0] != key_shape[0]
            or not query.dtype == key.dtype == dtype
        ):
            return None
        heads, few, queries = query_shape[1], key_shape[1], query_shape[2]
        scores = query_shape[0] * heads * queries * key_shape[2]
        if heads == few:
            fits = scores <= small and not is_reading_bound(queries, key.numel() // 2) and dispatch.is_laid_out(query, key, value)
            plain = mask is None or (mask.dtype in (torch.bool, dtype) and mask.dim() > 1 and not causal)
            return (AS_TORCH, scores, queries, False) if fits and plain else None
        if not both or mask is not None or causal or dropout or not (few and scores and query_shape[3]) or heads % few:
            return None
        if native and dtype == torch.float32 and is_brief(queries, key.numel()):
            return AS_TORCH, scores, queries, True
        return (FOLDED, scores, queries, False) if scores <= TINY else None

    return recognise
