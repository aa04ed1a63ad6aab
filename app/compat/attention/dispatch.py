"""Choose a way for one attention call and compute it: torch's kernels, at once or in chunks, or own arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention.call import AttentionCall
from app.compat.attention.prepare import align_mask, find_layout, make_4d, make_mask_4d, wants_copy
from app.compat.attention.sdpa_kernels import none_takes_it, streams
from app.compat.attention.through_torch import ThroughTorch
from app.compat.attention.tile_size import COPIES, OWN_BYTES, WIDENED_BYTES, FreeMemory, Tile, even_rows, tile_size
from app.compat.attention.tiled import attend_in_tiles
from app.compat.machine.processor import multiplies_bfloat16
from app.compat.planning.memory_formulas import SCORES_AT_LEAST, workspace_bytes
from app.compat.planning.metal import metal_path
from app.compat.planning.quickest_way import OWN, Shape, Way, choose_by_rule, round_up_lengths
from app.compat.planning.types import Gqa, Path, Plan

Observe = Callable[..., None]
"""It is called for each attention call with its path, number of scores, queries at a time, and number of queries."""
AS_TORCH = "as torch"
METAL_SCORES = 1 << 30
"""An array may hold so many numbers: Metal silently corrupts larger ones (mps-int32); an older macOS dies at 4 GiB (mps-4gib)."""
OWN_PATH = "own arithmetic"
STEP = f"folded, {OWN_PATH}"
HALVES = (torch.float16, torch.bfloat16)
SHORT_ROWS = 64
TOO_FEW_ROWS = 32
"""Shorter chunks over all heads read K and V too often: own arithmetic takes fewer heads at a time instead."""


def ignore(path: str, scores: int = 0, rows: int = 0, queries: int = 0) -> None:
    """Observe nothing."""


def check_shapes(call: AttentionCall) -> None:
    """Raise Trouble if the shapes or dtypes cannot be used for attention."""
    query, key, _, lead = make_4d(call.query, call.key, call.value)
    if call.mask is not None:
        align_mask(make_mask_4d(call.mask, lead, query.shape[1], query.shape[2], key.shape[2]), query.dtype)


def find_shape(query: Tensor, key: Tensor, masked: bool = False, causal: bool = False) -> Shape:
    batch, heads, queries, width = query.shape
    return Shape(batch, heads, key.shape[1], queries, key.shape[2], width, masked, causal, str(query.dtype).removeprefix("torch."))


def empty_result(call: AttentionCall) -> Tensor:
    """Return attention over empty tensors: zeros, with a graph for gradients."""
    given = (call.query, call.key, call.value, call.mask)
    tied = sum(each.flatten()[:0].sum() for each in given if each is not None and each.is_floating_point())
    return call.value.new_zeros(*call.query.shape[:3], call.value.shape[3]) + tied


class Dispatcher:
    """A plan's remedies, ready to call."""

    def __init__(self, plan: Plan, by_torch: Callable[..., Tensor]) -> None:
        self.plan, self.through_torch = plan, ThroughTorch(plan, by_torch)
        self.others: dict[Path | None, Dispatcher] = {each.path: Dispatcher(each, by_torch) for each in plan.others}
        """On Metal these are the remedies for calls that another kernel takes."""
        self.paths = (plan.path, *self.others)
        self.on_cpu, self.on_metal = plan.device == "cpu", plan.device == "mps"
        self.copies_unknown = not self.on_cpu and all(each.field != "fused-qkv-stride" for each in plan.retired)
        """Views of one tensor in an unknown layout are copied, unless the self-test found that this machine reads them rightly."""
        self.workspace = min(workspace_bytes(plan.device), plan.budget_bytes or workspace_bytes(plan.device))
        self.small = self.workspace // (8 * COPIES)
        """With at most so many scores memory does not matter."""
        self.most_bytes = plan.budget_bytes or self.workspace if self.on_metal else self.workspace
        """Automatic chunks take at most so many bytes: on Metal each costs a graph of its own, elsewhere small ones are as fast."""
        self.free = FreeMemory()
        self.ways = dict(plan.ways)
        self.bfloat16_is_fast = multiplies_bfloat16()
        folds = self.on_cpu and plan.gqa == "folded" and plan.kernels and plan.chunk_k is None and not plan.contiguous
        self.steps = {torch.float32} if folds else set()
        """A speech step takes the shortest path in these dtypes."""
        asks = plan.contiguous or plan.pad_value or plan.expand_mask or plan.zero_masked_rows or plan.explicit_mask
        full = {torch.float32, torch.float64}
        halves = {torch.bfloat16} if self.on_cpu else set() if plan.score_dtype == "float32" else set(HALVES)
        self.easy = full | halves
        """torch takes an ungrouped short call unchanged in these dtypes."""
        if asks or plan.others or not plan.kernels or plan.chunk_k is not None or plan.chunk_most is not None:
            self.easy = set()

    def __call__(self, given: AttentionCall, chunk_q: int | None, observe: Observe) -> Tensor:
        """Return the result in the shape and dtype that torch would give. `chunk_q`: the plan's now; None: automatic."""
        if self.others and (its := self.others.get(self.find_path(given))) is not None:
            return its(given, chunk_q, observe)
        dims, dtype = max(given.query.dim(), given.key.dim(), given.value.dim()), given.value.dtype
        call, lead = self.prepare(given)
        if call.key.numel() and call.query.numel() and call.value.numel():
            out = self.attend(call, chunk_q, observe)
        else:
            observe(AS_TORCH)
            out = empty_result(call)
        out = out if out.dtype == dtype else out.to(dtype)
        if dims > 4:
            return out.reshape(*lead, *out.shape[1:])
        return out if dims == 4 else out[0] if dims == 3 else out[0, 0]

    def find_path(self, given: AttentionCall) -> Path | None:
        """Return which of Metal's kernels would take a call; None if its shapes are no attention's."""
        query, value = given.query.shape, given.value.shape
        if len(query) < 2 or len(value) < 2:
            return None
        return metal_path(self.paths, query[-2], value[-2], query[-1], value[-1], self.plan.pad_heads)

    def prepare(self, given: AttentionCall) -> tuple[AttentionCall, tuple[int, ...]]:
        """Make tensors 4D, of one dtype, in a layout that is read correctly; also return the original batch shape."""
        query, key, value, mask, dropout, causal, scale = given
        query, key, value, lead = make_4d(query, key, value)
        dtype = self.compute_dtype(value.dtype)
        if mask is not None:
            mask = align_mask(make_mask_4d(mask, lead, query.shape[1], query.shape[2], key.shape[2]), dtype)
        if not query.dtype == key.dtype == value.dtype == dtype:
            query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
        query, key, value = self.lay_out(query, key, value)
        if not query.shape[3]:  # all scores are 0, whatever the scale
            query, key, scale = F.pad(query, (0, 1)), F.pad(key, (0, 1)), 1.0
        return AttentionCall(query, key, value, mask, dropout, causal, scale), lead

    def compute_dtype(self, given: torch.dtype) -> torch.dtype:
        """Return value's dtype, or float32 if the plan wants scores in it. On a CPU torch's kernels keep scores in
        float32 anyway, and float16 is slow there (54 ms against 26 for 2x16x512x128)."""
        if given not in HALVES:
            return given
        if self.on_cpu:
            return torch.float32 if given == torch.float16 else given
        # Own arithmetic widens piece by piece: all keys at once would be a new size in Metal's memory at every row of speech.
        return torch.float32 if self.plan.score_dtype == "float32" and self.plan.kernels else given

    def is_laid_out(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Return whether the layouts are safe: a GPU may misread views of one tensor in an unknown layout, a CPU
        never."""
        if self.on_cpu:
            return True
        known = not self.copies_unknown or find_layout(query, key, value) != "unknown"
        return known and not any(wants_copy(each, True) for each in (query, key, value))

    def lay_out(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.on_cpu and query.stride(-1) == key.stride(-1) == value.stride(-1) == 1 and not self.plan.contiguous:
            return query, key, value
        if not self.plan.kernels:
            return query, key, value
        every = self.plan.contiguous or (self.copies_unknown and find_layout(query, key, value) == "unknown")
        query, key, value = (each.contiguous() if every or wants_copy(each, not self.on_cpu) else each for each in (query, key, value))
        return query, key, value

    def attend(self, call: AttentionCall, chunk_q: int | None, observe: Observe) -> Tensor:
        """Compute a prepared call in the way chosen for it."""
        batch, heads, queries, _ = call.query.shape
        way = self.choose_way(call)
        tile = self.choose_tile(call, chunk_q, way)
        ours = way.by == "own" or tile.heads < call.kv_heads or tile.cols is not None
        gqa = self.choose_gqa(call.groups, way, ours)
        path: list[str] = [gqa] if gqa and gqa != "native" else []
        if tile.rows < queries or tile.cols:
            path.append(f"chunked {tile.rows} x {tile.cols}" if tile.cols else f"chunked {tile.rows}")
        scores = batch * heads * queries * call.key.shape[2]
        if not ours:
            try:
                out = self.through_torch(call, tile.rows, gqa)
            except RuntimeError as error:
                if not none_takes_it(error):
                    raise
            else:
                observe(", ".join(path) or AS_TORCH, scores, tile.rows, queries)
                return out
        observe(", ".join([*path, OWN_PATH]), scores, tile.rows, queries)
        return attend_in_tiles(call, tile, prescale=not self.on_cpu, contiguous=not self.on_cpu)

    def choose_gqa(self, groups: int, way: Way, ours: bool) -> Gqa | None:
        """Choose how grouped heads are handled; None without groups."""
        if groups == 1:
            return None
        if ours:
            return "folded"
        return way.by if way.by == "native" or way.by == "folded" else self.plan.gqa

    def choose_way(self, call: AttentionCall) -> Way:
        if not self.plan.kernels or call.dropout == 1:  # all is dropped, which a card's flash kernel refuses to be asked
            return OWN
        shape = find_shape(call.query, call.key, call.mask is not None, call.causal)
        if (measured := self.ways.get(round_up_lengths(shape)) if self.ways else None) is not None:
            return measured
        if not self.on_cpu:
            return Way("torch")
        return choose_by_rule(shape, self.plan.gqa == "folded", self.plan.native_right, self.bfloat16_is_fast)

    def has_quicker(self, query: Tensor, key: Tensor) -> bool:
        """Return whether another way than own arithmetic was measured to be the quickest for a step of speech."""
        measured = self.ways.get(round_up_lengths(find_shape(query, key))) if self.ways else None
        return measured is not None and measured.by != "own"

    def choose_tile(self, call: AttentionCall, chunk_q: int | None, way: Way) -> Tile:
        """Choose the tile: as set by hand, else by the way, within free memory."""
        query = call.query
        batch, heads, queries, _ = query.shape
        keys = call.key.shape[2]
        cols = self.plan.chunk_k if self.plan.chunk_k and self.plan.chunk_k < keys else None
        ours = way.by == "own" or cols is not None
        row = batch * heads * (cols or keys)
        chunk_q = self.limit_chunk(chunk_q, queries, row)
        wanted = self.wanted_rows(chunk_q, way, queries)
        rows = min(wanted or queries, queries)
        row_bytes = row * query.element_size() * COPIES
        if not ours and (rows * row_bytes <= self.workspace or streams(self.plan, call)):
            return Tile(call.kv_heads, rows, None)
        limit = self.limit_bytes(query.device, by_hand=chunk_q is not None or bool(way.rows))
        fit = min(rows, limit // row_bytes)
        # A chunk set by hand is used as long as one row of all heads fits; own arithmetic splits heads and keys.
        if not ours and fit >= (min(rows, TOO_FEW_ROWS) if chunk_q is None else 1):
            return Tile(call.kv_heads, self.automatic_rows(fit, queries) if chunk_q is None else rows, None)
        return self.own_tile(call, chunk_q, wanted, cols, limit)

    def automatic_rows(self, fit: int, queries: int) -> int:
        """Split queries evenly. Metal keeps memory of every size it was asked for, so there a chunk is a power of two."""
        return 1 << fit.bit_length() - 1 if self.on_metal and fit < queries else even_rows(fit, queries)

    def limit_chunk(self, chunk_q: int | None, queries: int, row: int) -> int | None:
        """Limit a chunk set by hand to what the plan and Metal allow; it may change during a run, after decide()."""
        if chunk_q is None:
            return None
        chunk_q = min(chunk_q, self.plan.chunk_most or queries)
        return min(chunk_q, max(1, METAL_SCORES // row)) if self.on_metal else chunk_q

    def wanted_rows(self, chunk_q: int | None, way: Way, queries: int) -> int | None:
        """Return the queries at a time, as set by hand, by the way or by the plan's limit; None: as many as fit."""
        most = self.plan.chunk_most or queries
        wanted = chunk_q or way.rows or (most if most < queries else None)
        return None if wanted is None else min(wanted, most)

    def limit_bytes(self, device: torch.device, by_hand: bool) -> int:
        """Return how many bytes the scores may take. Metal may hold more than it recommends: free memory is then 0, and
        tiles of one key would take forever."""
        free = max(self.free(device) // 4, SCORES_AT_LEAST)
        limit = min(self.plan.budget_bytes or self.workspace, free)
        return limit if by_hand else min(limit, self.most_bytes)

    def own_tile(self, call: AttentionCall, chunk_q: int | None, wanted: int | None, cols: int | None, limit: int) -> Tile:
        """Choose the tile for own arithmetic."""
        (_, heads, queries, _), keys, few = call.query.shape, call.key.shape[2], call.kv_heads
        at_once = torch.get_num_threads() if self.on_cpu else heads
        if call.query.dtype in HALVES:  # keys and values are converted to float32, as many heads at once
            few = min(few, max(at_once, WIDENED_BYTES // (4 * keys * (call.key.shape[3] + call.value.shape[3]))))
        found = tile_size(limit // OWN_BYTES, few, call.groups, queries=queries, keys=cols or keys, at_once=at_once, wanted=wanted)
        if call.causal and chunk_q is None and self.on_cpu:
            # Scores above the diagonal of a chunk are wasted work.
            found = found._replace(rows=min(found.rows, max(SHORT_ROWS, queries // 4)))
        return found._replace(cols=found.cols or cols)
