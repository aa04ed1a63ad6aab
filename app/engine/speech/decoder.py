"""Dia's decode loop: the model's own layers, preallocated caches, one device sync per row. Knows neither scripts nor sound."""

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
    """How a token is drawn; temperature 0 takes the most likely one."""

    guidance: float = 3.0
    temperature: float = 1.8
    top_p: float = 0.95
    cfg_filter: int = 45


@dataclass(frozen=True, slots=True)
class PartInput:
    """What one part is decoded from."""

    text: torch.Tensor
    """Token ids."""
    prompt: torch.Tensor | None
    """Codes (frames, channels) of the sound that comes before the part."""
    sampling: Sampling
    seed: int
    new_rows: int
    """At most, including the delay."""


@dataclass(frozen=True, slots=True)
class DecodingState:
    """What resuming a part with exactly the same rows takes."""

    rows: torch.Tensor
    """The new ones, delayed."""
    generator: torch.Tensor
    ended: int | None
    frames_sent: int
    """Frames already sent as sound."""


class _Caches:
    """The cache that DiaDecoderLayer expects, with preallocated keys and values: transformers' dynamic cache copies all of them for
    every row, and its static one makes attention read rows that do not exist yet."""

    def __init__(self, layers: int, rows: int) -> None:
        self.length = 0
        self.cross_attention_cache = DynamicCache()
        self.is_updated: dict[int, bool] = {}
        self._rows = rows
        self._layers: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * layers

    def update(self, key: torch.Tensor, value: torch.Tensor, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        stored = self._layers[layer]
        if stored is None:
            batch, heads, _, dim = key.shape
            stored = (key.new_empty(batch, heads, self._rows, dim), value.new_empty(batch, heads, self._rows, value.shape[-1]))
            self._layers[layer] = stored
        end = self.length + key.shape[2]
        stored[0][:, :, self.length : end] = key
        stored[1][:, :, self.length : end] = value
        return stored[0][:, :, :end], stored[1][:, :, :end]


class Decoding:
    """One part while it is decoded. Channel c of frame t is in row t + delay[c]; `step` makes a row, `get_codes` undoes the delay."""

    def __init__(self, model: Any, device: str, part_input: PartInput, state: DecodingState | None = None) -> None:
        config = model.config.decoder_config
        self._model, self._device, self._sampling = model, device, part_input.sampling
        self._delays: tuple[int, ...] = tuple(model.config.delay_pattern)
        self._eos, self._pad, bos = int(config.eos_token_id), int(config.pad_token_id), int(config.bos_token_id)
        self._generator = torch.Generator("cpu").manual_seed(part_input.seed)
        prompt = torch.full((1, len(self._delays)), bos)
        if part_input.prompt is not None:
            prompt = torch.cat((prompt, part_input.prompt.to("cpu", torch.long)))
        self._start = len(prompt)
        self._last = self._start + max(part_input.new_rows, self.delay + 2)
        self._rows = torch.full((self._last, len(self._delays)), self._pad)
        self._fixed = torch.full((self._start + self.delay, len(self._delays)), self._pad)
        for channel, delay in enumerate(self._delays):
            self._fixed[:delay, channel] = bos
            self._fixed[delay : delay + len(prompt), channel] = prompt[:, channel]
        self._rows[: self._start] = self._fixed[: self._start]
        self.length = self._start
        self._ended: int | None = None
        self._processors = _make_processors(part_input.sampling, len(self._delays), self._eos)
        self._caches = _Caches(config.num_hidden_layers, self._last)
        self._encoded = self._encode(part_input.text)
        if state is not None:
            self.length += len(state.rows)
            self._rows[self._start : self.length] = state.rows
            self._generator.set_state(state.generator)
            self._ended = state.ended

    def get_state(self, frames_sent: int) -> DecodingState:
        rows = self._rows[self._start : self.length].clone()
        return DecodingState(rows, self._generator.get_state(), self._ended, frames_sent)

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
        """Whether it ended only because of its limit."""
        return self._ended == self._last - self.delay - 1

    @property
    def frames(self) -> int:
        """New frames whose channels are all decoded."""
        complete = max(0, self.length - self._start - self.delay)
        return complete if self._ended is None else min(complete, self._ended - self._start)

    def get_codes(self, first: int, last: int) -> torch.Tensor:
        """Return the codes (frames, channels) of the new frames from `first` to before `last`."""
        columns = [
            self._rows[self._start + first + delay : self._start + last + delay, channel] for channel, delay in enumerate(self._delays)
        ]
        return torch.stack(columns, dim=1)

    @property
    def rows(self) -> torch.Tensor:
        """All rows so far, delayed, prompt first, as transformers' generate() returns them."""
        return self._rows[: self.length]

    @torch.inference_mode()
    def step(self) -> None:
        """Decode one more row."""
        row = self.length
        # The copy to the CPU is the only sync; drawing there makes a seed mean the same on every device.
        scores: torch.Tensor = self.compute_logits().float().to("cpu")
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
        if row < len(self._fixed):
            drawn = torch.where(self._fixed[row] == self._pad, drawn, self._fixed[row])
        self.append(drawn)

    def append(self, row: torch.Tensor) -> None:
        self._rows[self.length] = row
        self.length += 1

    @torch.inference_mode()
    def _encode(self, text: torch.Tensor) -> torch.Tensor:
        ids = text.to(self._device)[None]
        if self._sampling.guidance > 1:
            ids = torch.cat((ids, torch.zeros_like(ids)))  # the unconditional half
        encoded: torch.Tensor = self._model.model.encoder(input_ids=ids).last_hidden_state
        return encoded

    def compute_logits(self) -> torch.Tensor:
        """Return the logits (batch * channels, vocabulary) of the next row."""
        decoder, caches = self._model.model.decoder, self._caches
        ids = self._rows[caches.length : self.length].to(self._encoded.device)
        hidden = decoder.embeddings(ids.expand(len(self._encoded), -1, -1))
        positions = torch.arange(caches.length, self.length, device=hidden.device)[None]
        rotary = decoder.rotary_emb(hidden, position_ids=positions)
        for layer in decoder.layers:
            # No masks: nothing is padded, and without a mask attention over several rows is causal.
            hidden = layer(hidden, rotary, None, self._encoded, encoder_attention_mask=None, past_key_values=caches)
        caches.length = self.length
        logits: torch.Tensor = self._model.logits_dense(decoder.norm(hidden[:, -1:]))
        return logits.view(len(self._encoded) * len(self._delays), -1)


def _make_processors(sampling: Sampling, channels: int, eos: int) -> LogitsProcessorList:
    """Return transformers' processors for Dia in generate()'s order; step() handles the delay at the end."""
    processors = LogitsProcessorList()
    if sampling.guidance > 1:
        processors.append(DiaClassifierFreeGuidanceLogitsProcessor(sampling.guidance, sampling.cfg_filter))
    if sampling.temperature not in (0, 1):
        processors.append(TemperatureLogitsWarper(float(sampling.temperature)))
    processors.append(DiaEOSChannelFilterLogitsProcessor(channels, eos))
    if sampling.temperature > 0:
        processors.append(TopKLogitsWarper(sampling.cfg_filter))
        if sampling.top_p < 1:
            processors.append(TopPLogitsWarper(sampling.top_p))
    return processors
