"""Pack the linear layers of Dia in 8 or 4 bits: what each row reads as small as asked, what runs once a part in 8 bits."""

from __future__ import annotations

from typing import Any, Final

import torch

from app.compat.planning.types import Product
from app.engine.models.loading.packed_linears import Bits, FewLinesLinear, pack_linear, scales_dtype
from app.engine.speech.families.dia.linears import move_others, runs_once

KEPT_WHOLE: Final = "logits_dense"
"""This layer's numbers are the answer."""


def pack_voice(model: Any, bits: Bits, device: str, stored: torch.dtype, compute: torch.dtype, product: Product = "torch") -> None:
    """Pack a model that lies on the processor, and move it to the device. Each layer's plain weight goes before the next is packed.
    `stored`: dtype of the embeddings."""
    for layer in model.model.decoder.layers:
        attention = layer.self_attention
        weight = torch.cat([each.weight.detach() for each in (attention.q_proj, attention.k_proj, attention.v_proj)])
        del attention.q_proj, attention.k_proj, attention.v_proj
        attention.qkv_proj = pack_linear(weight, bits, device, compute, product)
    names = [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear) and name != KEPT_WHOLE]
    for name in names:
        linear = model.get_submodule(name)
        assert linear.bias is None, name
        model.set_submodule(name, pack_linear(linear.weight.detach(), 8 if runs_once(name) else bits, device, compute, product))
    if product != "torch":
        whole = model.get_submodule(KEPT_WHOLE)
        model.set_submodule(KEPT_WHOLE, FewLinesLinear(whole.weight.detach().to(scales_dtype(device, compute)), product))
    for table in model.modules():
        if isinstance(table, torch.nn.Embedding):
            table.weight.data = table.weight.data.to(stored)
    move_others(model, torch.device(device), compute)
