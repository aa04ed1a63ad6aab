"""Words of faults that say nothing about whether a machine computes rightly: no memory, a device out of reach, a context lost."""

from __future__ import annotations

from typing import Final

MEMORY_WORDS: Final = (
    "out of memory", "Invalid buffer size", "can't allocate memory", "DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)  # fmt: skip
"""Messages by which Metal, the CPU and the card's libraries report a lack of memory in a plain RuntimeError."""
OUT_OF_REACH_WORDS: Final = (
    "CUDA unknown error", "busy or unavailable", "_STATUS_NOT_INITIALIZED", "is not linked with support for", "No CUDA GPUs are available",
    "no CUDA-capable device", "driver shutting down",
)  # fmt: skip
"""After a sleep, beside another program, while a driver is renewed."""
LOST_WORDS: Final = ("CUDA error", "HIP error", "cuDNN error", "MIOpen", "device-side assert")
"""After such a fault everything else that the same process asks of the card may fail too."""


def is_out_of_memory(words: str) -> bool:
    return any(each in words for each in MEMORY_WORDS)
