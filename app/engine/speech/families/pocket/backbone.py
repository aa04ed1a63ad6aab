"""Compute a frame's condition from the model's own weights, in few operations; flow_head.py draws the frame from it. Knows neither text nor sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True)
class _Memory:
    """What one layer remembers of a part: (1, heads, rows, width), preallocated."""

    keys: Tensor
    values: Tensor


Remembered = tuple[_Memory, ...]


class Backbone:
    """The layers, prepared for one part. Rows are what they read: the voice's frames, the text, and each frame that was made."""

    def __init__(self, model: Any, device: str, rows: int, before: Remembered | None = None) -> None:
        """`rows`: at most, after those that are remembered from `before`."""
        config = model.config
        self._model, self._heads, self._few, self._width = (
            model.model,
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
        )
        self.length = 0 if before is None else before[0].keys.shape[2]
        rows += self.length
        like = model.model.bos_latent.new_empty(1, device=device)
        self._memories = [
            _Memory(*(like.new_empty(1, self._few, rows, self._width) for _ in range(2))) for _ in range(config.num_hidden_layers)
        ]
        for memory, known in zip(self._memories, before or (), strict=False):
            memory.keys[:, :, : self.length], memory.values[:, :, : self.length] = known.keys, known.values
        cos, sin = self._model.rotary_emb(like, position_ids=torch.arange(rows, device=device)[None])
        half = sin.shape[-1] // 2
        # The factors (rows, 1, width) of a head's numbers, and of them with its two halves exchanged.
        self._cos, self._sin = cos[0, :, None], torch.cat((-sin[..., :half], sin[..., half:]), -1)[0, :, None]

    def __call__(self, given: Tensor) -> Tensor:
        """Take the rows (rows, width) that follow, at first several, later one; return what the last one says (1, width)."""
        first, last = self.length, self.length + len(given)
        cos, sin = self._cos[first:last], self._sin[first:last]
        hidden = given
        for layer, memory in zip(self._model.layers, self._memories, strict=True):
            hidden = hidden + self._attend(layer.self_attn, memory, _norm(layer.input_layernorm, hidden), (cos, sin), (first, last))
            mlp = layer.mlp
            hidden = hidden + mlp.fc2(mlp.activation_fn(mlp.fc1(_norm(layer.post_attention_layernorm, hidden))))
        self.length = last
        return _norm(self._model.norm, hidden[-1:])

    def remember(self) -> Remembered:
        """Return what is remembered of the rows so far, with which others begin."""
        return tuple(_Memory(each.keys[:, :, : self.length], each.values[:, :, : self.length]) for each in self._memories)

    def _attend(self, attention: Any, memory: _Memory, given: Tensor, rotation: tuple[Tensor, Tensor], rows: tuple[int, int]) -> Tensor:
        (cos, sin), (first, last) = rotation, rows
        # torch's causal attention lets later rows see the wrong ones.
        mask = None if first == 0 or len(given) == 1 else torch.ones(len(given), last, dtype=torch.bool, device=given.device).tril(first)
        mixed = attention.qkv_proj(given).view(len(given), self._heads + 2 * self._few, self._width)
        turned, values = mixed[:, : self._heads + self._few], mixed[:, self._heads + self._few :]
        turned = torch.addcmul(turned * cos, turned.roll(self._width // 2, -1), sin).transpose(0, 1)[None]
        memory.keys[:, :, first:last] = turned[:, self._heads :]
        memory.values[:, :, first:last] = values.transpose(0, 1)
        heard = F.scaled_dot_product_attention(
            turned[:, : self._heads],
            memory.keys[:, :, :last],
            memory.values[:, :, :last],
            mask,
            is_causal=first == 0,
            enable_gqa=self._heads > self._few,
        )
        added: Tensor = attention.o_proj(heard.transpose(1, 2).reshape(len(given), -1))
        return added


def _norm(norm: Any, given: Tensor) -> Tensor:
    return F.layer_norm(given, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
