"""Which way one call of attention goes, and going it: through torch's kernels whole or in chunks, or by Hearth's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.kernels import none_takes_it, streams
from app.compat.memory import SCORES_AT_LEAST
from app.compat.plan import Gqa, Plan
from app.compat.remedies import (
    align_mask,
    by_group,
    dead_rows,
    fold,
    fold_mask,
    layout,
    unfold,
    upright,
    upright_mask,
    visible,
    wants_copy,
)
from app.compat.tiles import COPIES, Free, even, is_few, own, tile_size, workspace_bytes

Saw = Callable[..., None]
"""Is told of each call: its path, how many scores it has, queries at a time, and of how many."""
AS_TORCH = "as torch"
METAL_SCORES = 1 << 30
"""Of one call, in numbers: Metal spoils more silently (mps-int32), and an older macOS dies of 4 GiB (mps-4gib)."""
OWN = "own arithmetic"
STEP = f"folded, {OWN}"
HALVES = (torch.float16, torch.bfloat16)
SHORT_KEYS = 256
SHORT_ROWS = 64
MANY_QUERIES = 32
"""From here on a causal fold goes group by group, so that torch's kernel can skip what is masked."""
LONG_QUERIES = 128


def unseen(path: str, scores: int = 0, rows: int = 0, queries: int = 0) -> None:
    """Where nobody counts."""


def check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    """Trouble where shapes or dtypes make no attention."""
    query, key, value, lead = upright(query, key, value)
    if mask is not None:
        align_mask(upright_mask(mask, lead, query.shape[1], query.shape[2], key.shape[2]), query.dtype)


def nothing(*tensors: Tensor | None) -> Tensor:
    """Attention over no numbers: zeros, and zeros for whoever wants gradients."""
    query, _, value, _ = tensors
    assert query is not None and value is not None
    tied = sum(each.flatten()[:0].sum() for each in tensors if each is not None and each.is_floating_point())
    return value.new_zeros(*query.shape[:3], value.shape[3]) + tied


