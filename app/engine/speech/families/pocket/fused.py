"""Join layers of the model that read the same numbers into one product, and pack what each frame reads in 8 or 4 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from app.engine.models.loading.packed_linears import Bits, MakeLinear, join_linears, make_linear, pack_linear, replace_linears


def fuse(model: Any, make: MakeLinear = make_linear) -> None:
    """Give each layer `qkv_proj` in place of three layers, and the flow head `adaptation` in place of one in each of its blocks."""
    for layer in model.model.layers:
        attention = layer.self_attn
        attention.qkv_proj = join_linears([attention.q_proj, attention.k_proj, attention.v_proj], make)
        del attention.q_proj, attention.k_proj, attention.v_proj
    head = model.flow_head
    blocks = [*head.layers, head.final_layer]
    head.adaptation = join_linears([block.adaln_proj for block in blocks], make)
    for block in blocks:
        del block.adaln_proj


def pack(model: Any, bits: Bits, device: str, compute: torch.dtype) -> None:
    """Pack the layers of a model that lies on the processor, fused, and move it to the device. What is small stays whole: what reads and makes
    frames, and says where a part ends."""

    def make(weight: Tensor, bias: Tensor | None) -> torch.nn.Module:
        return pack_linear(weight, bits, device, compute, bias=bias)

    fuse(model, make)
    for block in (*model.model.layers, *model.flow_head.layers):
        replace_linears(block, make)
    model.to(device)
