"""Draw a frame from what the backbone says of it: the flow head, with all that does not change from frame to frame computed once."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class FlowHead:
    def __init__(self, head: Any, steps: int) -> None:
        """`steps`: in so many a frame is made from noise, where the head is told of time; else in one."""
        self._head = head
        width = head.input_proj.out_features
        self._sizes = [block.num_chunks * width for block in (*head.layers, head.final_layer)]
        like = head.input_proj.weight
        self._times = [self._embed(like.new_full((1, 1), step / steps), like.new_full((1, 1), (step + 1) / steps)) for step in range(steps)]

    def _embed(self, *times: Tensor) -> Tensor | None:
        embeddings = self._head.timestep_embeddings
        if not embeddings:
            return None
        found: Tensor = sum(embed(time) for embed, time in zip(embeddings, times, strict=True)) / len(embeddings)
        return found

    def __call__(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Return a frame (1, width)."""
        condition, made = self._head.cond_proj(condition), noise
        for time in self._times:
            if time is None:
                return self._run(made, condition)
            made = made + self._run(made, condition + time) / len(self._times)
        return made

    def _run(self, latent: Tensor, condition: Tensor) -> Tensor:
        adapted = torch.split(self._head.adaptation(self._head.final_layer.act_fn(condition)), self._sizes, -1)
        hidden = self._head.input_proj(latent)
        for block, each in zip(self._head.layers, adapted, strict=False):
            shift, scale, gate = each.chunk(3, -1)
            given = torch.addcmul(shift, _norm(block.norm, hidden), 1 + scale)
            hidden = torch.addcmul(hidden, gate, block.fc2(block.act_fn(block.fc1(given))))
        shift, scale = adapted[-1].chunk(2, -1)
        final = self._head.final_layer
        made: Tensor = final.proj(torch.addcmul(shift, _norm(final.norm, hidden), 1 + scale))
        return made


def _norm(norm: Any, given: Tensor) -> Tensor:
    return F.layer_norm(given, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
