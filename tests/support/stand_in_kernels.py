"""Kernels that stand in for a card's or a Mac's: they read the same bytes and compute in float64 on the processor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from app.compat.kernels import few_lines
from app.compat.kernels.source import GROUP, Bits, Numbers


class StandIns:
    """Counts launches by bits and lines."""

    def __init__(self, spoil: Callable[[Tensor], Tensor] = lambda made: made) -> None:
        self.launched: Counter[tuple[int, int]] = Counter()
        self.compiled: Counter[tuple[Numbers, int, int]] = Counter()
        self._spoil = spoil

    def find(self, device: str, numbers: Numbers, lines: int, bits: Bits) -> Callable[..., None]:
        self.compiled[numbers, lines, bits] += 1

        def launch(given: Tensor, weight: Tensor, scales: Tensor, made: Tensor, rows: int, columns: int) -> None:
            self.launched[bits, lines] += 1
            for each in (given, weight, scales, made):
                assert each.is_contiguous() and each.storage_offset() * each.element_size() % 16 == 0
            assert given.shape == (lines, columns) and made.numel() == lines * rows
            assert (given.dtype, made.dtype, scales.dtype) == (getattr(torch, numbers.lines),) * 2 + (getattr(torch, numbers.halves),)
            meant = read(weight, scales, bits)
            assert meant.shape == (rows, columns)
            made.view(lines, rows).copy_(self._spoil(given.double() @ meant.T))

        return launch


def read(weight: Tensor, scales: Tensor, bits: Bits) -> Tensor:
    """Return in float64 what a weight holds."""
    if bits == 16:
        return weight.double()
    if bits == 8:
        assert weight.dtype == torch.int8
        return weight.double() * scales.double()[:, None]
    assert weight.dtype == torch.uint8
    step, eight = scales.double().transpose(0, 1).repeat_interleave(GROUP, 1).unbind(-1)
    numbers = torch.stack((weight >> 4, weight & 15), -1).flatten(1)
    return (numbers.double() - 8) * step + eight


def put(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Tensor], Tensor] = lambda made: made) -> StandIns:
    stand_ins = StandIns(spoil)
    monkeypatch.setattr(few_lines, "find_kernel", stand_ins.find)
    return stand_ins
