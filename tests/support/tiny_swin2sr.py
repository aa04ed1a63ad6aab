"""Write a small Swin2SR enlarger with random weights, as transformers itself saves it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers.models.swin2sr import Swin2SRConfig, Swin2SRForImageSuperResolution

_BY_MAKERS = {
    "attention.self": "attn", "attention.self.query": "attn.q", "attention.self.value": "attn.v", "attention.output.dense": "attn.proj",
    "attention.self.continuous_position_bias_mlp.0": "attn.cpb_mlp.0", "attention.self.continuous_position_bias_mlp.2": "attn.cpb_mlp.2",
    "intermediate.dense": "mlp.fc1", "output.dense": "mlp.fc2", "layernorm_before": "norm1", "layernorm_after": "norm2",
}  # fmt: skip


def make(scale: int = 2, upsampler: str = "pixelshuffle", **other: Any) -> Swin2SRForImageSuperResolution:
    torch.manual_seed(5)
    small = {"embed_dim": 12, "depths": [2], "num_heads": [2], "image_size": 64}
    net = Swin2SRForImageSuperResolution(Swin2SRConfig(window_size=8, upscale=scale, upsampler=upsampler, **{**small, **other}))
    with torch.no_grad():  # as the library draws them, weights leave next to no picture
        for name, weight in net.named_parameters():
            if weight.ndim > 1 and "position_bias" not in name:
                weight.normal_(0, weight[0].numel() ** -0.5 * (0.2 if "final" in name else 1))
    return net.eval()


def write(folder: Path, **how: Any) -> Path:
    make(**how).save_pretrained(folder)
    return folder


def write_by_makers(path: Path, **how: Any) -> Path:
    """Write it as its makers' own program does, with what follows from the size of a window."""
    weights = dict[str, torch.Tensor]()
    kept = make(**how).state_dict()
    for name, weight in kept.items():
        if name.startswith("upsample."):
            found = name.removeprefix("upsample.").replace("conv_before_upsample.", "conv_before_upsample.0.")
            found = re.sub(r"upsample\.convolution_?(\d?)\.", lambda told: f"upsample.{2 * int(told[1] or 0)}.", found)
            weights[found.replace("final_convolution", "conv_last")] = weight
        elif (inner := re.fullmatch(r"swin2sr\.encoder\.stages\.(\d+)\.layers\.(\d+)\.(.+)", name)) is not None:
            at, rest = f"layers.{inner[1]}.residual_group.blocks.{inner[2]}", inner[3]
            if rest == "attention.self.query.weight":
                three = [kept[name.replace("query", each)] for each in ("query", "key", "value")]
                weights[f"{at}.attn.qkv.weight"] = torch.cat(three)
                weights[f"{at}.attn.relative_position_index"] = torch.zeros(64, 64, dtype=torch.int64)
                weights[f"{at}.attn.relative_coords_table"] = torch.zeros(1, 15, 15, 2)
                weights[f"{at}.attn_mask"] = torch.zeros(4, 64, 64)
            elif not rest.endswith(("key.weight", "value.weight")):
                module, _, end = rest.rpartition(".")
                weights[f"{at}.{_BY_MAKERS.get(module, module)}.{end}".replace("q.bias", "q_bias").replace("v.bias", "v_bias")] = weight
        else:
            found = name.removeprefix("swin2sr.").replace("encoder.stages", "layers").replace("embeddings.patch_embeddings", "patch_embed")
            found = found.replace("projection", "proj").replace("first_convolution", "conv_first")
            weights[re.sub(r"^(patch_embed\.)?layernorm", r"\1norm", found)] = weight
    save_file({name: weight.contiguous() for name, weight in weights.items()}, path)
    return path
