"""Compose attention from a plan, with torch's signature: align, lay out, fold, chunk, restrict kernels. Tensors
only."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function_variadic

from app.compat.attention import sdpa_kernels
from app.compat.attention.call import AttentionCall
from app.compat.attention.dispatch import STEP, Dispatcher, Observe, ignore
from app.compat.attention.short_calls import answer_short_calls
from app.compat.attention.step_aside import COMPILED, NESTED, TRACED, path_aside
from app.compat.attention.tiled import attend_step, is_step
from app.compat.machine.processor import find_private
from app.compat.planning.quickest_way import MANY_NUMBERS
from app.compat.planning.types import AUTO, Chunk, Plan

Attention = Callable[..., Tensor]
# Where torch lacks it, each call asks whether its own device has autocast enabled.
_is_any_autocast_enabled = find_private("_C._is_any_autocast_enabled", lambda: True)


def find_below(attention: Attention) -> Attention:
    """Return the attention below a composition: torch's own or its simulation, never another composition."""
    below: Attention = getattr(attention, "below", attention)
    return below


def compose(
    plan: Plan, torch_attention: Attention | None = None, read_chunk_q: Callable[[], Chunk] | None = None, observe: Observe = ignore
) -> Attention:
    """Compose attention from a plan. `read_chunk_q`: the plan's chunk_q at each call, if it may change; `observe` is called for
    each call."""
    below = find_below(F.scaled_dot_product_attention if torch_attention is None else torch_attention)
    read = read_chunk_q or (lambda: plan.chunk_q)
    outside = sdpa_kernels.with_math(below, plan)
    dispatch = Dispatcher(plan, sdpa_kernels.restricted(below, plan))
    steps = dispatch.steps
    answer_short = answer_short_calls(dispatch, observe)
    count_compiled = compiled_counter(observe)

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
            count_compiled()
            return below(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if has_torch_function_variadic(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
            if is_any_stand_in(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
                observe(TRACED)
                return below(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
            if not is_any_nested(query, key, value, attn_mask):
                return hand_to_subclass(attend, AttentionCall(query, key, value, attn_mask, dropout_p, is_causal, scale), enable_gqa)
            away: str | None = NESTED
        else:
            away = path_aside(query, key, value)
        if away is not None:
            observe(away)
            return outside(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        # From here on enable_gqa is not passed: whether heads share keys is read from the shapes.
        if _is_any_autocast_enabled() and torch.is_autocast_enabled(query.device.type):
            return attend_lowered(attend, AttentionCall(query, key, value, attn_mask, dropout_p, is_causal, scale))
        if (
            steps
            and attn_mask is None
            and key.numel() >= MANY_NUMBERS
            and not (dropout_p or is_causal or scale == 0)
            and is_step(query, key, value, steps)
            and not dispatch.has_quicker(query, key)
        ):
            observe(STEP, query.shape[0] * query.shape[1] * key.shape[2], 1, 1)
            return attend_step(query, key, value, scale)
        chunk_q = None if (size := read()) == AUTO else size
        if chunk_q is None and dropout_p < 1:
            short = answer_short(query, key, value, attn_mask, dropout_p, is_causal, scale)
            if short is not None:
                return short
        if not 0 <= dropout_p <= 1:
            return below(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)  # torch words the error
        return dispatch(AttentionCall(query, key, value, attn_mask, dropout_p, is_causal, scale), chunk_q, observe)

    attend.below = below  # type: ignore[attr-defined]
    return attend


def compiled_counter(observe: Observe) -> Callable[[], None]:
    def count_compiled() -> None:
        observe(COMPILED)

    # Like torch.compiler.assume_constant_result, whose import takes a second: it runs while compiling, not in the graph.
    count_compiled._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return count_compiled


def is_any_stand_in(*given: object) -> bool:
    """Return whether one has no data, and no value: the proxies of torch.fx.symbolic_trace stand for tensors and numbers alike."""
    return any(hasattr(type(each), "__torch_function__") and not isinstance(each, Tensor) for each in given)


def is_any_nested(*tensors: Tensor | None) -> bool:
    return any(each is not None and each.is_nested for each in tensors)


def hand_to_subclass(attend: Attention, call: AttentionCall, enable_gqa: bool) -> Tensor:
    """Let a tensor subclass handle the call, by torch's protocol."""
    query, key, value, mask, dropout, causal, scale = call
    given = (query, key, value) if mask is None else (query, key, value, mask)
    result: Tensor = handle_torch_function(
        attend, given, query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scale, enable_gqa=enable_gqa
    )
    return result


def attend_lowered(attend: Attention, call: AttentionCall) -> Tensor:
    """Compute attention in autocast's dtype, from queries to result; leave float64 alone."""
    device = call.query.device.type
    lower = torch.get_autocast_dtype(device)
    query, key, value = (each if each.dtype == torch.float64 else each.to(lower) for each in call[:3])
    with torch.autocast(device, enabled=False):
        return attend(query, key, value, *call[3:])
