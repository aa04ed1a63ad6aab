"""Compile kernels by torch for Metal, and launch them in torch's stream."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from app.compat.kernels.source import THREADS, count_threads


class Launch:
    """A compiled kernel."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *given: Tensor | int) -> None:
        """Launch it with lines, weight, scales, the place of the products, rows and columns."""
        rows = given[4]
        assert isinstance(rows, int)
        self._function(*given, threads=count_threads(rows), group_size=THREADS, arg_casts="int32")


def compile_kernel(source: str, name: str) -> Launch:
    """Raise AttributeError, RuntimeError or SyntaxError where it cannot be compiled here."""
    return Launch(getattr(torch.mps.compile_shader(source), name))
