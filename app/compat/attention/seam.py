"""Replace torch's attention by a plan for the whole process, count calls, and restore it."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F

from app.compat.attention import sdpa_kernels
from app.compat.attention.compose import Attention, compose
from app.compat.machine.processor import tell_lacking
from app.compat.planning.types import Chunk, Plan, Ran

FORCE_GQA = "TRANSFORMERS_SDPA_FORCE_GQA"
"""If set, transformers passes K and V unchanged; else it repeats them on older Macs and under masks on CUDA."""


class Seam:
    """Live state while a plan is applied: the number of calls, and the paths they took."""

    def __init__(self, plan: Plan, read_chunk_q: Callable[[], Chunk] | None = None) -> None:
        self.plan = plan
        self.paths: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._largest: Ran | None = None
        self._largest_scores = -1
        self._found: Attention = F.scaled_dot_product_attention
        self._outer: Seam | None = next((each for each in _seams if each.attention is self._found), None)
        self.attention: Attention = compose(plan, self._found, read_chunk_q, self._observe)

    @property
    def calls(self) -> int:
        with self._lock:
            return self.paths.total()

    def take_largest(self) -> Ran | None:
        """Return how the largest call since the last time ran, or None if there was none."""
        with self._lock:
            largest, self._largest, self._largest_scores = self._largest, None, -1
        return largest

    def _observe(self, path: str, scores: int = 0, rows: int = 0, queries: int = 0) -> None:
        with self._lock:
            self.paths[path] += 1
            if scores > self._largest_scores:
                self._largest, self._largest_scores = Ran(path, rows, queries), scores
        if self._outer is not None:
            self._outer._observe(path, scores, rows, queries)


def switch_cudnn(on: bool) -> None:
    """Switch cuDNN for a while. `torch.backends.cudnn.enabled = ...` refuses every value once `torch.backends.disable_global_flags()` was
    called, which is meant for settings that nobody takes back; torch's own `flags()` sets it past that, too."""
    if torch.backends.cudnn.enabled != on:
        torch._C._set_cudnn_enabled(on)


def read_split_sums() -> tuple[bool, bool]:
    """Return whether a card may round parts of a product's sums to float16 and to bfloat16."""
    products = torch.backends.cuda.matmul
    return products.allow_fp16_reduced_precision_reduction, products.allow_bf16_reduced_precision_reduction


def set_split_sums(allowed: tuple[bool, bool]) -> None:
    products = torch.backends.cuda.matmul
    if read_split_sums() != allowed:
        products.allow_fp16_reduced_precision_reduction, products.allow_bf16_reduced_precision_reduction = allowed


class _World:
    """Global settings that a seam changes besides the function, as they were before the first seam."""

    def __init__(self) -> None:
        self.fast_path = torch.backends.mha.get_fastpath_enabled()
        self.switches = sdpa_kernels.switches()
        self.library = torch.backends.cudnn.enabled
        self.split_sums = read_split_sums()
        self.force_gqa = os.environ.get(FORCE_GQA)

    def put(self, plan: Plan | None) -> None:
        """Set what differs from the plan's settings, or from those found."""
        # torch's fast path for MultiheadAttention computes attention in C++, where no seam sees it.
        fast_path = self.fast_path and plan is None
        if torch.backends.mha.get_fastpath_enabled() != fast_path:
            torch.backends.mha.set_fastpath_enabled(fast_path)
        limited = plan is not None and sdpa_kernels.restricts(plan)
        sdpa_kernels.switch(*(sdpa_kernels.allowed(plan.kernels) if plan is not None and limited else self.switches))
        switch_cudnn(self.library and (plan is None or plan.convolution == "library"))
        set_split_sums(self.split_sums if plan is None else (False, False))
        force = self.force_gqa if plan is None else "1"
        if force is None:
            os.environ.pop(FORCE_GQA, None)
        else:
            os.environ[FORCE_GQA] = force


_lock = threading.RLock()
_seams: list[Seam] = []
_world: list[_World] = []


@contextmanager
def applied(plan: Plan, read_chunk_q: Callable[[], Chunk] | None = None) -> Iterator[Seam]:
    """Replace torch's attention by a plan for the whole process and every thread. Nested calls: the innermost plan
    wins. `read_chunk_q`: the plan's chunk_q at each call, in any thread, if it may change meanwhile."""
    tell_lacking()
    with _lock:
        if not _seams:
            _world.append(_World())
        seam = Seam(plan, read_chunk_q)
        _seams.append(seam)
        F.scaled_dot_product_attention = seam.attention
        try:
            _world[0].put(plan)
        except BaseException:
            _leave(seam)
            raise
    try:
        yield seam
    finally:
        with _lock:
            _leave(seam)


def _leave(seam: Seam) -> None:
    """Remove a seam. Seams may be removed in any order; relink any seam that wrapped this one."""
    _seams.remove(seam)
    if F.scaled_dot_product_attention is seam.attention:
        F.scaled_dot_product_attention = seam._found
    for each in _seams:
        if each._found is seam.attention:
            each._found, each._outer = seam._found, seam._outer
    _world[0].put(_seams[-1].plan if _seams else None)
    if not _seams:
        _world.clear()
