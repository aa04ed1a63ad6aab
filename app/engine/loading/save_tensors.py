"""Write tensors as safetensors, whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from app import atomic_write


def save_tensors(tensors: dict[str, torch.Tensor], path: Path, about: dict[str, str]) -> None:
    """Whole or not at all; a full disk is said as every other file says it."""
    try:
        with atomic_write.whole(path) as unfinished:
            save_file(tensors, unfinished, about)
    except SafetensorError as fault:
        full = "No space left" in str(fault) or "os error 112" in str(fault)  # Windows' number for it
        raise OSError(errno.ENOSPC if full else errno.EIO, str(fault), str(path)) from fault
