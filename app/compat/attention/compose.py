"""Attention composed once from a plan, with torch's own signature: align, lay out, fold, chunk, restrict kernels. Tensors only."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C import _is_any_autocast_enabled
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function_variadic

from app.compat.attention import sdpa_kernels
from app.compat.attention.dispatch import STEP, Route, Saw, check, unseen
from app.compat.attention.short_calls import FOLDED, shortcut
from app.compat.attention.step_aside import COMPILED, NESTED, aside
from app.compat.attention.tiled import is_step, step
from app.compat.planning.quickest_way import MANY_NUMBERS
from app.compat.planning.types import AUTO, Plan

Attention = Callable[..., Tensor]


def torchs(attention: Attention) -> Attention:
    """What stands below: torch's own, or what plays it; never another composition."""
    below: Attention = getattr(attention, "below", attention)
    return below


def compose(
    plan: Plan,
    torch_attention: Attention | None = None,
    chunk: Callable[[], int | None] | None = None,
    saw: Saw = unseen,
) -> Attention:
    """`chunk` is asked at each call, so that it can change while a generation runs; `saw` is told of each call."""
    below = torchs(F.scaled_dot_product_attention if torch_attention is None else torch_attention)
    rows_planned = None if plan.chunk_q == AUTO else plan.chunk_q
    rows_asked = chunk or (lambda: rows_planned)
    by_torch = sdpa_kernels.restricted(below, plan)
    outside = sdpa_kernels.with_math(below, plan)
    route = Route(plan, by_torch)
    short, steps = shortcut(route), route.steps

    def compiled() -> None:
        saw(COMPILED)

    compiled._dynamo_marked_constant = True  # type: ignore[attr-defined]
    # That is torch.compiler.assume_constant_result without its import of a second: called while compiling, not in the graph.

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
        if is_compiling():
            compiled()
            return below(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if has_torch_function_variadic(query, key, value, attn_mask):
            given = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
            if any(each.is_nested for each in given):
                saw(NESTED)
                return outside(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
            done: Tensor = handle_torch_function(
                attend, given, query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal,
                scale=scale, enable_gqa=enable_gqa,
            )  # fmt: skip
            return done
        away = aside(query, key, value)
        if away is not None:
            saw(away)
            return outside(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if _is_any_autocast_enabled() and torch.is_autocast_enabled(query.device.type):
            return lowered(attend, query, key, value, attn_mask, dropout_p, is_causal, scale)
        if steps and attn_mask is None and key.numel() >= MANY_NUMBERS and not (dropout_p or is_causal or scale == 0) and is_step(query, key, value, steps):
            saw(STEP, query.shape[0] * query.shape[1] * key.shape[2], 1, 1)
            return step(query, key, value, scale)
        rows = rows_asked()
        known = short(query, key, value, attn_mask, dropout_p, is_causal) if rows is None else None
        if known is not None:
            path, scores, queries, grouped = known
            try:
                if path is FOLDED:
                    lines = query.reshape(query.shape[0], key.shape[1], -1, query.shape[3])
                    out = by_torch(lines, key, value, None, 0.0, False, scale=scale).reshape(query.shape)
                else:
                    out = by_torch(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=grouped)
            except (RuntimeError, IndexError) as error:
                check(query, key, value, attn_mask)  # in plain words, where it is the question that is wrong
                if not sdpa_kernels.none_takes_it(error):
                    raise
            else:
                saw(path, scores, queries, queries)
                return out
        if not 0 <= dropout_p <= 1:
            return below(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)  # torch has the words
        return route(query, key, value, attn_mask, dropout_p, is_causal, scale, rows, saw)

    attend.below = below  # type: ignore[attr-defined]
    return attend


def lowered(
    attend: Attention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
    scale: float | None,
) -> Tensor:  # fmt: skip
    """As autocast has it: attention in its dtype, from queries to result; float64 is left alone."""
    kind = query.device.type
    lower = torch.get_autocast_dtype(kind)
    query, key, value = (each if each.dtype == torch.float64 else each.to(lower) for each in (query, key, value))
    with torch.autocast(kind, enabled=False):
        return attend(query, key, value, mask, dropout, causal, scale)
