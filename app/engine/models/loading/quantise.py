"""Quantise weights while they are loaded, with torchao or bitsandbytes: the one place for quantiser configs. Refuse what cannot be done."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import torch

from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.memory_formulas import is_quantised
from app.compat.planning.types import ModelPart, Plan, Quantised
from app.engine.models.model import FROM_FOLDERS

WHILE_LOADING: Final[tuple[Quantised, ...]] = ("torchao-int8", "bnb-nf4", "bnb-int8")

_READ_PACKED: Final = frozenset({"awq", "bitsandbytes", "torchao"})
"""Weights of a folder may be packed so already. The libraries know more ways, some of which fetch kernels from the hub."""


def check_packing(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse weights that are packed in a way of which Hearth knows nothing."""
    packing = config.get("quantization_config") or {}
    named = (
        packing.get("quant_method", "bitsandbytes" if {"load_in_4bit", "load_in_8bit"} & set(packing) else "none")
        if isinstance(packing, dict)
        else packing
    )
    if packing and named not in _READ_PACKED:
        raise Trouble(
            say(
                "quantise.unknown",
                "The weights in {folder} are packed as {kind}, which Hearth does not read. Choose this model with full weights.",
                folder=str(folder),
                kind=str(named),
            )
        )


def make_config(library: str, kind: Quantised, compute: torch.dtype) -> Any:
    """Return the quantization_config for from_pretrained of `library`, diffusers or transformers."""
    configs: Any = import_module(library)
    if kind == "torchao-int8":
        return configs.TorchAoConfig(_make_int8_config())
    if kind == "bnb-nf4":
        return configs.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute)
    if kind == "bnb-int8":
        return configs.BitsAndBytesConfig(load_in_8bit=True)
    raise Trouble(
        say(
            "loading.gguf",
            "{kind} weights are a separate file and cannot be made while loading. "
            "Choose a model that comes with one, or set quantisation to automatic.",
            kind=kind,
        ),
        cure="automatic",
    )


def make_part_config(library: str, plan: Plan, part: ModelPart, compute: torch.dtype) -> Any:
    """Return the quantization_config for one part of a pipeline; None if it is not quantised while loading."""
    if plan.quantised not in WHILE_LOADING or not is_quantised(part, plan.quantised):
        return None
    return make_config(library, plan.quantised, compute)


def quantise_part(part: torch.nn.Module) -> None:
    """Quantise a part in place with torchao, for parts that came out of a single file."""
    import_module("torchao.quantization").quantize_(part, _make_int8_config())


def has_quantised_weights(part: torch.nn.Module) -> bool:
    marks = ("__tensor_flatten__", "quant_state", "SCB", "quant_type")
    return any(hasattr(weight, mark) for weight in part.parameters() for mark in marks)


def is_fixed_on_device(part: torch.nn.Module) -> bool:
    """Tell whether a part cannot be moved: bitsandbytes puts 8-bit weights on the card while it makes them."""
    return any(hasattr(weight, "SCB") for weight in part.parameters())


def check_quantised(plan: Plan, loaded: dict[str, torch.nn.Module], parts: tuple[ModelPart, ...]) -> None:
    """Raise a Trouble if a part was planned as quantised but is not: loaders without support ignore the config silently."""
    if plan.quantised == "none":
        return
    for part in parts:
        if part.name in loaded and is_quantised(part, plan.quantised) and not has_quantised_weights(loaded[part.name]):
            raise Trouble(
                say(
                    "quantise.not-done",
                    "{part} should have {kind} weights but was loaded without them. Choose another quantisation, or none.",
                    kind=plan.quantised,
                    part=part.name,
                ),
                cure="automatic",
            )


def refuse_single_file(plan: Plan, file: Path) -> None:
    if plan.quantised in FROM_FOLDERS:
        raise Trouble(
            say(
                "quantise.single-file",
                "{path} is a single file; {kind} weights can only be made from a folder. Choose torchao-int8 or none.",
                path=str(file),
                kind=plan.quantised,
            ),
            cure="automatic",
        )


def _make_int8_config() -> Any:
    # Inductor's settings matter to compiled models only, and are global to the process.
    return import_module("torchao.quantization").Int8WeightOnlyConfig(set_inductor_config=False)
