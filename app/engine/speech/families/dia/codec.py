"""Run DAC: sound to codes and back; decoding in pieces gives exactly the same sound. Knows nothing of text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.sound.sound import Samples

OVERLAP_FRAMES = 12
"""The decoder reaches this far to either side: with 8 the error is 5e-6, with 12 it is zero."""
MOST_FRAMES = 127
"""A call decodes no more: with more, older Metal fails with "Output channels > 65536". It also keeps memory small."""


class Codec:
    def __init__(self, model: Any, device: str, dtype: torch.dtype) -> None:
        self._model, self.device, self._dtype = model, device, dtype
        self.rate = int(model.config.sampling_rate)
        self.hop = math.prod(model.config.downsampling_ratios)
        self.frame_rate = self.rate / self.hop
        self.overlap = OVERLAP_FRAMES

    @torch.inference_mode()
    def encode(self, sound: Samples) -> torch.Tensor:
        """Return codes (frames, channels); the last frame is padded with silence."""
        padded = np.pad(sound, (0, -len(sound) % self.hop))
        if self.device == "mps" and len(padded) > MOST_FRAMES * self.hop:
            # Older Metal fails here too. A clip is encoded once and in one piece, so the CPU does it.
            self._model.to("cpu")
            try:
                return self._encode_on(padded, "cpu")
            finally:
                self._model.to(self.device)
        return self._encode_on(padded, self.device)

    def _encode_on(self, padded: Samples, device: str) -> torch.Tensor:
        values = torch.from_numpy(padded).to(device, self._dtype)
        codes: torch.Tensor = self._model.encode(values[None, None]).audio_codes
        return codes[0].T.cpu()

    @torch.inference_mode()
    def decode(self, codes: torch.Tensor, first: int = 0, last: int | None = None) -> Samples:
        """Decode frames `first` to before `last`; exact if `codes` goes on for OVERLAP_FRAMES after `last`, or ends there."""
        last = len(codes) if last is None else last
        pieces = []
        for start in range(first, last, MOST_FRAMES - 2 * OVERLAP_FRAMES):
            end = min(last, start + MOST_FRAMES - 2 * OVERLAP_FRAMES)
            left, right = max(0, start - OVERLAP_FRAMES), min(len(codes), end + OVERLAP_FRAMES)
            window = codes[left:right].T[None].to(self.device)
            values = self._model.decode(audio_codes=window).audio_values[0].float().cpu().numpy()
            if not np.isfinite(values).all():
                raise NumbersBroke(start, "codec")
            pieces.append(values[(start - left) * self.hop : (end - left) * self.hop])
        return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
