"""Keep only the active part in memory; idle parts are mapped from disk. For devices that share the computer's memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import torch
from safetensors import safe_open

from app.engine.models.loading.save_tensors import save_tensors

SMALL_BYTES: Final = 1 << 16
"""Buffers up to this size stay loaded: pipelines read some of an idle part (FLUX.2's batch norm beside its VAE)."""


class DiskParts:
    """Load a part when it is called, and unload the previous one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("*-*"):  # left by an engine that was killed
            pid = left.name.partition("-")[0]
            if pid.isdigit() and not psutil.pid_exists(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=folder))
        self._parts: dict[str, torch.nn.Module] = {}
        self._tensors: dict[str, list[torch.Tensor]] = {}
        self._active = ""
        self._undo: list[Callable[[], None]] = []

    def add(self, name: str, part: torch.nn.Module) -> None:
        """Write a part to disk and release its memory, so that the next one can be loaded."""
        if name in self._parts:
            return
        self._parts[name] = part
        self._write_out(name)
        self._undo.append(part.register_forward_pre_hook(lambda *_: self.activate(name)).remove)
        for called in ("encode", "decode"):  # a VAE is called by these, not by forward
            if hasattr(part, called):
                self._activate_on(name, part, called)

    def activate(self, name: str) -> None:
        if self._active != name:
            if self._active:
                self._release(self._active)
            self._map_in(name)
            self._active = name

    def close(self) -> None:
        """Delete the files, and with them the idle parts."""
        for undo in self._undo:
            undo()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _activate_on(self, name: str, part: Any, called: str) -> None:
        original = getattr(part, called)

        def activate_first(*args: Any, **kwargs: Any) -> Any:
            self.activate(name)
            return original(*args, **kwargs)

        setattr(part, called, activate_first)
        self._undo.append(lambda: delattr(part, called))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"

    def _write_out(self, name: str) -> None:
        """Write the weights once: they never change while loaded. A LoRA that is added later stays in memory."""
        self._tensors[name] = list(_list_tensors(self._parts[name]))
        tensors = {str(index): tensor.detach().cpu().contiguous().clone() for index, tensor in enumerate(self._tensors[name])}
        save_tensors(tensors, self._file(name), {})
        self._release(name)

    def _release(self, name: str) -> None:
        for tensor in self._tensors[name]:
            tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        if any(tensor.device.type == "mps" for tensor in self._tensors[name]):
            torch.mps.empty_cache()  # Metal's cache would keep all of the part beside the next one

    def _map_in(self, name: str) -> None:
        """Load from the file; on the CPU the tensors stay mapped, so the system may evict and reread them."""
        with safe_open(self._file(name), "pt") as file:
            for index, tensor in enumerate(self._tensors[name]):
                tensor.data = file.get_tensor(str(index)).to(tensor.device, tensor.dtype)


def _list_tensors(part: torch.nn.Module) -> Iterator[torch.Tensor]:
    """List parameters and large buffers; of torchao's packed tensors, their inner tensors."""
    large = (each for each in part.buffers() if each.nbytes > SMALL_BYTES)
    for tensor in dict.fromkeys((*part.parameters(), *large)):
        yield from _list_inner(tensor)


def _list_inner(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if hasattr(tensor, "__tensor_flatten__"):
        for name in tensor.__tensor_flatten__()[0]:
            yield from _list_inner(getattr(tensor, name))
    else:
        yield tensor
