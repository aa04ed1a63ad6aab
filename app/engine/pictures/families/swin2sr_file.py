"""Load a Swin2SR enlarger: transformers' own network, given a picture as its image processor pads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from transformers.models.swin2sr import Swin2SRConfig, Swin2SRForImageSuperResolution

from app.base.trouble import Trouble
from app.engine.models.safetensors import unwrap
from app.engine.models.swin2sr import PRODUCTS, QKV, UPSAMPLER, Swin2sr, explain_damaged, find_row
from app.engine.pictures.families.reader_file import load_reader


class Swin2srNet(nn.Module):
    def __init__(self, facts: Swin2sr) -> None:
        super().__init__()
        self.scale, self._window = facts.scale, facts.window
        self.model = _load_file(facts) if facts.names else _load(facts.path)

    def forward(self, small: torch.Tensor) -> torch.Tensor:
        high, wide = small.shape[-2:]
        whole = small[..., self._mirror(high), :][..., self._mirror(wide)]
        made: torch.Tensor = self.model(whole, return_dict=True).reconstruction
        return made[..., : high * self.scale, : wide * self.scale]

    def _mirror(self, side: int) -> torch.Tensor:
        """Return which row stands where once the picture is continued by its own mirror image to whole windows: by one more where they are whole, as
        the processor does."""
        return torch.from_numpy(np.pad(np.arange(side), (0, self._window - side % self._window), "symmetric"))


def _load(folder: Path) -> nn.Module:
    try:
        model: nn.Module = load_reader(Swin2SRForImageSuperResolution, folder)
    except Trouble as fault:
        if find_row(str(folder)) is not None:
            raise
        raise explain_damaged(folder) from fault  # it is not in Models, where it could be downloaded again
    return model


def _load_file(facts: Swin2sr) -> nn.Module:
    config = Swin2SRConfig(
        embed_dim=facts.width,
        depths=[*facts.depths],
        num_heads=[*facts.heads],
        mlp_ratio=facts.growth,
        upscale=facts.scale,
        upsampler=UPSAMPLER,
        window_size=facts.window,
    )
    tensors = unwrap(load_file(facts.path))
    weights = dict[str, torch.Tensor]()
    for name, kept in facts.names.items():
        weights[name] = tensors[kept].chunk(3)[PRODUCTS.index(name.split(".")[-2])] if kept.endswith(QKV) else tensors[kept]
    model: nn.Module = Swin2SRForImageSuperResolution.from_pretrained(None, state_dict=weights, config=config, dtype=torch.float32)
    return model.eval()
