"""Join layers of the model that read the same numbers into one product, and pack what each frame reads in 8 or 4 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from app.compat.planning.types import Product
from app.engine.models.loading.packed_linears import Bits, MakeLinear, join_linears, make_linear, pack_linear, replace_linears
from app.engine.speech.families.vibevoice.stream import list_deep, prepare


def fuse(model: Any, device: str, make: MakeLinear = make_linear) -> None:
    """Give each layer `qkv_proj` in place of three layers, each gated product `gate_up_proj` in place of two, and the diffusion head `adaptation`
    in place of one in each of its blocks."""
    head = model.diffusion_head
    for layer in model.language_model.layers:
        attention = layer.self_attn
        attention.qkv_proj = join_linears([attention.q_proj, attention.k_proj, attention.v_proj], make)
        del attention.q_proj, attention.k_proj, attention.v_proj
    for gated in (*(layer.mlp for layer in model.language_model.layers), *(layer.ffn for layer in head.layers)):
        gated.gate_up_proj = join_linears([gated.gate_proj, gated.up_proj], make)
        del gated.gate_proj, gated.up_proj
    head.adaptation = join_linears([*(layer.linear for layer in head.layers), head.final_layer.linear_1], make)
    for layer in head.layers:
        del layer.linear
    del head.final_layer.linear_1
    for tower in _list_towers(model):
        prepare(tower, device)


def pack(model: Any, bits: Bits, device: str, compute: torch.dtype, product: Product) -> None:
    """Pack the layers of a model that lies on the processor, fused, and move it to the device. What makes and hears sound has 8 bits at least;
    what is small stays whole: what reads and makes frames, and what has many rows a frame."""

    def make(weight: Tensor, bias: Tensor | None, bits: Bits = bits) -> torch.nn.Module:
        return pack_linear(weight, bits, device, compute, product, bias)

    fuse(model, device, make)
    for layer in (*model.language_model.layers, *model.diffusion_head.layers):
        replace_linears(layer, make)
    for deep in (each for tower in _list_towers(model) for each in list_deep(tower)):
        replace_linears(deep, lambda weight, bias: make(weight, bias, 8))
    model.to(device)


def _list_towers(model: Any) -> list[Any]:
    return [model.audio_tower.encoder, model.audio_tower.decoder, model.semantic_tokenizer_encoder]
