"""Keep only the active part in memory; idle parts are mapped from disk. For devices that share the computer's memory."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
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
        self._places: dict[str, dict[Path, dict[int, str]]] = {}
        """Part -> file -> what each tensor, by its place in the list, is called there."""
        self._beside: dict[str, str] = {}
        """Part -> the one in whose turn it is loaded: itself, or another."""
        self._active = ""
        self._undo: dict[str, list[Callable[[], None]]] = {}

    def add(self, name: str, part: torch.nn.Module, files: Iterable[Path] = (), beside: str = "") -> None:
        """Release a part's memory, so that the next one can be loaded. What `files`, which it was loaded from, do not hold as it is now is written
        to disk. `beside`: the part with which it is loaded, as both run in turn at each step."""
        if name in self._parts:
            return
        self._parts[name] = part
        self._tensors[name] = list(list_tensors(part))
        self._places[name] = self._find_places(name, files)
        self._write_out(name)
        self._release(name)
        self._beside[name] = beside or name
        self._undo[name] = [part.register_forward_pre_hook(lambda *_: self.activate(name)).remove]
        if self._active == self._beside[name]:
            self._map_in(name)
        for called in ("encode", "decode"):  # a VAE is called by these, not by forward
            if hasattr(part, called):
                self._activate_on(name, part, called)

    def activate(self, name: str) -> None:
        turn = self._beside[name]
        if self._active != turn:
            for each in self._list_beside(self._active):
                self._release(each)
            for each in self._list_beside(turn):
                self._map_in(each)
            self._active = turn

    def _list_beside(self, turn: str) -> list[str]:
        return [name for name, with_it in self._beside.items() if with_it == turn]

    def drop(self, name: str) -> None:
        """Forget a part, and delete what was written of it."""
        self._release(name)  # Windows deletes no mapped file
        for undo in self._undo.pop(name):
            undo()
        for file in self._places.pop(name):
            file.unlink(missing_ok=True)
        del self._parts[name], self._tensors[name], self._beside[name]

    def close(self) -> None:
        """Delete the files, and with them the idle parts."""
        for undo in (each for undos in self._undo.values() for each in undos):
            undo()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _activate_on(self, name: str, part: Any, called: str) -> None:
        original = getattr(part, called)

        def activate_first(*args: Any, **kwargs: Any) -> Any:
            self.activate(name)
            return original(*args, **kwargs)

        setattr(part, called, activate_first)
        self._undo[name].append(lambda: delattr(part, called))

    def _find_places(self, name: str, files: Iterable[Path]) -> dict[Path, dict[int, str]]:
        """Find tensors whose numbers and dtype are those in a file; a link keeps that file where its model is deleted meanwhile."""
        part, found = self._parts[name], dict[Path, dict[int, str]]()
        prefix = getattr(part, "base_model_prefix", "")
        named = {id(tensor): tensor_name for tensor_name, tensor in (*part.named_parameters(), *part.named_buffers())}
        for number, original in enumerate(files if sys.platform != "win32" else ()):  # there a mapped file could not be deleted
            file = self._folder / f"{name}-{number}.safetensors"
            try:
                os.link(original.resolve(), file)
            except OSError:  # on another disk, or somebody else's
                continue
            with safe_open(file, "pt") as held:
                keys = set(held.keys())
                for index, tensor in enumerate(self._tensors[name]):
                    called = named.get(id(tensor), "")
                    key = next((each for each in (called, f"{prefix}.{called}") if each in keys), None)
                    if key is not None and _is_same(held.get_tensor(key), tensor):
                        found.setdefault(file, {})[index] = key
            if file not in found:
                file.unlink()
        return found

    def _write_out(self, name: str) -> None:
        """Write the other weights once: they never change while loaded. A LoRA that is added later stays in memory."""
        there = {index for places in self._places[name].values() for index in places}
        left = {index: tensor for index, tensor in enumerate(self._tensors[name]) if index not in there}
        if not left:
            return
        file = self._folder / f"{name}.safetensors"
        save_tensors({str(index): tensor.detach().cpu().contiguous().clone() for index, tensor in left.items()}, file, {})
        self._places[name][file] = {index: str(index) for index in left}

    def _release(self, name: str) -> None:
        for tensor in self._tensors[name]:
            tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        if any(tensor.device.type == "mps" for tensor in self._tensors[name]):
            torch.mps.empty_cache()  # Metal's cache would keep all of the part beside the next one

    def _map_in(self, name: str) -> None:
        """Load from the file; on the CPU the tensors stay mapped, so the system may evict and reread them."""
        for path, places in self._places[name].items():
            with safe_open(path, "pt") as file:
                for index, key in places.items():
                    tensor = self._tensors[name][index]
                    tensor.data = file.get_tensor(key).to(tensor.device, tensor.dtype)


def _is_same(held: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Compare bytes: eight at a time, which takes a tenth of the time that torch takes for halves."""
    if (held.dtype, held.shape) != (tensor.dtype, tensor.shape):
        return False
    one, other = (each.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy() for each in (held, tensor))
    wide = np.uint8 if one.nbytes % 8 else np.int64
    return np.array_equal(one.view(wide), other.view(wide))


def list_tensors(part: torch.nn.Module) -> Iterator[torch.Tensor]:
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
