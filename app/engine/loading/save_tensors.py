"""Write safetensors files atomically."""

from __future__ import annotations

import errno
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from app import atomic_write


def save_tensors(tensors: dict[str, torch.Tensor], path: Path, metadata: dict[str, str]) -> None:
    """Write `tensors` to `path`; a full disk raises OSError with ENOSPC, as any other write does."""
    try:
        with atomic_write.replacing(path) as unfinished:
            save_file(tensors, unfinished, metadata)
    except SafetensorError as fault:
        full = "No space left" in str(fault) or "os error 112" in str(fault)  # 112: ERROR_DISK_FULL on Windows
        raise OSError(errno.ENOSPC if full else errno.EIO, str(fault), str(path)) from fault
