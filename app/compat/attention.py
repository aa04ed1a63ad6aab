"""Attention composed once from a plan, with torch's own signature: align, lay out, fold, chunk, restrict kernels. Tensors only."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from app.compat import kernels
from app.compat.plan import Plan
from app.compat.route import AS_TORCH, STEP, Route, check
from app.compat.tiles import is_step, step
from app.compat.ways import is_few

Attention = Callable[..., Tensor]


def torchs(attention: Attention) -> Attention:
    """What stands below: torch's own, or what plays it; never another composition."""
    below: Attention = getattr(attention, "below", attention)
    return below


def compose(
    plan: Plan,
    torch_attention: Attention | None = None,
    chunk: Callable[[], int | None] | None = None,
    saw: Callable[[str], None] = lambda path: None,
) -> Attention:
    """`chunk` is asked at each call, so that it can change while a generation runs; `saw` is told the path of each call."""
    below = torchs(F.scaled_dot_product_attention if torch_attention is None else torch_attention)
    rows_asked = chunk or (lambda: plan.chunk_q)
    by_torch = kernels.restricted(below, plan)
    route = Route(plan, by_torch)
    easy, small, steps = route.easy, route.small, route.steps

    def attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        given = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
        if has_torch_function(given):
            done: Tensor = handle_torch_function(
                attend, given, query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal,
                scale=scale, enable_gqa=enable_gqa,
            )  # fmt: skip
            return done
        if steps and attn_mask is None and not (dropout_p or is_causal) and is_step(query, key, value, steps):
            saw(STEP)
            return step(query, key, value, scale)
        rows = rows_asked()
        if easy and rows is None and value.dtype in easy and not query.is_nested:
            asked, held = query.shape, key.shape
            if (
                len(asked) == 4
                and asked[:2] == held[:2]
                and held == value.shape
                and query.dtype == key.dtype == value.dtype
                and asked[0] * asked[1] * asked[2] * held[2] <= small
                and not is_few(asked[2], key.numel() // 2)
                and (attn_mask is None or attn_mask.dtype == torch.bool or attn_mask.dtype == query.dtype)
                and not (is_causal and attn_mask is not None)
                and route.lies_well(query, key, value)
            ):
                saw(AS_TORCH)
                try:
                    return by_torch(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
                except (RuntimeError, IndexError):
                    check(query, key, value, attn_mask)  # in plain words, where it is the question that is wrong
                    raise
        if query.is_nested or query.is_meta:
            saw(AS_TORCH)
            return by_torch(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        return route(query, key, value, attn_mask, dropout_p, is_causal, scale, rows, saw)

    attend.below = below  # type: ignore[attr-defined]
    return attend
