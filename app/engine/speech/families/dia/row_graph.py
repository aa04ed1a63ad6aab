"""Replay a row of Dia as one captured CUDA graph: a row is some thousand launches, many of which take longer than what they compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import torch
from torch import Tensor

from app.engine.models.loading.capture_failed import CaptureFailed
from app.engine.speech.families.dia.decoder_layers import DecoderLayers

BUCKET: Final = 256
"""Each graph reaches so many rows further than the one before: attention reads up to so many for nothing, and a capture takes a few
rows' time. It is a multiple of 8, as torch's kernels want masks to lie."""
WARM_UPS: Final = 2
"""So many runs come before a capture, which may neither make handles nor choose kernels."""


def round_up(rows: int) -> int:
    """Return how many rows the graphs of a part of so many reach."""
    return -(-rows // BUCKET) * BUCKET


@cache
def _side_stream() -> torch.cuda.Stream:
    """One for all parts: torch keeps megabytes for cuBLAS for each stream that ever multiplied."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


class GraphedRows:
    """The rows of one part after its prompt, in layers of `round_up` rows. What a graph reads keeps its address; its memory is a few
    megabytes of a pool that all graphs of the part share, since only the latest is replayed."""

    def __init__(self, layers: DecoderLayers, channels: int, device: str) -> None:
        self._layers, self._mask = layers, layers.clear_ahead()
        self._codes = torch.zeros((1, channels), dtype=torch.long, device=device)
        self._position = torch.zeros(1, dtype=torch.long, device=device)
        self._pool = torch.cuda.graph_pool_handle()
        self._reach = 0
        self._graph: torch.cuda.CUDAGraph
        self._logits: Tensor

    def __call__(self, codes: Tensor) -> Tensor:
        """As DecoderLayers for one row; the logits hold until the next call."""
        row = self._layers.length
        self._codes.copy_(codes)
        self._position.fill_(row)
        self._mask.index_fill_(3, self._position, 0)
        if row >= self._reach:
            self._reach = round_up(row + 1)
            mask = self._mask[..., : self._reach]
            # The graph before goes only after this one is captured: their pool lives as long as one of them.
            self._graph, self._logits = self._capture(lambda: self._layers.compute_at(self._codes, self._position, mask))
        self._graph.replay()
        self._layers.length += 1
        return self._logits

    def _capture(self, compute: Callable[[], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Return a graph of what computes a tensor, and where each replay puts it. Computing it twice changes nothing."""
        side = _side_stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                compute()
        torch.cuda.current_stream().wait_stream(side)
        try:
            graph = torch.cuda.CUDAGraph()
            # Only what this thread does may spoil a capture: another may read how much memory is free.
            with torch.cuda.graph(graph, self._pool, side, "thread_local"):
                made = compute()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as fault:
            raise CaptureFailed(str(fault)) from fault
        return graph, made