class Route:
    """A plan's remedies, ready to be called."""

    def __init__(self, plan: Plan, by_torch: Callable[..., Tensor]) -> None:
        self.plan, self.by_torch = plan, by_torch
        self.on_cpu = plan.device == "cpu"
        self.workspace = min(workspace_bytes(plan.device), plan.budget_bytes or workspace_bytes(plan.device))
        self.small = self.workspace // (8 * COPIES)
        """Scores, in numbers, that need no thought about memory."""
        self.free = Free()
        self.bfloat16_is_fast = torch.cpu._is_avx512_bf16_supported()
        folds = self.on_cpu and plan.gqa == "folded" and plan.kernels and plan.chunk_k is None and not plan.contiguous
        halves = {torch.bfloat16} if self.bfloat16_is_fast and plan.score_dtype is None else set()
        self.steps = {torch.float32} | halves if folds else set()
        """Dtypes in which a step of speech goes the shortest way there is."""
        asks = plan.contiguous or plan.pad_value or plan.expand_mask or plan.zero_masked_rows or plan.explicit_mask
        full = {torch.float32, torch.float64}
        self.easy = full if self.on_cpu or plan.score_dtype == "float32" else full | set(HALVES)
        """Dtypes in which an ungrouped, short call goes to torch unseen."""
        if asks or not plan.kernels or plan.chunk_k is not None or plan.chunk_most is not None:
            self.easy = set()

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
        scale: float | None, rows: int | None, saw: Saw,
    ) -> Tensor:  # fmt: skip
        dims, given = max(query.dim(), key.dim(), value.dim()), value.dtype
        query, key, value, lead = upright(query, key, value)
        heads, queries = query.shape[1:3]
        dtype = self.dtype(given)
        if mask is not None:
            mask = align_mask(upright_mask(mask, lead, heads, queries, key.shape[2]), dtype)
        if not query.dtype == key.dtype == value.dtype == dtype:
            query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
        query, key, value = self.lay_out(query, key, value)
        if not query.shape[3]:  # scores of 0, whatever the scale
            query, key, scale = F.pad(query, (0, 1)), F.pad(key, (0, 1)), 1.0
        if key.numel() and query.numel() and value.numel():
            out = self.go(query, key, value, mask, dropout, causal, scale, rows, saw)
        else:
            saw(AS_TORCH)
            out = nothing(query, key, value, mask)
        out = out if dtype == given else out.to(given)
        if dims > 4:
            return out.reshape(*lead, *out.shape[1:])
        return out if dims == 4 else out[0] if dims == 3 else out[0, 0]

    def dtype(self, given: torch.dtype) -> torch.dtype:
        """Value's, or float32 where the plan wants scores in it. On a processor torch's kernels keep them so anyway,
        and float16 is slow there (54 ms against 26 for 2x16x512x128)."""
        if given not in HALVES:
            return given
        if self.on_cpu:
            return torch.float32 if given == torch.float16 else given
        return torch.float32 if self.plan.score_dtype == "float32" else given

    def lies_well(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """A processor's kernels read any strides; a card's misread views of one tensor in a layout they have no name for."""
        if self.on_cpu:
            return True
        return layout(query, key, value) != "unknown" and not any(
            wants_copy(each, True) for each in (query, key, value)
        )

    def lay_out(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.on_cpu and query.stride(-1) == key.stride(-1) == value.stride(-1) == 1 and not self.plan.contiguous:
            return query, key, value
        every = self.plan.contiguous or (not self.on_cpu and layout(query, key, value) == "unknown")
        query, key, value = (
            each.contiguous() if every or wants_copy(each, not self.on_cpu) else each for each in (query, key, value)
        )
        return query, key, value

    def go(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
        scale: float | None, asked: int | None, saw: Saw,
    ) -> Tensor:  # fmt: skip
        queries, groups = query.shape[2], query.shape[1] // key.shape[1]
        rows, cols, ours = self.size(query, key, value, mask, dropout, causal, scale, asked)
        gqa = (
            None
            if groups == 1
            else "folded"
            if ours
            else self.gqa(causal and mask is None and rows >= queries, queries)
        )
        path: list[str] = [gqa] if gqa and gqa != "native" else []
        if rows < queries or cols:
            path.append(f"chunked {rows} x {cols}" if cols else f"chunked {rows}")
        if ours:
            path.append(OWN)
        scores = query.shape[0] * query.shape[1] * queries * key.shape[2]
        if not ours:
            try:
                out = self.through_torch(query, key, value, mask, dropout, causal, scale, rows, gqa)
            except RuntimeError as error:
                if not none_takes_it(error):
                    raise
                path.append(OWN)
            else:
                saw(", ".join(path) or AS_TORCH, scores, rows, queries)
                return out
        saw(", ".join(path), scores, rows, queries)
        scale = query.shape[3] ** -0.5 if scale is None else scale
        return own(query, key, value, mask, dropout, causal, scale, rows, cols, prescale=not self.on_cpu)

    def size(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
        scale: float | None, asked: int | None,
    ) -> tuple[int, int | None, bool]:  # fmt: skip
        """Queries at a time, keys at a time (None: all), and whether by Hearth's own arithmetic."""
        batch, heads, queries, _ = query.shape
        keys, groups = key.shape[2], heads // key.shape[1]
        cols = self.plan.chunk_k if self.plan.chunk_k and self.plan.chunk_k < keys else None
        ours = cols is not None or self.ours(query, key, groups)
        most = self.plan.chunk_most or queries
        asked = None if asked is None else min(asked, most)
        rows = min(queries, most) if asked is None else min(asked, queries)
        item = (
            query.element_size() if cols is None else max(query.element_size(), 4)
        )  # a running maximum is kept in float32
        if asked is not None and self.plan.device == "mps":
            # A size by hand may come in the middle of a run, past decide().
            rows = min(rows, max(1, METAL_SCORES // (batch * heads * (cols or keys))))
        row_bytes = batch * heads * (cols or keys) * item * COPIES
        if rows * row_bytes > self.workspace and (
            ours or not streams(self.plan, query, key, value, mask, dropout, causal, scale, groups > 1)
        ):
            # A size by hand is kept; then only keys are cut, and only where one row of scores is too large.
            # Metal may hold more than it recommends: then nothing is free, and tiles of one key would take for ever.
            free = max(self.free(query.device) // 4, SCORES_AT_LEAST)
            budget = min(self.plan.budget_bytes or self.workspace, free)
            limit = min(budget, self.workspace) if asked is None else max(budget, 1)
            if asked is None or row_bytes > limit:
                most, fewer = tile_size(limit, row_bytes, rows, cols or keys)
                rows, cols = most if asked is None else rows, fewer or cols
        ours = ours or cols is not None
        if ours and causal and asked is None and self.on_cpu:
            rows = min(
                rows, max(SHORT_ROWS, queries // 4)
            )  # what lies above the diagonal of a chunk is computed in vain
        return (even(rows, queries) if asked is None else rows), cols, ours

    def gqa(self, causal: bool, queries: int) -> Gqa:
        """A processor's own kernel shares K and V as well, and is the faster one where it may skip what is masked (26 ms against 28)."""
        if causal and self.on_cpu and queries >= LONG_QUERIES and self.plan.gqa == "folded":
            return "native"
        return self.plan.gqa

    def ours(self, query: Tensor, key: Tensor, groups: int) -> bool:
        """Whether Hearth's own arithmetic is right where torch's kernels may not run, or faster on a processor, as measured (README)."""
        if not self.plan.kernels:
            return True
        if not self.on_cpu or (groups > 1 and self.plan.gqa != "folded"):
            return False
        rows, keys = groups * query.shape[2], key.shape[2]
        if query.dtype == torch.bfloat16:
            fast = rows == 1 or rows >= SHORT_ROWS or keys >= SHORT_KEYS
            return fast and self.bfloat16_is_fast and self.plan.score_dtype is None
        return query.dtype == torch.float32 and is_few(rows, key)

    def through_torch(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
        scale: float | None, rows: int, gqa: Gqa | None,
    ) -> Tensor:  # fmt: skip
        groups, queries, keys = query.shape[1] // key.shape[1], query.shape[2], key.shape[2]
        if gqa == "expanded":
            key, value, gqa = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1), None
        wide = value.shape[3]
        if self.plan.pad_value and wide != query.shape[3]:
            scale = query.shape[3] ** -0.5 if scale is None else scale
            most = max(wide, query.shape[3])
            query, key, value = (F.pad(each, (0, most - each.shape[3])) for each in (query, key, value))
        if rows >= queries:
            flag = causal and mask is None and not self.plan.explicit_mask
            if flag and gqa == "folded" and queries >= MANY_QUERIES:
                grouped = by_group(query, groups)
                parts = [
                    self.once(grouped[:, :, at], key, value, None, dropout, True, scale, None) for at in range(groups)
                ]
                return torch.stack(parts, 2).flatten(1, 2)[..., :wide]
            flag = flag and gqa != "folded"
            told = visible(mask, causal and not flag, 0, queries, 0, keys, query.device)
            return self.once(query, key, value, told, dropout, flag, scale, gqa)[..., :wide]
        out = query.new_empty(query.shape[0], queries, query.shape[1], wide).transpose(1, 2)
        for begin in range(0, queries, rows):
            # Metal keeps a graph for each shape it has seen: there the last chunk steps back instead of being shorter.
            start = min(begin, queries - rows) if self.plan.device == "mps" else begin
            stop = min(start + rows, queries)
            last = min(stop, keys) if causal and self.plan.device != "mps" else keys
            told = visible(mask, causal, start, stop, 0, last, query.device)
            piece = self.once(
                query[:, :, start:stop], key[:, :, :last], value[:, :, :last], told, dropout, False, scale, gqa
            )
            out[:, :, start:stop] = piece[..., :wide]
        return out

    def once(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
        scale: float | None, gqa: Gqa | None,
    ) -> Tensor:  # fmt: skip
        dead = dead_rows(mask) if mask is not None and self.plan.zero_masked_rows else None
        if gqa == "folded":
            groups = query.shape[1] // key.shape[1]
            told = None if mask is None else fold_mask(mask, groups, query.shape[2])
            out = unfold(self.ask(fold(query, groups), key, value, told, dropout, causal, scale), groups)
        else:
            out = self.ask(query, key, value, mask, dropout, causal, scale, gqa == "native")
        return out if dead is None else out.masked_fill(dead, 0)

    def ask(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
        scale: float | None, grouped: bool = False,
    ) -> Tensor:  # fmt: skip
        if mask is not None and self.plan.expand_mask:
            mask = mask.expand(*query.shape[:3], key.shape[2]).contiguous()
        return self.by_torch(query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)
