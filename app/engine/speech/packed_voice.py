"""Pack the linear layers of Dia in 8 or 4 bits: what each row reads as small as asked, what runs once a part in 8 bits."""

from __future__ import annotations

from typing import Any, Final

import torch

from app.engine.loading.packed_linears import Bits, pack_linear
from app.engine.speech.fused_projections import fuse_projections
from app.engine.speech.linears import move_others, runs_once

KEPT_WHOLE: Final = "logits_dense"
"""The layer whose numbers are the answer."""


def pack_voice(model: Any, bits: Bits, device: str, compute: torch.dtype) -> None:
    """Pack a model that lies on the processor, layer by layer, and move it to the device."""
    fuse_projections(model)
    for layer in model.model.decoder.layers:
        attention = layer.self_attention
        del attention.q_proj, attention.k_proj, attention.v_proj  # views of the weight that is about to be packed
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and name != KEPT_WHOLE:
            assert module.bias is None, name
            model.set_submodule(name, pack_linear(module.weight.detach(), 8 if runs_once(name) else bits, device, compute))
    move_others(model, torch.device(device), compute)
