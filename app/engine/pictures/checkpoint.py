"""The last good latents of a picture on disk, with the scheduler's memory and the noise to come, so that a broken run goes on from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from app.engine.loading.save_tensors import save_tensors

_PLAIN = (int, float, bool, str, type(None))
_NEW = object()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    done: int
    latents: torch.Tensor
    scheduler: Mapping[str, Any]
    generator: torch.Tensor
    complete: bool = False
    """All steps are done, and these are what the decoder gets."""


def save(path: Path, kept: Checkpoint, fingerprint: str) -> None:
    tensors = {"latents": kept.latents.float().cpu().contiguous(), "generator": kept.generator}
    plain: dict[str, Any] = {}
    for name, value in kept.scheduler.items():
        _flatten(tensors, plain, name, value)
    about = {
        "done": str(kept.done),
        "whole": str(int(kept.whole)),
        "for": fingerprint,
        "scheduler": json.dumps(plain),
        "dtype": str(kept.latents.dtype).removeprefix("torch."),
    }
    save_tensors(tensors, path, about)


def load(path: Path, fingerprint: str) -> Checkpoint | None:
    """None where there is nothing, or it belongs to another request, or was damaged: the picture then starts anew."""
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            if about.get("for") != fingerprint:
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    except (OSError, SafetensorError):
        return None
    latents = tensors.pop("latents").to(getattr(torch, about["dtype"]))
    generator = tensors.pop("generator")
    scheduler = {name: _unflatten(tensors, name, value) for name, value in json.loads(about["scheduler"]).items()}
    return Checkpoint(int(about["done"]), latents, scheduler, generator, about["whole"] == "1")


def changed_state(scheduler: Any, before: Mapping[str, Any]) -> dict[str, Any]:
    """What a scheduler has come to remember since `before`: its history of outputs, its place, its counters."""
    return {
        name: list(value) if isinstance(value, list) else value
        for name, value in vars(scheduler).items()
        if isinstance(value, list)
        or (isinstance(value, (torch.Tensor, *_PLAIN)) and value is not before.get(name, _NEW))
    }


def restore_state(scheduler: Any, memory: Mapping[str, Any], device: torch.device) -> None:
    for name, value in memory.items():
        setattr(scheduler, name, _move(value, getattr(scheduler, name, None), device))


def _move(value: Any, there: Any, device: torch.device) -> Any:
    """To where the run computes now; a schedule that is kept on the CPU stays there."""
    if isinstance(value, list):
        return [_move(each, None, device) for each in value]
    if isinstance(value, torch.Tensor):
        return value.to(there.device if isinstance(there, torch.Tensor) else device)
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
