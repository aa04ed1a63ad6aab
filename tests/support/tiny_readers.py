"""Save tiny models that read pictures, with random weights."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers.models.depth_anything import DepthAnythingConfig, DepthAnythingForDepthEstimation
from transformers.models.dinov2 import Dinov2Config


def save_depth(folder: Path, seed: int = 0) -> Path:
    """Save one in the layout of Depth Anything V2, whose patches have 14 pixels a side."""
    torch.manual_seed(seed)
    backbone = Dinov2Config(
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=56,
        patch_size=14,
        out_indices=[1, 2, 3, 4],
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    config = DepthAnythingConfig(
        backbone_config=backbone, reassemble_hidden_size=16, neck_hidden_sizes=[4, 8, 16, 16], fusion_hidden_size=8, head_hidden_size=8
    )
    model = DepthAnythingForDepthEstimation(config)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    return folder
