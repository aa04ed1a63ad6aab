"""Return unused memory to the system: torch's caches, and free blocks of the C library."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from typing import Final

import torch

_TRIM: Final = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
"""glibc has it, musl does not."""
_EMPTY_HOST_CACHE: Final = getattr(torch.accelerator, "empty_host_cache", None)
"""It returns memory that was locked for a card; older torch keeps it."""


def release() -> None:
    """Release cached memory. Without malloc_trim, glibc keeps freed blocks of up to 64 MiB in the process."""
    gc.collect()
    if torch.cuda.is_available():
        with suppress(RuntimeError):  # a card that answers nothing any more; the processor may still be used
            torch.cuda.empty_cache()
            if _EMPTY_HOST_CACHE is not None:
                _EMPTY_HOST_CACHE()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
    if _TRIM is not None:
        _TRIM(0)
