"""Keep what each row of Dia reads as the processor multiplies bfloat16: in oneDNN's order a row of 1.6B takes 113 ms instead of 152."""

from __future__ import annotations

from typing import Any, Final

import torch
import torch.nn.functional as F

from app.compat.machine.processor import (
    OperatorRefused,
    give_up_order,
    keeps_order,
    multiplies_bfloat16,
    multiply_reordered,
    reorder_linear,
)
from app.compat.planning.types import Dtype
from app.engine.speech.families.dia.linears import runs_once

LINES: Final = 2
"""A row with guidance has so many lines; any other number is right, too."""


class ReorderedLinear(torch.nn.Module):
    """A linear layer without bias, whose weight lies in oneDNN's order alone; in the plain one once that is refused."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(reorder_linear(weight, LINES), requires_grad=False)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        if self.weight.is_mkldnn:
            try:
                return multiply_reordered(given, self.weight)
            except OperatorRefused as fault:
                give_up_order("linear", given.dtype, str(fault))
                self.weight = torch.nn.Parameter(self.weight.to_dense(), requires_grad=False)
        return F.linear(given, self.weight)


def is_quicker_here(compute: Dtype) -> bool:
    """Tell whether this processor multiplies that itself, as bfloat16; elsewhere the plain order is quicker for two lines."""
    return compute == "bfloat16" and multiplies_bfloat16() and keeps_order("linear", torch.bfloat16)


def reorder_weights(model: Any) -> None:
    """Replace the layers that every row runs, after fuse_projections; the three views of its matrix go. Layers from the first that is
    refused stay as they are."""
    for layer in model.model.decoder.layers:
        attention = layer.self_attention
        del attention.q_proj, attention.k_proj, attention.v_proj
    for name in [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear) and not runs_once(name)]:
        linear = model.get_submodule(name)
        assert linear.bias is None, name
        try:
            model.set_submodule(name, ReorderedLinear(linear.weight.detach()))
        except OperatorRefused as fault:
            return give_up_order("linear", linear.weight.dtype, str(fault))
