"""Write safetensors files atomically."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from app.base import atomic_write

NUMBER: Final = re.compile(r"\(os error (\d{1,9})\)")
"""safetensors words the system's error so."""


def save_tensors(tensors: dict[str, torch.Tensor], path: Path, metadata: dict[str, str]) -> None:
    """Write `tensors` to `path`; an error of the system is raised as the OSError that any other write raises."""
    try:
        with atomic_write.replacing(path) as unfinished:
            save_file(tensors, unfinished, metadata)
    except SafetensorError as fault:
        found = NUMBER.search(str(fault))
        if found is None:
            raise
        number = int(found[1])
        if sys.platform == "win32":
            raise OSError(0, str(fault), str(path), number) from fault  # Python finds the errno of this Windows error
        raise OSError(number, os.strerror(number), str(path)) from fault
