"""Run the codec of Pocket TTS: sound to latents and back, going on where it was; pieces joined are exactly the whole."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.sound.sound import Samples

BLOCK: Final = 8
"""So many frames are decoded at once, always from a multiple of this on: the sums are the same, whatever pieces are asked for. They last two
thirds of a second: with fewer, a frame takes a third longer, as each block computes anew what its convolutions reach back for."""
FADE_S: Final = 0.005
"""A decoder that begins starts with a small step, heard as a click."""
LOUD_S: Final = 0.02
QUIETER: Final = 10 ** (-35 / 20)
"""A stretch of LOUD_S is silent that is so much quieter than the loudest."""
PAUSE_S: Final = 0.08


@dataclass(frozen=True, slots=True)
class _Reached:
    """What the decoder remembers after whole blocks of a part."""

    latents: Tensor
    """Decoding goes on from here only if the part begins with these (frames, width)."""
    cache: Any
    """The transformer goes on from these keys and values."""
    rows: Tensor
    """The transformer made these last (1, rows, width), as many as the convolutions after it look back."""
    samples: Samples
    """Only the last block's sound is kept."""


class Codec:
    overlap = BLOCK - 1

    def __init__(self, model: Any, device: str, dtype: torch.dtype) -> None:
        config = model.config
        self._model, self.device, self._dtype = model, device, dtype
        self.rate, self.hop = int(config.sampling_rate), int(config.frame_size)
        self.frame_rate = self.rate / self.hop
        self._rows_a_frame, self._reach = int(config.latent_stride), count_rows_before(config)
        self._reached: _Reached | None = None

    @torch.inference_mode()
    def encode(self, sound: Samples) -> Tensor:
        """Return latents (frames, width) of a voice; the last frame is padded with silence."""
        ended = end_on_pause(sound, self.rate)
        padded = np.pad(ended, (0, -len(ended) % self.hop))
        values = torch.from_numpy(padded).to(self.device, self._dtype)
        latents: Tensor = self._model.encode(values[None, None]).latents
        return latents[0].float().cpu()

    @torch.inference_mode()
    def decode(self, codes: Tensor, first: int = 0, last: int | None = None) -> Samples:
        """Decode frames `first` to before `last`; exact if `codes` goes on to the end of the last one's block, or ends there."""
        last, pieces = len(codes) if last is None else last, []
        reached = self._reached
        if reached is None or len(reached.latents) - BLOCK > first or not torch.equal(reached.latents, codes[: len(reached.latents)]):
            reached = None
        begun = len(reached.latents) if reached is not None else 0
        if reached is not None and first < begun:
            pieces.append(reached.samples[(first - begun) * self.hop : min(last - begun, 0) * self.hop or None])
        for start in range(begun, last, BLOCK):
            reached = self._decode_block(codes[: start + BLOCK], start, reached)
            if len(reached.latents) == start + BLOCK:
                self._reached = reached
            pieces.append(reached.samples[max(0, first - start) * self.hop : (last - start) * self.hop])
        return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)

    def _decode_block(self, latents: Tensor, start: int, before: _Reached | None) -> _Reached:
        """Decode the frames from `start` on, after the block before."""
        model, decoder = self._model, self._model.decoder
        # A frame's rows come from itself and the one before.
        seen = latents[max(0, start - 1) :].to(self.device, self._dtype)
        spread = decoder.upsample(model.latent_proj(seen.T[None]))[..., self._rows_a_frame * min(1, start) :].transpose(1, 2)
        cache = DynamicCache(config=decoder.config) if before is None else copy.deepcopy(before.cache)
        made = decoder.decoder_transformer(spread, cache=cache).last_hidden_state
        rows = made if before is None else torch.cat((before.rows, made), 1)
        values = decoder.decoder_seanet(rows.transpose(1, 2))[0, 0]
        samples = values[-(len(latents) - start) * self.hop :].float().cpu().numpy()
        if not np.isfinite(samples).all():
            raise NumbersBroke(start, "codec")
        if start == 0:
            fade = np.linspace(0, 1, min(int(FADE_S * self.rate), len(samples)), dtype=np.float32)
            samples[: len(fade)] *= fade
        return _Reached(latents, cache, rows[:, -self._reach :], samples)


def end_on_pause(sound: Samples, rate: int) -> Samples:
    """Return a recording that fades out where its silence began, with a short pause: the model goes on with what breaks off, and begins late after
    a long silence."""
    size = int(LOUD_S * rate)
    loud = np.sqrt(np.square(sound[: len(sound) // size * size]).reshape(-1, size).mean(1))
    if not len(loud):
        return sound
    kept = sound[: (int(np.flatnonzero(loud >= loud.max() * QUIETER)[-1]) + 1) * size].copy()
    kept[-size:] *= np.linspace(1, 0, size, dtype=np.float32)
    return np.pad(kept, (0, int(PAUSE_S * rate)))


def count_rows_before(config: Any) -> int:
    """Return how many earlier rows of the transformer the first sample of one depends on, through causal convolutions."""
    reach = config.last_kernel_size - 1
    for ratio in reversed(config.upsampling_ratios):
        reach += sum((config.residual_kernel_size - 1) * config.dilation_growth_rate**layer for layer in range(config.num_residual_layers))
        reach = math.ceil(reach / ratio) + 1
    return int(reach + config.kernel_size - 1)
