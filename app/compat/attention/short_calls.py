"""Recognise calls so short that choosing their way would take longer than the call: torch answers them whole, natively grouped or folded."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from app.compat.attention.dispatch import AS_TORCH, Route
from app.compat.planning.quickest_way import is_brief, is_reading_bound

FOLDED = "folded"
TINY = 1 << 16
"""Scores of a grouped call that need no thought about the way it goes."""
Known = tuple[str, int, int, bool]
"""Its path, how many scores it has, its queries, and whether its heads are grouped for torch to see."""
Short = Callable[[Tensor, Tensor, Tensor, Tensor | None, float, bool], Known | None]


def shortcut(route: Route) -> Short:
    """What is known of a short call; None where the route has to choose."""
    plan, easy, small = route.plan, route.easy, route.small
    both = bool(easy) and route.on_cpu and plan.gqa == "folded" and {"flash", "math"} <= set(plan.kernels)
    native = both and plan.native_right

    def short(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool) -> Known | None:
        asked, held, dtype = query.shape, key.shape, value.dtype
        if (
            dtype not in easy
            or len(asked) != 4
            or len(held) != 4
            or held != value.shape
            or asked[0] != held[0]
            or not query.dtype == key.dtype == dtype
        ):
            return None
        heads, few, queries = asked[1], held[1], asked[2]
        scores = asked[0] * heads * queries * held[2]
        if heads == few:
            fits = scores <= small and not is_reading_bound(queries, key.numel() // 2) and route.lies_well(query, key, value)
            told = mask is None or (mask.dtype in (torch.bool, dtype) and mask.dim() > 1 and not causal)
            return (AS_TORCH, scores, queries, False) if fits and told else None
        if not both or mask is not None or causal or dropout or not (few and scores and asked[3]) or heads % few:
            return None
        if native and dtype == torch.float32 and is_brief(queries, key.numel()):
            return AS_TORCH, scores, queries, True
        return (FOLDED, scores, queries, False) if scores <= TINY else None

    return short
