"""The network of ESRGAN enlargers (RRDBNet): dense blocks over the small picture, which is then doubled and smoothed. Needs torch alone."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from app.engine.models.rrdb import CONVOLUTIONS, DENSE

_SHARE = 0.2
"""A block adds so much of what it made to what it read; what falls below zero keeps as much, too."""


def _make_convolution(read: int, made: int) -> nn.Conv2d:
    return nn.Conv2d(read, made, 3, padding=1)


class _Dense(nn.Module):
    def __init__(self, features: int, growth: int) -> None:
        super().__init__()
        for place in range(1, CONVOLUTIONS):
            self.add_module(f"conv{place}", _make_convolution(features + (place - 1) * growth, growth))
        self.add_module(f"conv{CONVOLUTIONS}", _make_convolution(features + (CONVOLUTIONS - 1) * growth, features))

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        *inner, last = self.children()
        made = read
        for each in inner:
            made = torch.cat((made, functional.leaky_relu_(each(made), _SHARE)), 1)
        added: torch.Tensor = last(made)
        return added.mul_(_SHARE).add_(read)


class _Block(nn.Module):
    def __init__(self, features: int, growth: int) -> None:
        super().__init__()
        for place in range(1, DENSE + 1):
            self.add_module(f"rdb{place}", _Dense(features, growth))

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        made = read
        for each in self.children():
            made = each(made)
        return made.mul_(_SHARE).add_(read)


class Rrdb(nn.Module):
    def __init__(self, features: int, growth: int, blocks: int, doublings: int, fold: int) -> None:
        super().__init__()
        self.scale, self._fold = 2**doublings // fold, fold
        self.conv_first = _make_convolution(3 * fold * fold, features)
        self.body = nn.Sequential(*(_Block(features, growth) for _ in range(blocks)))
        self.conv_body = _make_convolution(features, features)
        self._ups = [f"conv_up{place}" for place in range(1, doublings + 1)]
        for name in self._ups:
            self.add_module(name, _make_convolution(features, features))
        self.conv_hr, self.conv_last = _make_convolution(features, features), _make_convolution(features, 3)

    def forward(self, small: torch.Tensor) -> torch.Tensor:
        high, wide = small.shape[-2:]
        if self._fold > 1:
            whole = functional.pad(small, (0, -wide % self._fold, 0, -high % self._fold), "replicate")
            small = functional.pixel_unshuffle(whole, self._fold)
        made = self.conv_first(small)
        made = self.conv_body(self.body(made)).add_(made)
        for name in self._ups:
            made = functional.leaky_relu_(self.get_submodule(name)(functional.interpolate(made, scale_factor=2)), _SHARE)
        made = functional.leaky_relu_(self.conv_hr(made), _SHARE)
        found: torch.Tensor = self.conv_last(made)
        return found[..., : high * self.scale, : wide * self.scale]
