"""What VibeVoice takes for sound: a recording becomes the frames that it hears. What it says is sound already, as it hears itself while it speaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.families.vibevoice.stream import Stream
from app.engine.speech.sound.sound import Samples

_SILENT = 1e-6


class Codec:
    overlap = 0

    def __init__(self, model: Any, device: str, rate: int, loudness_db: float) -> None:
        """`model`: VibeVoice's own, without its head for words."""
        self._model, self.device, self.rate, self.hop = model, device, rate, int(model.config.audio_config.hop_length)
        self.frame_rate, self._loudness = self.rate / self.hop, 10 ** (loudness_db / 20)

    @torch.inference_mode()
    def encode(self, sound: Samples) -> Tensor:
        """Return the frames (frames, width) of a voice, made as loud as those that the model learned from; the last one is padded with silence."""
        loud = sound * (self._loudness / (float(np.sqrt(np.square(sound).mean())) + _SILENT)) if len(sound) else sound
        peak = float(np.abs(loud).max(initial=0.0))
        padded = np.pad(loud / (peak + _SILENT) if peak > 1 else loud, (0, -len(sound) % self.hop)).astype(np.float32)
        model = self._model
        given = torch.from_numpy(padded)[:, None].to(self.device, model.latent_bias_factor.dtype)
        frames: Tensor = (Stream(model.audio_tower.encoder)(given) + model.latent_bias_factor) * model.latent_scaling_factor
        if not bool(torch.isfinite(frames).all()):
            raise NumbersBroke(0, "speech")
        return frames.float().cpu()

    def decode(self, codes: Tensor, first: int = 0, last: int | None = None) -> Samples:
        """Join the sound of frames `first` to before `last`: codes are (frames, samples)."""
        samples: Samples = codes[first:last].flatten().numpy()
        return samples
