"""Dia's decode loop: the model's own layers, caches that never move, one wait for the device a row. Knows neither scripts nor sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from transformers import DynamicCache
from transformers.generation.logits_process import (
    DiaClassifierFreeGuidanceLogitsProcessor,
    DiaEOSChannelFilterLogitsProcessor,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from app.engine.loading.numbers_broke import NumbersBroke


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn; temperature 0 takes the likeliest."""

    guidance: float = 3.0
    temperature: float = 1.8
    top_p: float = 0.95
    cfg_filter: int = 45


@dataclass(frozen=True, slots=True)
class State:
    """As far as a part has come: enough to go on with the very same rows."""

    rows: torch.Tensor
    """New ones, delayed."""
    generator: torch.Tensor
    ended: int | None
    given: int
    """Frames that were handed out as sound already."""


class _Caches:
    """What DiaDecoderLayer asks of a cache. Own keys and values have their place beforehand: transformers' dynamic cache copies
    all of them for every row, its static one makes attention read all the rows that are not there yet."""

    def __init__(self, layers: int, rows: int) -> None:
        self.length = 0
        self.cross_attention_cache = DynamicCache()
        self.is_updated: dict[int, bool] = {}
        self._rows = rows
        self._kept: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * layers

    def update(self, key: torch.Tensor, value: torch.Tensor, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        kept = self._kept[layer]
        if kept is None:
            batch, heads, _, dim = key.shape
            kept = (
                key.new_empty(batch, heads, self._rows, dim),
                value.new_empty(batch, heads, self._rows, value.shape[-1]),
            )
            self._kept[layer] = kept
        end = self.length + key.shape[2]
        kept[0][:, :, self.length : end] = key
        kept[1][:, :, self.length : end] = value
        return kept[0][:, :, :end], kept[1][:, :, :end]


class Decoding:
    """One part in the making. Channel c of frame t stands in row t + delay[c]; `step` makes a row, `codes` undoes the delay."""

    def __init__(
        self,
        model: Any,
        device: str,
        text: torch.Tensor,
        prompt: torch.Tensor | None,
        sampling: Sampling,
        seed: int,
        new_rows: int,
        state: State | None = None,
    ) -> None:
        """`text`: token ids; `prompt`: codes (frames, channels) that are heard before; `new_rows`: at most, the delay counted in."""
        config = model.config.decoder_config
        self._model, self._device, self._sampling = model, device, sampling
        self._delays: tuple[int, ...] = tuple(model.config.delay_pattern)
        self._eos, self._pad, bos = int(config.eos_token_id), int(config.pad_token_id), int(config.bos_token_id)
        self._generator = torch.Generator("cpu").manual_seed(seed)
        heard = torch.full((1, len(self._delays)), bos)
        if prompt is not None:
            heard = torch.cat((heard, prompt.to("cpu", torch.long)))
        self._start = len(heard)
        self._last = self._start + max(new_rows, self.delay + 2)
        self._rows = torch.full((self._last, len(self._delays)), self._pad)
        self._given = torch.full((self._start + self.delay, len(self._delays)), self._pad)
        for channel, delay in enumerate(self._delays):
            self._given[:delay, channel] = bos
            self._given[delay : delay + len(heard), channel] = heard[:, channel]
        self._rows[: self._start] = self._given[: self._start]
        self.length = self._start
        self._ended: int | None = None
        self._processors = _processors(sampling, len(self._delays), self._eos)
        self._caches = _Caches(config.num_hidden_layers, self._last)
        self._encoded = self._encode(text)
        if state is not None:
            self.length += len(state.rows)
            self._rows[self._start : self.length] = state.rows
            self._generator.set_state(state.generator)
            self._ended = state.ended

    def state(self, given: int) -> State:
        return State(self._rows[self._start : self.length].clone(), self._generator.get_state(), self._ended, given)

    @property
    def delay(self) -> int:
        return max(self._delays)

    @property
    def made(self) -> int:
        """New rows so far."""
        return self.length - self._start

    @property
    def done(self) -> bool:
        return self._ended is not None and self.length > self._ended + self.delay

    @property
    def cut_off(self) -> bool:
        """It came to the end because of its limit."""
        return self._ended == self._last - self.delay - 1

    @property
    def frames(self) -> int:
        """New frames that have all their channels."""
        whole = max(0, self.length - self._start - self.delay)
        return whole if self._ended is None else min(whole, self._ended - self._start)

    def codes(self, first: int, last: int) -> torch.Tensor:
        """(frames, channels) of the new frames from `first` to before `last`."""
        columns = [
            self._rows[self._start + first + delay : self._start + last + delay, channel]
            for channel, delay in enumerate(self._delays)
        ]
        return torch.stack(columns, dim=1)

    @property
    def rows(self) -> torch.Tensor:
        """All rows so far, delayed, prompt first: what transformers' generate() returns."""
        return self._rows[: self.length]

    @torch.inference_mode()
    def step(self) -> None:
        """One more row."""
        row = self.length
        # The copy to the CPU is the one wait; drawing there makes a seed mean the same on every device.
        scores: torch.Tensor = self._logits().float().to("cpu")
        if not bool(torch.isfinite(scores).all()):
            raise NumbersBroke(self.made, "speech")
        scores = self._processors(cast(torch.LongTensor, self._rows[:row].T), cast(torch.FloatTensor, scores))
        if self._ended is None and (int(scores[0].argmax()) == self._eos or row == self._last - self.delay - 1):
            self._ended = row
        if self._sampling.temperature > 0:
            drawn = torch.multinomial(scores.softmax(-1), 1, generator=self._generator)[:, 0]
        else:
            drawn = scores.argmax(-1)
        if self._ended is not None:
            for channel, delay in enumerate(self._delays):
                if row >= self._ended + delay:
                    drawn[channel] = self._eos if row == self._ended + delay else self._pad
        if row < len(self._given):
            drawn = torch.where(self._given[row] == self._pad, drawn, self._given[row])
        self._rows[row] = drawn
        self.length = row + 1

    @torch.inference_mode()
    def _encode(self, text: torch.Tensor) -> torch.Tensor:
        ids = text.to(self._device)[None]
        if self._sampling.guidance > 1:
            ids = torch.cat((ids, torch.zeros_like(ids)))  # the half that is not told the text
        encoded: torch.Tensor = self._model.model.encoder(input_ids=ids).last_hidden_state
        return encoded

    def _logits(self) -> torch.Tensor:
        """(batch * channels, vocabulary) for the row that comes next."""
        decoder, caches = self._model.model.decoder, self._caches
        ids = self._rows[caches.length : self.length].to(self._encoded.device)
        hidden = decoder.embeddings(ids.expand(len(self._encoded), -1, -1))
        places = torch.arange(caches.length, self.length, device=hidden.device)[None]
        turns = decoder.rotary_emb(hidden, position_ids=places)
        for layer in decoder.layers:
            # No masks: nothing is padded, and without one attention is causal where there are several rows.
            hidden = layer(hidden, turns, None, self._encoded, encoder_attention_mask=None, past_key_values=caches)
        caches.length = self.length
        logits: torch.Tensor = self._model.logits_dense(decoder.norm(hidden[:, -1:]))
        return logits.view(len(self._encoded) * len(self._delays), -1)


def _processors(sampling: Sampling, channels: int, eos: int) -> LogitsProcessorList:
    """transformers' own for Dia, in generate()'s order; the end's delay pattern is the loop's business."""
    chosen = LogitsProcessorList()
    if sampling.guidance > 1:
        chosen.append(DiaClassifierFreeGuidanceLogitsProcessor(sampling.guidance, sampling.cfg_filter))
    if sampling.temperature not in (0, 1):
        chosen.append(TemperatureLogitsWarper(float(sampling.temperature)))
    chosen.append(DiaEOSChannelFilterLogitsProcessor(channels, eos))
    if sampling.temperature > 0:
        chosen.append(TopKLogitsWarper(sampling.cfg_filter))
        if sampling.top_p < 1:
            chosen.append(TopPLogitsWarper(sampling.top_p))
    return chosen
