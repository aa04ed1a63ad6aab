"""The network that enlarges a picture: "compact" (SRVGGNet). Needs torch alone, so that its training runs anywhere."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn
from torch.nn import functional


class Compact(nn.Module):
    """A stack of convolutions over the small picture; the last one's channels become what is added to the pixels of its base."""

    def __init__(self, scale: int, features: int, convolutions: int, base: Literal["nearest", "lanczos"] = "nearest") -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for place in range(convolutions + 1):
            layers += [nn.Conv2d(features if place else 3, features, 3, padding=1), nn.PReLU(features)]
        self.scale, self.features, self.base = scale, features, base
        self.body = nn.Sequential(*layers, nn.Conv2d(features, 3 * scale * scale, 3, padding=1))

    def forward(self, small: torch.Tensor) -> torch.Tensor:
        return functional.pixel_shuffle(self.body(small), self.scale)
