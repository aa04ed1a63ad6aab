"""Recognise attention calls that belong to torch alone: compiled, traced, transformed, nested, or without data."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Parameter

from app.compat.machine.processor import find_private

COMPILED = "stepped aside: compiled"
"""This path is counted once per call site when a graph is compiled: no code of Hearth's runs inside the graph."""
TRACED = "stepped aside: traced"
TRANSFORMED = "stepped aside: torch.func"
NESTED = "stepped aside: nested"
META = "stepped aside: meta"
WRAPPED = "stepped aside: wrapped"
_PLAIN = frozenset({Tensor, Parameter})
_are_transforms_active = find_private("_C._are_functorch_transforms_active", bool)
_is_tracing = find_private("_C._is_tracing", torch.jit.is_tracing)  # type: ignore[attr-defined]
_count_modes = find_private("_C._len_torch_dispatch_stack", int)
_get_mode = find_private("_C._get_dispatch_mode", lambda _: None)
_TRACERS = tuple(find_private("_C._TorchDispatchModeKey.__members__.values", tuple)())


def path_aside(query: Tensor, key: Tensor, value: Tensor) -> str | None:
    """Return the path to count if torch must take the call, or None if there is data to compute with. Runs at every
    call, so each check takes at most a few dozen nanoseconds."""
    if _are_transforms_active():
        return TRANSFORMED
    if _is_tracing() or (_count_modes() and is_traced()):
        return TRACED
    if query.is_nested or key.is_nested or value.is_nested:
        return NESTED
    if query.is_meta or key.is_meta or value.is_meta:
        return META
    if type(query) in _PLAIN and type(key) in _PLAIN and type(value) in _PLAIN:
        return None
    return WRAPPED if any(is_wrapped(each) for each in (query, key, value)) else None


def is_traced() -> bool:
    """Return whether a torch mode (proxies, fake or functional tensors) is tracing. Other modes want the real calls."""
    return any(_get_mode(each) is not None for each in _TRACERS)


def is_wrapped(tensor: Tensor) -> bool:
    """Return whether a subclass computes by itself (fake, quantised and other wrappers): its layout means nothing."""
    return type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__
