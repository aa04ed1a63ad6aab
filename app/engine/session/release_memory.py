"""Return unused memory to the system: torch's caches, and free blocks of the C library."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Final

import torch

_TRIM: Final = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
"""glibc has it, musl does not."""


def release() -> None:
    """Without the last line a freed block of up to 64 MiB stays the process's own on glibc: less was asked for, and the same is held."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
    if _TRIM is not None:
        _TRIM(0)
