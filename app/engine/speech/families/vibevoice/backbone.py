"""Run the language model's layers for what is said and, beside it, for what would be said of no text: both in one product of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class Memory:
    """What the layers remember of one run of rows: keys and values (layers, heads, rows, width), preallocated."""

    def __init__(self, model: Any, rows: int, before: Memory | None = None) -> None:
        """`rows`: at most, after those that are remembered from `before`."""
        config = model.config.text_config
        self.length: int = 0 if before is None else before.length
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        like = model.language_model.norm.weight
        shape = (config.num_hidden_layers, config.num_key_value_heads, self.length + rows, width)
        self.keys, self.values = like.new_empty(shape), like.new_empty(shape)
        if before is not None:
            self.keys[:, :, : self.length] = before.keys[:, :, : self.length]
            self.values[:, :, : self.length] = before.values[:, :, : self.length]


class Backbone:
    """The layers, with their projections fused."""

    def __init__(self, model: Any) -> None:
        config, self._inner = model.config.text_config, model.language_model
        self._heads, self._few = config.num_attention_heads, config.num_key_value_heads

    def __call__(self, given: Tensor, *memories: Memory) -> Tensor:
        """Take rows (rows, width), as many for each memory, that follow what it remembers; return what the last one of each says (memories, width)."""
        count = len(given) // len(memories)
        places = torch.cat([torch.arange(each.length, each.length + count, device=given.device) for each in memories])
        cos, sin = self._inner.rotary_emb(given, position_ids=places[None])
        half = sin.shape[-1] // 2
        # The factors (rows, 1, width) of a head's numbers, and of them with its two halves exchanged.
        rotation = cos[0, :, None], torch.cat((-sin[..., :half], sin[..., half:]), -1)[0, :, None]
        hidden = given
        for index, layer in enumerate(self._inner.layers):
            hidden = hidden + self._attend(layer.self_attn, index, memories, norm(layer.input_layernorm, hidden), rotation)
            gate, up = layer.mlp.gate_up_proj(norm(layer.post_attention_layernorm, hidden)).chunk(2, -1)
            hidden = hidden + layer.mlp.down_proj(layer.mlp.act_fn(gate) * up)
        for each in memories:
            each.length += count
        return norm(self._inner.norm, hidden[count - 1 :: count])

    def _attend(self, attention: Any, index: int, memories: Sequence[Memory], given: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
        (cos, sin), count = rotation, len(given) // len(memories)
        mixed = attention.qkv_proj(given).view(len(given), self._heads + 2 * self._few, -1)
        turned, values = mixed[:, : self._heads + self._few], mixed[:, self._heads + self._few :]
        turned = torch.addcmul(turned * cos, turned.roll(turned.shape[-1] // 2, -1), sin).transpose(0, 1)
        heard = []
        for number, memory in enumerate(memories):
            rows, first, last = slice(number * count, (number + 1) * count), memory.length, memory.length + count
            memory.keys[index, :, first:last] = turned[self._heads :, rows]
            memory.values[index, :, first:last] = values[rows].transpose(0, 1)
            # torch's causal attention lets later rows see the wrong ones.
            mask = None if first == 0 or count == 1 else torch.ones(count, last, dtype=torch.bool, device=given.device).tril(first)
            one = F.scaled_dot_product_attention(
                turned[None, : self._heads, rows],
                memory.keys[None, index, :, :last],
                memory.values[None, index, :, :last],
                mask,
                is_causal=first == 0,
                enable_gqa=self._heads > self._few,
            )
            heard.append(one[0].transpose(0, 1).reshape(count, -1))
        added: Tensor = attention.o_proj(torch.cat(heard))
        return added


def norm(layer: Any, given: Tensor) -> Tensor:
    return F.rms_norm(given, layer.weight.shape, layer.weight, layer.variance_epsilon)
