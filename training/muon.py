"""Muon in float32: momentum made orthogonal by Newton and Schulz. torch's own computes in bfloat16, slowly where the processor has none."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


class Muon(torch.optim.Optimizer):
    """For matrices and convolutions, which count as matrices of their inputs; all other weights belong to AdamW."""

    STEPS, FACTORS = 4, (3.4445, -4.7750, 2.0315)

    def __init__(self, weights: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.01) -> None:
        super().__init__(weights, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
            for weight in group["params"]:
                if weight.grad is not None:
                    shapes.setdefault(weight.shape, []).append((weight, weight.grad))
            for shape, weights in shapes.items():
                moved = []
                for weight, slope in weights:
                    if not self.state[weight]:
                        self.state[weight]["momentum"] = torch.zeros_like(weight)
                    held = self.state[weight]["momentum"]
                    held.lerp_(slope, 1 - group["momentum"])
                    moved.append(slope.lerp(held, group["momentum"]).flatten(1))
                even = self._orthogonal(torch.stack(moved))
                scale = 0.2 * math.sqrt(max(even.shape[1:]))
                for (weight, _), change in zip(weights, even, strict=True):
                    weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(change.view(shape), alpha=group["lr"] * scale)

    def _orthogonal(self, given: Tensor) -> Tensor:
        tall = given.shape[-2] > given.shape[-1]
        now = given.mT if tall else given
        now = now / (now.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        first, second, third = self.FACTORS
        for _ in range(self.STEPS):
            square = now @ now.mT
            now = first * now + (second * square + third * square @ square) @ now
        return now.mT if tall else now
