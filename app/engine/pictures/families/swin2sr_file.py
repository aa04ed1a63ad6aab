"""Load a Swin2SR enlarger: transformers' own network, given a picture as its image processor pads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers.models.swin2sr import Swin2SRForImageSuperResolution

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.swin2sr import Swin2sr, find_row
from app.engine.pictures.families.reader_file import load_reader


class Swin2srNet(nn.Module):
    def __init__(self, facts: Swin2sr) -> None:
        super().__init__()
        self.scale, self._window = facts.scale, facts.window
        self.model = _load(facts.path)

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
        # it is not in Models, where it could be downloaded again
        raise Trouble(
            say("enlarger.damaged", "The enlarger in {path} is damaged or incomplete. Choose another enlarger.", path=folder.name)
        ) from fault
    return model
