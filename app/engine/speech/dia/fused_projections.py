"""Make one matrix of the three projections of each decoder layer's attention to its own rows: one product instead of three."""

from __future__ import annotations

from typing import Any

import torch

from app.engine.models.loading.packed_linears import make_linear


def fuse_projections(model: Any) -> None:
    """Add `qkv_proj` to each layer; the three keep working, as views of its weight, so nothing is held twice."""
    for layer in model.model.decoder.layers:
        attention = layer.self_attention
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        weight = torch.cat([part.weight.detach() for part in parts])
        for part, view in zip(parts, torch.split(weight, [len(part.weight) for part in parts]), strict=True):
            part.weight.data = view
        attention.qkv_proj = make_linear(weight)
