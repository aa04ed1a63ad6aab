"""Weights made smaller while a picture model is loaded, by torchao or bitsandbytes; what cannot be done is refused, never left out."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import torch

from app.compat.planning.memory_formulas import is_quantised
from app.compat.planning.types import ModelPart, Plan, Quantised
from app.sentence import Trouble, say

WHILE_LOADING: Final[tuple[Quantised, ...]] = ("torchao-int8", "bnb-nf4", "bnb-int8")


def config(library: str, plan: Plan, part: ModelPart, compute: torch.dtype) -> Any:
    """What from_pretrained of diffusers or transformers is told; None where this part stays as it is."""
    if plan.quantised not in WHILE_LOADING or not is_quantised(part, plan.quantised):
        return None
    kinds: Any = import_module(library)
    if plan.quantised == "torchao-int8":
        return kinds.TorchAoConfig(_int8())
    if plan.quantised == "bnb-nf4":
        return kinds.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute)
    return kinds.BitsAndBytesConfig(load_in_8bit=True)


def quantise(part: torch.nn.Module) -> None:
    """In place, after loading: for parts that came out of a single file."""
    import_module("torchao.quantization").quantize_(part, _int8())


def is_small(part: torch.nn.Module) -> bool:
    return any(hasattr(weight, "__tensor_flatten__") or hasattr(weight, "quant_state") or hasattr(weight, "SCB")
               or hasattr(weight, "quant_type") for weight in part.parameters())  # fmt: skip


def stays(part: torch.nn.Module) -> bool:
    """bitsandbytes' 8-bit weights are put on the card while they are made, and cannot be moved."""
    return any(hasattr(weight, "SCB") for weight in part.parameters())


def check(plan: Plan, parts: dict[str, torch.nn.Module], wanted: tuple[ModelPart, ...]) -> None:
    """What the plan says has happened: a loader that knows no way to make weights smaller says nothing about it."""
    if plan.quantised == "none":
        return
    for part in wanted:
        if part.name in parts and is_quantised(part, plan.quantised) and not is_small(parts[part.name]):
            raise Trouble(
                say(
                    "small.not-done",
                    "{kind} weights were planned for {part}, and it was loaded without. Choose another way to make weights smaller, or none.",
                    kind=plan.quantised, part=part.name,
                ),
                cure="automatic",
            )  # fmt: skip


def refuse_single_file(plan: Plan, file: Path) -> None:
    if plan.quantised in ("bnb-nf4", "bnb-int8", "awq"):
        raise Trouble(
            say(
                "small.single-file",
                "{path} is a single file, and {kind} weights are made from a folder only. Choose torchao-int8 or none.",
                path=str(file), kind=plan.quantised,
            ),
            cure="automatic",
        )  # fmt: skip


def _int8() -> Any:
    # Inductor's settings are for compiled models, and they are the process's own.
    return import_module("torchao.quantization").Int8WeightOnlyConfig(set_inductor_config=False)
