"""Read a LoRA's file: its tensors and its scales. Nothing else of what a stranger wrote there reaches a library."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open

from app.base.bounded_json import parse_json, read_json
from app.base.path_checks import is_file
from app.engine.models.lora_header import BOUNDS, SETTINGS, refuse_lora

SCALE_MOST: Final = 1e6
TENSORS_MOST: Final = 12_000
"""Three for each layer of the largest model are 9,000."""
_NAME: Final = re.compile(r"[\w./:-]{1,400}+")
"""A tensor may be called so: peft takes the names of layers for regular expressions, and these are none."""
_LAYER: Final = re.compile(r"\^?[\w.]{1,400}+")
"""peft begins a whole name with a sign; others are a name's end."""
_ADAPTER: Final = "base_model.model."
_NOT_LORAS: Final = ("lora_controlnet", ".lokr_")
"""For a tensor with one of these in its name diffusers changes more of a model than it takes back."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Of the layers of one part of a pipeline: an alpha is divided by the layer's rank, or by the root of that."""

    alpha: float
    by_layer: Mapping[str, float]
    rooted: bool

    def find(self, layer: str, rank: int) -> float:
        """Return the alpha of a layer, for a library that divides it by the rank."""
        pieces = layer.split(".")
        names = [f"^{layer}", *(".".join(pieces[index:]) for index in range(len(pieces)))]
        alpha = next((self.by_layer[name] for name in names if name in self.by_layer), self.alpha)
        return alpha * math.sqrt(rank) if self.rooted else alpha


def read_lora(file: Path) -> tuple[dict[str, torch.Tensor], dict[str, Scales]]:
    """Return a LoRA's tensors, and the scales of each part of a pipeline for which its settings have any. Raise a Trouble for a number or a
    name that no LoRA has, ValueError for another kind of adapter."""
    with safe_open(file, "pt") as opened:
        names = list(opened.keys())
        if len(names) > TENSORS_MOST:
            raise refuse_lora(file, "number of tensors", len(names))
        tensors = {name: opened.get_tensor(name) for name in names}
        words = (opened.metadata() or {}).get(SETTINGS)
    for name, tensor in tensors.items():
        if not _NAME.fullmatch(name):
            raise refuse_lora(file, "name of a tensor", name)
        if any(each in name for each in _NOT_LORAS):
            raise ValueError(name)
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise refuse_lora(file, name, "not finite")
    try:
        settings = parse_json(words, BOUNDS) if words else {}
    except ValueError as fault:
        raise refuse_lora(file, SETTINGS, str(fault)) from fault
    return tensors, _read_scales(file, settings if isinstance(settings, dict) else {})


def read_adapter(file: Path, tensors: Mapping[str, torch.Tensor], part: str) -> tuple[dict[str, torch.Tensor], dict[str, Scales]] | None:
    """Return what peft saved of an adapter of one part, named as of a pipeline, and its scales, which lie beside it; None for any other file."""
    if not tensors or not all(name.startswith(_ADAPTER) for name in tensors):
        return None
    config = file.with_name("adapter_config.json")
    try:
        settings = read_json(config, BOUNDS) if is_file(config) else {}
    except (OSError, ValueError) as fault:
        raise refuse_lora(file, config.name, str(fault)) from fault
    named = {f"{part}.{name.removeprefix(_ADAPTER)}": tensor for name, tensor in tensors.items()}
    return named, _read_scales(file, {f"{part}.{name}": value for name, value in settings.items()} if isinstance(settings, dict) else {})


def _read_scales(file: Path, settings: Mapping[str, Any]) -> dict[str, Scales]:
    found = {}
    for field, alpha in settings.items():
        part, _, name = field.rpartition(".")
        if name != "lora_alpha":
            continue
        patterns, rooted = settings.get(f"{part}.alpha_pattern") or {}, settings.get(f"{part}.use_rslora") or False
        if not isinstance(patterns, dict):
            raise refuse_lora(file, f"{part}.alpha_pattern", patterns)
        if not isinstance(rooted, bool):
            raise refuse_lora(file, f"{part}.use_rslora", rooted)
        for layer, each in [(name, alpha), *patterns.items()]:
            if not _LAYER.fullmatch(layer):
                raise refuse_lora(file, f"{part}.alpha_pattern", layer)
            if isinstance(each, bool) or not isinstance(each, int | float) or not abs(each) <= SCALE_MOST:
                raise refuse_lora(file, f"{part}.{layer}", each)
        found[part] = Scales(alpha, patterns, rooted)
    return found
