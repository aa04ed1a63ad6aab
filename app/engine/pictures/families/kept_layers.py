"""Let as many layers of a denoiser as fit stay on the card from a picture's first step to its last; only the others are sent at each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psutil
import torch

PINNED_AT_MOST: Final = 0.25
"""Weights that are sent at each step may lock this share of the free memory; what is locked there cannot be swapped."""
_SEVERAL: Final = "__tensor_flatten__"
"""A tensor with this method consists of others: torchao's numbers and their scales. GGUF and bitsandbytes pack each weight into one."""


@contextmanager
def keep_layers(denoiser: torch.nn.Module, most_bytes: int) -> Iterator[None]:
    """Keep layers of at most `most_bytes` on the card, and pin those that are sent, as far as memory allows; all leave it at the end."""
    groups = _list_groups(denoiser)
    sizes = [_size(group) for group in groups]
    kept = [groups[at] for at in spread(sizes, most_bytes)] if most_bytes else []
    for group in kept:
        group.onload_, group.offload_ = _stay(group), _do_nothing
    _pin([group for group in groups if group not in kept])
    try:
        yield
    finally:
        for group in kept:
            del group.onload_, group.offload_
            group.offload_()


def spread(sizes: Sequence[int], most_bytes: int) -> list[int]:
    """Choose places of at most so many bytes, evenly over all: while a layer that stays computes, the next one can be sent."""
    whole, wanted, left, chosen = sum(sizes), 0.0, most_bytes, []
    for at, size in enumerate(sizes):
        wanted += size * most_bytes / max(1, whole)
        if size <= left and most_bytes - left < wanted:
            chosen.append(at)
            left -= size
    return chosen


def _list_groups(denoiser: torch.nn.Module) -> list[Any]:
    """List what diffusers sends at a time, a layer each."""
    registries: list[Any] = [module._diffusers_hook for module in denoiser.modules() if hasattr(module, "_diffusers_hook")]
    hooks = (each.get_hook("group_offloading") for each in registries)
    return [hook.group for hook in hooks if hook is not None and hook.group.modules]


def _list_tensors(group: Any) -> list[torch.Tensor]:
    return [each for module in group.modules for each in (*module.parameters(), *module.buffers())]


def _size(group: Any) -> int:
    return sum(_count_bytes(each) for each in _list_tensors(group))


def _count_bytes(weight: Any) -> int:
    """Return what is sent of a weight. One that consists of several tensors says of itself how large it would be unpacked."""
    inner = weight.__tensor_flatten__()[0] if hasattr(weight, _SEVERAL) else ()
    return sum(getattr(weight, name).nbytes for name in inner) or weight.nbytes


def _stay(group: Any) -> Any:
    """Return what brings a group to the card at its first call. At later ones it only waits for what is being sent, as diffusers does there:
    the layer before relies on that for its own weights."""
    bring, there = group.onload_, False

    def onload() -> None:
        nonlocal there
        if not there:
            bring()
            there = True
        elif group.stream is not None:
            group.stream.synchronize()

    return onload


def _do_nothing() -> None: ...


def _pin(groups: Sequence[Any]) -> None:
    """Lock weights in memory once, from where a card reads them by itself; else diffusers does so anew at each step. Those that consist of
    several tensors are left to it."""
    held = [(group, name, tensor) for group in groups for name, tensor in group.cpu_param_dict.items() if not hasattr(name, _SEVERAL)]
    pinned = sum(tensor.nbytes for _, _, tensor in held if tensor.is_pinned())
    spare = int((psutil.virtual_memory().available + pinned) * PINNED_AT_MOST) - pinned
    for group, name, tensor in held:
        if tensor.is_pinned() or tensor.nbytes > spare:
            continue
        try:
            group.cpu_param_dict[name] = name.data = tensor.pin_memory()
        except RuntimeError:  # the system allows no more
            return
        spare -= tensor.nbytes
