"""Parts that take turns in one memory: who waits lies in a file. For devices that share the computer's memory, where moving frees nothing."""

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

from app.engine.loading.save_tensors import save_tensors

SMALL_BYTES: Final = 1 << 16
"""Buffers up to this size stay: pipelines read some while their part waits (the batch norm beside FLUX.2's decoder)."""


class DiskParts:
    """One part is in memory at a time: it comes in when it is called, and the one before goes out."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("*-*"):  # by an engine that was killed
            if left.name.partition("-")[0].isdigit() and not psutil.pid_exists(int(left.name.partition("-")[0])):
                shutil.rmtree(left, ignore_errors=True)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=folder))
        self._parts: dict[str, torch.nn.Module] = {}
        self._tensors: dict[str, list[torch.Tensor]] = {}
        self._inside = ""
        self._undo: list[Callable[[], None]] = []

    def add(self, name: str, part: torch.nn.Module) -> None:
        """It waits from now on, so that the next can be loaded into the room that it had."""
        if name in self._parts:
            return
        self._parts[name] = part
        self._write_out(name)
        self._undo.append(part.register_forward_pre_hook(lambda *_: self.activate(name)).remove)
        for called in ("encode", "decode"):  # a decoder is called by these and not by forward
            if hasattr(part, called):
                self._activate_on(name, part, called)

    def activate(self, name: str) -> None:
        if self._inside != name:
            if self._inside:
                self._release(self._inside)
            self._map_in(name)
            self._inside = name

    def close(self) -> None:
        """Its files go; what waits is lost with them."""
        for undo in self._undo:
            undo()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _activate_on(self, name: str, part: Any, called: str) -> None:
        original = getattr(part, called)

        def entering(*args: Any, **kwargs: Any) -> Any:
            self.activate(name)
            return original(*args, **kwargs)

        setattr(part, called, entering)
        self._undo.append(lambda: delattr(part, called))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"

    def _write_out(self, name: str) -> None:
        """Weights never change while a model is loaded: they are written once. A LoRA that is put on later stays in memory."""
        self._tensors[name] = list(_list_tensors(self._parts[name]))
        held = {
            str(place): tensor.detach().cpu().contiguous().clone() for place, tensor in enumerate(self._tensors[name])
        }
        save_tensors(held, self._file(name), {})
        self._release(name)

    def _release(self, name: str) -> None:
        for tensor in self._tensors[name]:
            tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)

    def _map_in(self, name: str) -> None:
        """On the processor what is read stays a view of the file, which the system may drop and read again."""
        with safe_open(self._file(name), "pt") as file:
            for place, tensor in enumerate(self._tensors[name]):
                tensor.data = file.get_tensor(str(place)).to(tensor.device, tensor.dtype)


def _list_tensors(part: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Parameters and large buffers; of a packed tensor (torchao's) those that it is made of."""
    large = (each for each in part.buffers() if each.nbytes > SMALL_BYTES)
    for tensor in dict.fromkeys((*part.parameters(), *large)):
        yield from _list_inner(tensor)


def _list_inner(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if hasattr(tensor, "__tensor_flatten__"):
        for name in tensor.__tensor_flatten__()[0]:
            yield from _list_inner(getattr(tensor, name))
    else:
        yield tensor
