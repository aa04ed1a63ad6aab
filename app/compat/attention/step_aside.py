"""Tell which calls of attention belong to torch alone: compiled, traced, transformed, nested, or without numbers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active, _is_tracing, _len_torch_dispatch_stack
from torch.nn import Parameter

COMPILED = "stepped aside: compiled"
"""Counted once for each place a graph calls attention from, when it is compiled: nothing of Hearth's runs with the graph."""
TRACED = "stepped aside: traced"
TRANSFORMED = "stepped aside: torch.func"
NESTED = "stepped aside: nested"
META = "stepped aside: meta"
WRAPPED = "stepped aside: wrapped"
_PLAIN = frozenset({Tensor, Parameter})
_TRACERS = tuple(torch._C._TorchDispatchModeKey.__members__.values())


def path_aside(query: Tensor, key: Tensor, value: Tensor) -> str | None:
    """The path to count where torch's own must take the call; None where there are numbers to compute with. Run at every
    call, so nothing here takes more than a few dozen nanoseconds."""
    if _are_functorch_transforms_active():
        return TRANSFORMED
    if _is_tracing() or (_len_torch_dispatch_stack() and is_traced()):
        return TRACED
    if query.is_nested or key.is_nested or value.is_nested:
        return NESTED
    if query.is_meta:
        return META
    if type(query) in _PLAIN and type(key) in _PLAIN and type(value) in _PLAIN:
        return None
    return WRAPPED if any(is_wrapped(each) for each in (query, key, value)) else None


def is_traced() -> bool:
    """Whether a mode of torch's own (proxies, fake or functional tensors) watches. Other modes may: they want the real calls."""
    return any(torch._C._get_dispatch_mode(each) is not None for each in _TRACERS)


def is_wrapped(tensor: Tensor) -> bool:
    """Whether a subclass computes by itself (fake, quantised and other wrappers), so that its memory tells nothing."""
    return type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__
