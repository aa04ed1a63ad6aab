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
    """Release cached memory. Without malloc_trim, glibc keeps freed blocks of up to 64 MiB in the process."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
    if _TRIM is not None:
        _TRIM(0)
