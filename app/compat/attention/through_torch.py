"""Compute one prepared call with torch's kernels, at once or in chunks, with the plan's remedies around each call."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention.call import AttentionCall
from app.compat.attention.prepare import by_group, fold, fold_mask, fully_masked_rows, unfold, visible_mask
from app.compat.planning.metal import padded_dim
from app.compat.planning.types import Gqa, Plan

MANY_QUERIES = 32
"""From this length on a causal fold is computed group by group, so that torch's kernel can skip masked keys."""


class ThroughTorch:
    """torch's attention, called as the plan requires."""

    def __init__(self, plan: Plan, by_torch: Callable[..., Tensor]) -> None:
        self.plan, self.by_torch = plan, by_torch

    def __call__(self, call: AttentionCall, rows: int, gqa: Gqa | None) -> Tensor:
        """Compute with torch's kernels, all queries at once or `rows` at a time."""
        width = call.value.shape[3]
        if gqa == "expanded":
            key, value = (each.repeat_interleave(call.groups, 1) for each in (call.key, call.value))
            call, gqa = call._replace(key=key, value=value), None
        if (most := self.find_width(call.query.shape[3], width)) != min(width, call.query.shape[3]):
            scale = call.factor
            query, key, value = (F.pad(each, (0, most - each.shape[3])) for each in call[:3])
            call = call._replace(query=query, key=key, value=value, scale=scale)
        if rows < call.query.shape[2]:
            return self.in_chunks(call, rows, gqa, width)
        return self.whole(call, gqa)[..., :width]

    def find_width(self, head_dim: int, value_dim: int) -> int:
        """Return the size to which queries, keys and values are padded; the smaller of both sizes if they stay as they are."""
        if self.plan.pad_value and value_dim != head_dim:
            return max(value_dim, head_dim)
        if self.plan.pad_heads and self.plan.path == "prefill" and value_dim == head_dim:
            return padded_dim(head_dim)
        return min(value_dim, head_dim)

    def whole(self, call: AttentionCall, gqa: Gqa | None) -> Tensor:
        query, key, value, mask, dropout, causal, scale = call
        queries = query.shape[2]
        flag = causal and mask is None and not self.plan.explicit_mask
        if flag and gqa == "folded" and queries >= MANY_QUERIES:
            each_group = by_group(query, call.groups).unbind(2)
            parts = [self.once(AttentionCall(each, key, value, None, dropout, True, scale), None) for each in each_group]
            return torch.stack(parts, 2).flatten(1, 2)
        flag = flag and gqa != "folded"
        visible = visible_mask(mask, causal and not flag, start=0, stop=queries, first=0, last=key.shape[2], device=query.device)
        return self.once(AttentionCall(query, key, value, visible, dropout, flag, scale), gqa)

    def in_chunks(self, call: AttentionCall, rows: int, gqa: Gqa | None, width: int) -> Tensor:
        query, key, value, mask, dropout, causal, scale = call
        queries, keys, metal = query.shape[2], key.shape[2], self.plan.device == "mps"
        out = query.new_empty(query.shape[0], queries, query.shape[1], width).transpose(1, 2)
        for begin in range(0, queries, rows):
            # Metal caches a graph for each shape: overlap the last chunk instead of making it shorter.
            start = min(begin, queries - rows) if metal else begin
            stop = min(start + rows, queries)
            last = min(stop, keys) if causal and not metal else keys
            visible = visible_mask(mask, causal, start=start, stop=stop, first=0, last=last, device=query.device)
            chunk = AttentionCall(query[:, :, start:stop], key[:, :, :last], value[:, :, :last], visible, dropout, False, scale)
            out[:, :, start:stop] = self.once(chunk, gqa)[..., :width]
        return out

    def once(self, call: AttentionCall, gqa: Gqa | None) -> Tensor:
        """Call torch once, folded if asked; set rows that see nothing to zero."""
        mask = call.mask
        dead = fully_masked_rows(mask) if mask is not None and self.plan.zero_masked_rows else None
        if gqa == "folded":
            groups, queries = call.groups, call.query.shape[2]
            visible = None if mask is None else fold_mask(mask, groups, queries)
            folded = AttentionCall(fold(call.query, groups), call.key, call.value, visible, *call[4:])
            out = unfold(self.ask_torch(folded), groups)
        else:
            out = self.ask_torch(call, gqa == "native")
        return out if dead is None else out.masked_fill(dead, 0)

    def ask_torch(self, call: AttentionCall, grouped: bool = False) -> Tensor:
        query, key, value, mask, dropout, causal, scale = call
        if mask is not None and self.plan.expand_mask:
            mask = mask.expand(*query.shape[:3], key.shape[2]).contiguous()
        return self.by_torch(query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)
