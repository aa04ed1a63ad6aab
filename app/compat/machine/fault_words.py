"""Words of faults that say nothing about whether a machine computes rightly: no memory, a device out of reach, a context lost."""

from __future__ import annotations

from typing import Final

MEMORY_WORDS: Final = (
    "out of memory", "Invalid buffer size", "can't allocate memory", "DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED", "could not create a primitive", "could not create a memory object",
)  # fmt: skip
"""Metal, the CPU and the card's libraries report a lack of memory so, in a plain RuntimeError; the last two messages are oneDNN's."""
NO_KERNEL_WORDS: Final = "could not create a primitive descriptor"
"""oneDNN says so where it has no kernel for this processor, dtype or shape, however much memory there is."""
OUT_OF_REACH_WORDS: Final = (
    "CUDA unknown error", "busy or unavailable", "_STATUS_NOT_INITIALIZED", "is not linked with support for", "No CUDA GPUs are available",
    "no CUDA-capable device", "driver shutting down",
)  # fmt: skip
"""Such faults come after a sleep, beside another program, or while a driver is renewed."""
LOST_WORDS: Final = ("CUDA error", "HIP error", "cuDNN error", "MIOpen", "device-side assert")
"""After such a fault everything else that the same process asks of the card may fail too."""


def is_out_of_memory(words: str) -> bool:
    return NO_KERNEL_WORDS not in words and any(each in words for each in MEMORY_WORDS)
