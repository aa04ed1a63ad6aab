"""Compute the logits of Dia's next rows from the model's own weights, in few operations. Knows neither sampling nor sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True)
class _Memory:
    """What one layer remembers of a part."""

    keys: Tensor
    """The keys of the rows so far (batch, heads, rows, width) lie in memory set aside for all rows."""
    values: Tensor
    text_keys: Tensor
    """The keys of the text have the shape (1, heads, length, width)."""
    text_values: Tensor
    unguided: Tensor | None
    """Attention to an empty text adds this (1, width), if there is guidance."""


_Attend = Callable[[_Memory, Tensor, Tensor, Tensor], Tensor]
"""It remembers keys and values, and lets queries see them with those before; each has the shape (batch, heads, rows, width)."""


class DecoderLayers:
    """The decoder's layers, prepared for one part. With guidance the batch is two: row 0 hears the text, row 1 an empty one."""

    def __init__(self, model: Any, device: str, text: Tensor, guided: bool, rows: int) -> None:
        """`text`: its token ids; `rows`: at most."""
        self._model, self._decoder = model, model.model.decoder
        self._width: int = self._decoder.config.head_dim
        ids = text.to(device)[None]
        encoded = model.model.encoder(input_ids=ids).last_hidden_state
        # All tokens of an empty text are 0, so every position is encoded alike: one stands for all, whatever asks it.
        empty = model.model.encoder(input_ids=ids[:, :1] * 0).last_hidden_state if guided else None
        self.batch = 2 if guided else 1
        self.length = 0
        self._memories = [self._prepare(layer, encoded, empty, rows) for layer in self._decoder.layers]
        cos, sin = self._decoder.rotary_emb(encoded, position_ids=torch.arange(rows, device=device)[None])
        self._cos, self._sin = _signed(cos, sin)

    def _prepare(self, layer: Any, encoded: Tensor, empty: Tensor | None, rows: int) -> _Memory:
        own, cross = layer.self_attention, layer.cross_attention
        keys, values = (encoded.new_empty(self.batch, own.num_key_value_heads, rows, self._width) for _ in range(2))
        # On a processor attention reads half precision slower than twice the bytes in float32.
        wide = torch.float32 if encoded.device.type == "cpu" else encoded.dtype
        text_keys, text_values = (
            project(encoded).view(1, -1, cross.num_key_value_heads, cross.head_dim).transpose(1, 2).to(wide).contiguous()
            for project in (cross.k_proj, cross.v_proj)
        )
        unguided = None if empty is None else cross.o_proj(_repeat_heads(cross.v_proj(empty[0]), cross))
        return _Memory(keys, values, text_keys, text_values, unguided)

    def __call__(self, codes: Tensor) -> Tensor:
        """Take the codes (rows, channels) that follow, at first several, later one row; return the logits (batch, channels * vocabulary)
        of the row after them."""
        first, last = self.length, self.length + len(codes)
        assert first == 0 or len(codes) == 1, "torch's causal attention lets several later rows see the wrong ones"

        def attend(memory: _Memory, asked: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            memory.keys[:, :, first:last] = keys
            memory.values[:, :, first:last] = values
            return _attend(asked, memory.keys[:, :, :last], memory.values[:, :, :last], is_causal=last - first > 1)

        logits = self._compute(codes, (self._cos[first:last], self._sin[first:last]), attend)
        self.length = last
        return logits

    def compute_at(self, codes: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        """Compute as __call__ does for one row, without a shape or an address that changes from row to row, so that a graph can hold it.
        `position` (1) says which row it is; `mask` (1, 1, 1, keys) is 0 for what it sees of the first rows, itself included, else -inf."""
        reach = mask.shape[-1]

        def attend(memory: _Memory, asked: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            memory.keys.index_copy_(2, position, keys)
            memory.values.index_copy_(2, position, values)
            return _attend(asked, memory.keys[:, :, :reach], memory.values[:, :, :reach], attn_mask=mask)

        return self._compute(codes, (self._cos.index_select(0, position), self._sin.index_select(0, position)), attend)

    def clear_ahead(self) -> Tensor:
        """Put zeros where rows will come: a masked key of chance may be NaN, which no mask hides. Return a mask that hides them."""
        for memory in self._memories:
            memory.keys[:, :, self.length :] = 0
            memory.values[:, :, self.length :] = 0
        mask = torch.full((1, 1, 1, len(self._cos)), -torch.inf, dtype=self._memories[0].keys.dtype, device=self._cos.device)
        mask[..., : self.length] = 0
        return mask

    def _compute(self, codes: Tensor, rotation: tuple[Tensor, Tensor], attend: _Attend) -> Tensor:
        hidden = self._decoder.embeddings(codes[None])[0].repeat(self.batch, 1)
        # All in two dimensions (batch * rows, width): a row takes hundreds of operations, and each one less counts.
        for layer, memory in zip(self._decoder.layers, self._memories, strict=True):
            hidden = hidden + self._attend_rows(layer.self_attention, memory, _norm(layer.pre_sa_norm, hidden), rotation, attend)
            heard = hidden[: len(codes)]
            heard += self._attend_text(layer.cross_attention, memory, _norm(layer.pre_ca_norm, heard))
            if memory.unguided is not None:
                hidden[len(codes) :] += memory.unguided
            hidden += _feed_forward(layer.mlp, _norm(layer.pre_mlp_norm, hidden))
        logits: Tensor = self._model.logits_dense(_norm(self._decoder.norm, hidden[len(codes) - 1 :: len(codes)]))
        return logits

    @torch.inference_mode()
    def pretend(self, rows: int) -> None:
        """Go on as if so many rows had been computed: a bench times late rows, and making those before them takes minutes."""
        for memory in self._memories:
            memory.keys[:, :, :rows].normal_()
            memory.values[:, :, :rows].normal_()
        self.length = rows

    def _attend_rows(self, attention: Any, memory: _Memory, given: Tensor, rotation: tuple[Tensor, Tensor], attend: _Attend) -> Tensor:
        heads, few = attention.num_heads, attention.num_key_value_heads
        # One product where loading has made one matrix of the three.
        fused = getattr(attention, "qkv_proj", None)
        mixed = (
            fused(given)
            if fused is not None
            else torch.cat([attention.q_proj(given), attention.k_proj(given), attention.v_proj(given)], -1)
        )
        mixed = mixed.view(self.batch, -1, heads + 2 * few, self._width)
        turned, values = _rotate(mixed[:, :, : heads + few], *rotation).transpose(1, 2), mixed[:, :, heads + few :].transpose(1, 2)
        out = attend(memory, turned[:, :heads], turned[:, heads:], values)
        added: Tensor = attention.o_proj(out.transpose(1, 2).reshape(len(given), -1))
        return added

    def _attend_text(self, attention: Any, memory: _Memory, given: Tensor) -> Tensor:
        asked = attention.q_proj(given).view(1, len(given), attention.num_heads, -1).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            asked.to(memory.text_keys.dtype),
            memory.text_keys,
            memory.text_values,
            scale=1.0,
            enable_gqa=attention.num_heads > attention.num_key_value_heads,
        )
        heard: Tensor = attention.o_proj(out.transpose(1, 2).reshape(len(given), -1).to(given.dtype))
        return heard


def _attend(asked: Tensor, keys: Tensor, values: Tensor, **how: Any) -> Tensor:
    return F.scaled_dot_product_attention(asked, keys, values, scale=1.0, enable_gqa=asked.shape[1] > keys.shape[1], **how)


def _norm(norm: Any, given: Tensor) -> Tensor:
    if norm.weight.is_meta:  # accelerate sends it when the module itself is called
        called: Tensor = norm(given)
        return called
    return F.rms_norm(given, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _feed_forward(mlp: Any, given: Tensor) -> Tensor:
    gate, up = mlp.gate_up_proj(given).chunk(2, -1)
    down: Tensor = mlp.down_proj(mlp.activation_fn(gate).mul_(up))
    return down


def _signed(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factors (rows, 1, width) of a head's numbers, and of them with its two halves exchanged."""
    half = sin.shape[-1] // 2
    return cos[0, :, None], torch.cat((-sin[..., :half], sin[..., half:]), -1)[0, :, None]


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn heads (batch, rows, heads, width) by the angles of their rows, as transformers' apply_rotary_pos_emb does."""
    return torch.addcmul(heads * cos, heads.roll(heads.shape[-1] // 2, -1), sin)


def _repeat_heads(values: Tensor, attention: Any) -> Tensor:
    """Repeat each key/value head for the queries that share it."""
    heads = values.view(len(values), attention.num_key_value_heads, -1)
    return heads.repeat_interleave(attention.num_heads // attention.num_key_value_heads, -2).flatten(-2)
