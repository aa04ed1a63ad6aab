"""Dia's decode loop: rows and their delay, where a part ends, and its state to resume from. Knows neither scripts nor sound."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import torch

from app.compat.planning.types import Row
from app.engine.models.loading.generator_state import is_state
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.families.dia.decoder_layers import DecoderLayers
from app.engine.speech.families.dia.row_graph import GraphedRows, round_up
from app.engine.speech.families.dia.sampling import NEVER, Sampling, choose_codes
from app.engine.speech.sound.spoken_parts import Codes


@dataclass(frozen=True, slots=True)
class PartInput:
    """What one part is decoded from."""

    text: torch.Tensor
    """The text comes as token ids."""
    prompt: torch.Tensor | None
    """These codes (frames, channels) are of the sound that comes before the part."""
    sampling: Sampling
    seed: int
    new_rows: int
    """No more rows are made than these, which include the delay."""
    least_frames: int = 0
    """It does not end before these."""


@dataclass(frozen=True, slots=True)
class DecodingState:
    """What resuming a part with exactly the same rows takes."""

    rows: torch.Tensor
    """Only the new rows are kept, delayed as they are made."""
    generator: torch.Tensor
    ended: int | None
    frames_sent: int


def read_state(saved: dict[str, Any]) -> DecodingState | None:
    """Return the state that `Decoding.save` wrote; None for what it did not write."""
    try:
        generator = torch.frombuffer(bytearray(base64.b64decode(saved["generator"])), dtype=torch.uint8)
        return DecodingState(torch.tensor(saved["rows"]), generator, saved["ended"], saved["given"])
    except (ValueError, LookupError, TypeError, RuntimeError):
        return None


def is_code_of(config: Any, codes: Codes) -> bool:
    """Tell whether codes (frames, channels) are such as a model with this config makes for sound."""
    heard = (codes >= 0) & (codes < config.decoder_config.eos_token_id)
    return codes.shape[1:] == (len(config.delay_pattern),) and bool(heard.all())


class Decoding:
    """One part while it is decoded. Channel c of frame t is in row t + delay[c]; `step` makes a row, `get_codes` undoes the delay."""

    def __init__(self, model: Any, device: str, part_input: PartInput, state: DecodingState | None = None, row: Row = "calls") -> None:
        config = model.config.decoder_config
        self._device, self._sampling = device, part_input.sampling
        self._delays: tuple[int, ...] = tuple(model.config.delay_pattern)
        self._eos, self._pad, bos = int(config.eos_token_id), int(config.pad_token_id), int(config.bos_token_id)
        self._codes = int(config.vocab_size)
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
        self._may_end_from = self._start + part_input.least_frames
        self.length = self._start
        self._ended: int | None = None
        with torch.inference_mode():
            most = round_up(self._last) if row == "graph" else self._last
            self.layers = DecoderLayers(model, device, part_input.text, part_input.sampling.guided, most)
        self._row = row
        self._graphed: GraphedRows | None = None
        if state is not None and self._fits(state):
            self.length += len(state.rows)
            self._rows[self._start : self.length] = state.rows
            self._generator.set_state(state.generator)
            self._ended = state.ended

    def _fits(self, state: DecodingState) -> bool:
        """Tell whether a state can be one of this part: another machine's may hold anything."""
        rows, ended = state.rows, state.ended
        if rows.dtype != torch.long or rows.shape[1:] != self._rows.shape[1:] or len(rows) > self._last - self._start:
            return False
        if not (ended is None or (type(ended) is int and self._start <= ended < self._last)):
            return False
        frames = max(0, min(len(rows) - self.delay, len(rows) if ended is None else ended - self._start))
        sounding = [rows[delay : delay + frames, channel] for channel, delay in enumerate(self._delays)]
        return (
            bool(((rows >= 0) & (rows < self._codes)).all())
            and all(bool((each < self._eos).all()) for each in sounding)
            and is_state(state.generator, self._generator)
            and type(state.frames_sent) is int
            and 0 <= state.frames_sent <= frames
        )

    def get_state(self, frames_sent: int) -> DecodingState:
        rows = self._rows[self._start : self.length].clone()
        return DecodingState(rows, self._generator.get_state(), self._ended, frames_sent)

    def save(self, frames_sent: int) -> dict[str, Any]:
        state = self.get_state(frames_sent)
        generator = base64.b64encode(state.generator.numpy().tobytes()).decode()
        return {"rows": state.rows.tolist(), "generator": generator, "ended": state.ended, "given": frames_sent}

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
        logits = self.compute_logits().float().to("cpu")
        if not bool(torch.isfinite(logits).all()):
            raise NumbersBroke(self.made, "speech")
        if row < self._may_end_from:
            logits[0, 0, self._eos] = NEVER
        drawn = choose_codes(logits, self._sampling, self._eos, self._generator)
        if self._ended is None and (int(drawn[0]) == self._eos or row == self._last - self.delay - 1):
            self._ended = row
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
    def compute_logits(self) -> torch.Tensor:
        """Return the logits (batch, channels, vocabulary) of the next row."""
        codes = self._rows[self.layers.length : self.length]
        if self._row == "graph" and self.layers.length:
            self._graphed = self._graphed or GraphedRows(self.layers, len(self._delays), self._device)
            logits = self._graphed(codes)
        else:
            logits = self.layers(codes.to(self._device))
        return logits.view(self.layers.batch, len(self._delays), -1)
