"""Store a picture's last good latents with the scheduler's and the generator's state, so that a broken run can resume."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from app.engine.models.loading.generator_state import is_state
from app.engine.models.loading.save_tensors import save_tensors

_ODD = (LookupError, TypeError, ValueError, AttributeError)
"""A scheduler whose state is not its own raises these."""
_PLAIN = (int, float, bool, str, type(None))
_NEW = object()
_DTYPES = {str(each).removeprefix("torch."): each for each in (torch.float16, torch.bfloat16, torch.float32, torch.float64)}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    done: int
    latents: torch.Tensor
    scheduler: Mapping[str, Any]
    generator: torch.Tensor
    complete: bool = False
    """All steps are done; only decoding is left."""


def save(path: Path, checkpoint: Checkpoint, fingerprint: str) -> None:
    tensors = {"latents": checkpoint.latents.float().cpu().contiguous(), "generator": checkpoint.generator}
    plain: dict[str, Any] = {}
    for name, value in checkpoint.scheduler.items():
        _flatten(tensors, plain, name, value)
    metadata = {
        "done": str(checkpoint.done),
        "whole": str(int(checkpoint.complete)),
        "for": fingerprint,
        "scheduler": json.dumps(plain),
        "dtype": str(checkpoint.latents.dtype).removeprefix("torch."),
    }
    save_tensors(tensors, path, metadata)


def load(path: Path, fingerprint: str) -> Checkpoint | None:
    """Return the checkpoint; None if there is none, it is damaged or it belongs to another request. It may come from another machine."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("for") != fingerprint:
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        latents = tensors.pop("latents").to(_DTYPES[metadata["dtype"]])
        generator = tensors.pop("generator")
        scheduler = {name: _unflatten(tensors, name, value) for name, value in json.loads(metadata["scheduler"]).items()}
        return Checkpoint(int(metadata["done"]), latents, scheduler, generator, metadata["whole"] == "1")
    except (OSError, SafetensorError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def changed_state(scheduler: Any, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scheduler's state that changed since `before`: past outputs, position, counters."""
    return {
        name: list(value) if isinstance(value, list) else value
        for name, value in vars(scheduler).items()
        if isinstance(value, list) or (isinstance(value, (torch.Tensor, *_PLAIN)) and value is not before.get(name, _NEW))
    }


def take_row(state: Mapping[str, Any], shape: torch.Size, row: int) -> dict[str, Any]:
    """Return the state as it would be of one picture alone; `shape`: of the latents of all."""
    return {name: _take_row(value, shape, row) for name, value in state.items()}


def _take_row(value: Any, shape: torch.Size, row: int) -> Any:
    if isinstance(value, list):
        return [_take_row(each, shape, row) for each in value]
    return value[row : row + 1] if isinstance(value, torch.Tensor) and value.shape == shape else value


def fits(checkpoint: Checkpoint, scheduler: Any, generator: torch.Generator, sample: torch.Tensor) -> bool:
    """Tell whether a run can go on from a checkpoint: its tensors have the run's shapes, and it replaces no method."""
    held = [each for value in checkpoint.scheduler.values() for each in (value if isinstance(value, list) else [value])]
    tensors = [each for each in held if isinstance(each, torch.Tensor)]
    return (
        checkpoint.latents.shape == sample.shape
        and bool(torch.isfinite(checkpoint.latents).all())
        and is_state(checkpoint.generator, generator)
        and not any(hasattr(type(scheduler), name) for name in checkpoint.scheduler)
        and all(each.shape == sample.shape or each.ndim <= 1 for each in tensors)
    )


def is_to_blame(start: Checkpoint | None, fault: Exception) -> bool:
    """Tell whether a run failed by what it went on from, whoever made it. Whatever else another machine's ends in, the session answers."""
    return start is not None and not start.complete and isinstance(fault, _ODD)


def restore_state(scheduler: Any, state: Mapping[str, Any], device: torch.device) -> None:
    for name, value in state.items():
        setattr(scheduler, name, _move(value, getattr(scheduler, name, None), device))


def _move(value: Any, current: Any, device: torch.device) -> Any:
    """Move tensors to the device of the attribute's current value, else to `device`."""
    if isinstance(value, list):
        return [_move(each, None, device) for each in value]
    if isinstance(value, torch.Tensor):
        return value.to(current.device if isinstance(current, torch.Tensor) else device)
    return value


def _flatten(tensors: dict[str, torch.Tensor], plain: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        tensors[name] = value.detach().cpu().contiguous().clone()
        plain[name] = {"tensor": name}
    elif isinstance(value, list):
        inner: dict[str, Any] = {}
        for index, each in enumerate(value):
            _flatten(tensors, inner, f"{name}.{index}", each)
        plain[name] = {"list": [inner.get(f"{name}.{index}") for index in range(len(value))]}
    elif isinstance(value, _PLAIN):
        plain[name] = {"value": value}


def _unflatten(tensors: Mapping[str, torch.Tensor], name: str, row: Any) -> Any:
    if row is None:
        return None
    if "tensor" in row:
        return tensors[row["tensor"]]
    if "list" in row:
        return [_unflatten(tensors, f"{name}.{index}", each) for index, each in enumerate(row["list"])]
    return row["value"]
