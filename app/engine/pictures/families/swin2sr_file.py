"""Load a Swin2SR enlarger: transformers' own network, given a picture as its image processor pads it."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from transformers.models.swin2sr import Swin2SRForImageSuperResolution

from app.engine.models.swin2sr import Swin2sr
from app.engine.pictures.families.reader_file import load_reader


class Swin2srNet(nn.Module):
    def __init__(self, facts: Swin2sr) -> None:
        super().__init__()
        self.scale, self._window = facts.scale, facts.window
        self.model = load_reader(Swin2SRForImageSuperResolution, facts.path)

    def forward(self, small: torch.Tensor) -> torch.Tensor:
        high, wide = small.shape[-2:]
        whole = small[..., self._mirror(high), :][..., self._mirror(wide)]
        made: torch.Tensor = self.model(whole, return_dict=True).reconstruction
        return made[..., : high * self.scale, : wide * self.scale]

    def _mirror(self, side: int) -> torch.Tensor:
        """Return which row stands where once the picture is continued by its own mirror image to whole windows: by one more where they are whole, as
        the processor does."""
        return torch.from_numpy(np.pad(np.arange(side), (0, self._window - side % self._window), "symmetric"))
