"""Train one network in several processes with separate batches. Without a process group there is one, of rank 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, distributed


def rank_here() -> int:
    return distributed.get_rank() if distributed.is_initialized() else 0


def average_gradients(parameters: Sequence[Tensor]) -> None:
    """Average the gradients over all processes."""
    if not distributed.is_initialized():
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    together = torch.cat([g.flatten() for g in gradients])
    distributed.all_reduce(together)
    together /= distributed.get_world_size()
    parts = torch.split(together, [g.numel() for g in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))
