"""Which way one call of attention goes, and going it: through torch's kernels whole or in chunks, or by Hearth's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention.prepare import (
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
from app.compat.attention.sdpa_kernels import none_takes_it, streams
from app.compat.attention.tiled import (
    COPIES,
    OWN_BYTES,
    WIDENED_BYTES,
    Free,
    Tile,
    even,
    own,
    tile_size,
    workspace_bytes,
)
from app.compat.planning.memory_formulas import SCORES_AT_LEAST
from app.compat.planning.quickest_way import OWN, Shape, Way, choose_by_rule, round_up_lengths
from app.compat.planning.types import Gqa, Plan

Saw = Callable[..., None]
"""Is told of each call: its path, how many scores it has, queries at a time, and of how many."""
AS_TORCH = "as torch"
METAL_SCORES = 1 << 30
"""Of one call, in numbers: Metal spoils more silently (mps-int32), and an older macOS dies of 4 GiB (mps-4gib)."""
OWN_PATH = "own arithmetic"
STEP = f"folded, {OWN_PATH}"
HALVES = (torch.float16, torch.bfloat16)
SHORT_ROWS = 64
TOO_FEW_ROWS = 32
"""Shorter chunks of all heads read K and V too often: own arithmetic takes fewer heads instead."""
MANY_QUERIES = 32
"""From here on a causal fold goes group by group, so that torch's kernel can skip what is masked."""


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
        self.ways = dict(plan.ways)
        self.bfloat16_is_fast = torch.cpu._is_avx512_bf16_supported()
        folds = self.on_cpu and plan.gqa == "folded" and plan.kernels and plan.chunk_k is None and not plan.contiguous
        self.steps = {torch.float32} if folds else set()
        """Dtypes in which a step of speech goes the shortest way there is."""
        asks = plan.contiguous or plan.pad_value or plan.expand_mask or plan.zero_masked_rows or plan.explicit_mask
        full = {torch.float32, torch.float64}
        halves = {torch.bfloat16} if self.on_cpu else set() if plan.score_dtype == "float32" else set(HALVES)
        self.easy = full | halves
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
        queries, heads, groups = query.shape[2], query.shape[0] * key.shape[1], query.shape[1] // key.shape[1]
        way = self.way(query, key, mask, causal)
        tile = self.size(query, key, value, mask, dropout, causal, scale, asked, way)
        ours = way.by == "own" or tile.heads < heads or tile.cols is not None
        gqa = None if groups == 1 else "folded" if ours else way.by if way.by in ("native", "folded") else self.plan.gqa
        path: list[str] = [gqa] if gqa and gqa != "native" else []
        if tile.rows < queries or tile.cols:
            path.append(f"chunked {tile.rows} x {tile.cols}" if tile.cols else f"chunked {tile.rows}")
        if ours:
            path.append(OWN_PATH)
        scores = query.shape[0] * query.shape[1] * queries * key.shape[2]
        if not ours:
            try:
                out = self.through_torch(query, key, value, mask, dropout, causal, scale, tile.rows, gqa)
            except RuntimeError as error:
                if not none_takes_it(error):
                    raise
                path.append(OWN_PATH)
            else:
                saw(", ".join(path) or AS_TORCH, scores, tile.rows, queries)
                return out
        saw(", ".join(path), scores, tile.rows, queries)
        scale = query.shape[3] ** -0.5 if scale is None else scale
        return own(query, key, value, mask, dropout, causal, scale, tile, prescale=not self.on_cpu)

    def way(self, query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Way:
        if not self.plan.kernels:
            return OWN
        shape = Shape(
            query.shape[0], query.shape[1], key.shape[1], query.shape[2], key.shape[2], query.shape[3], mask is not None, causal,
            str(query.dtype).removeprefix("torch."),
        )  # fmt: skip
        if (measured := self.ways.get(round_up_lengths(shape)) if self.ways else None) is not None:
            return measured
        if not self.on_cpu:
            return Way("torch")
        return choose_by_rule(shape, self.plan.gqa == "folded", self.plan.native_right, self.bfloat16_is_fast)

    def size(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
        scale: float | None, asked: int | None, way: Way,
    ) -> Tile:  # fmt: skip
        """How much at once: by hand, else the way's, within the memory that is free."""
        batch, heads, queries, _ = query.shape
        keys, groups = key.shape[2], heads // key.shape[1]
        cols = self.plan.chunk_k if self.plan.chunk_k and self.plan.chunk_k < keys else None
        ours = way.by == "own" or cols is not None
        most = self.plan.chunk_most or queries
        asked = None if asked is None else min(asked, most)
        if asked is not None and self.plan.device == "mps":
            # A size by hand may come in the middle of a run, past decide().
            asked = min(asked, max(1, METAL_SCORES // (batch * heads * (cols or keys))))
        wanted = asked or way.rows or (most if most < queries else None)
        wanted = None if wanted is None else min(wanted, most)
        rows = min(wanted or queries, queries)
        row_bytes = batch * heads * (cols or keys) * query.element_size() * COPIES
        if not ours and (
            rows * row_bytes <= self.workspace
            or streams(self.plan, query, key, value, mask, dropout, causal, scale, groups > 1)
        ):
            return Tile(batch * key.shape[1], rows, None)
        # A size by hand is kept as long as one row of all heads fits; own arithmetic cuts heads and keys instead.
        # Metal may hold more than it recommends: then nothing is free, and tiles of one key would take for ever.
        free = max(self.free(query.device) // 4, SCORES_AT_LEAST)
        limit = min(self.plan.budget_bytes or self.workspace, free)
        limit = min(limit, self.workspace) if asked is None and not way.rows else limit
        fit = min(rows, limit // row_bytes)
        if not ours and fit >= (min(rows, TOO_FEW_ROWS) if asked is None else 1):
            return Tile(batch * key.shape[1], even(fit, queries) if asked is None else rows, None)
        at_once = torch.get_num_threads() if self.on_cpu else heads
        few = batch * key.shape[1]
        if query.dtype in HALVES:  # keys and values are widened, as many heads at once
            few = min(few, max(at_once, WIDENED_BYTES // (4 * keys * (key.shape[3] + value.shape[3]))))
        found = tile_size(limit // OWN_BYTES, few, groups, queries, cols or keys, at_once, wanted)
        if causal and asked is None and self.on_cpu:
            # What lies above the diagonal of a chunk is computed in vain.
            found = found._replace(rows=min(found.rows, max(SHORT_ROWS, queries // 4)))
        return found._replace(cols=found.cols or cols)

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
