"""Make the frames of a part, one a step: each is drawn from the rows before it; with what going on takes. Knows neither scripts nor sound."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.families.pocket.backbone import Backbone
from app.engine.speech.families.pocket.flow_head import FlowHead

_STORED: Final = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class Ending:
    """When a part ends: so many frames after the first one, from `least` on, at which the model says so louder than `threshold`."""

    threshold: float
    least: int
    after: int


class Part:
    """One part while it is made."""

    def __init__(
        self, model: Any, head: FlowHead, rows: Backbone, prompt: Tensor, *, seed: int, temperature: float, ending: Ending, most: int
    ) -> None:
        """`rows`: has read the voice. `prompt`: the ids of what is said. `most`: frames at most."""
        self._model, self._head, self._rows = model, head, rows
        self._prompt: Tensor | None = prompt
        """It stays until it is read."""
        self._scale, self._ending, self._most = math.sqrt(temperature), ending, most
        self._noise = torch.Generator("cpu").manual_seed(seed)
        self._latents: list[Tensor] = []
        """Frames as they were drawn (1, width), on the processor."""
        self._read = 0
        """Frames that the backbone knows."""
        self._left: int | None = None
        """Frames until its end, once the model has said so."""

    @property
    def made(self) -> int:
        return len(self._latents)

    frames = made

    @property
    def done(self) -> bool:
        return self._left == 0 or self.made >= self._most

    @property
    def cut_off(self) -> bool:
        return self.made >= self._most and self._left != 0

    @torch.inference_mode()
    def step(self) -> None:
        condition = self._read_on()
        ends = float(self._model.eos_head(condition).float()) > self._ending.threshold
        noise = torch.randn(1, self._model.config.latent_dim, generator=self._noise) * self._scale
        latent = self._head(condition, noise.to(condition.device, condition.dtype)).float().cpu()
        if not bool(torch.isfinite(latent).all()):
            raise NumbersBroke(self.made, "speech")
        if self._left is not None:
            self._left -= 1
        elif ends and self.made >= self._ending.least:
            self._left = self._ending.after
        self._latents.append(latent)

    def _read_on(self) -> Tensor:
        """Let the backbone read what it has not; return what it says of the next frame."""
        model = self._model.model
        if self._prompt is not None:
            begin = model.embed_audio_latents(model.bos_latent)[None]
            condition = self._rows(torch.cat((model.embed_tokens(self._prompt), begin)))
            self._prompt = None
        # One by one, also where they were made before: other sums would lead to other frames.
        for latent in self._latents[self._read :]:
            condition = self._rows(model.embed_audio_latents(latent.to(model.bos_latent.device)))
        self._read = self.made
        return condition

    def get_codes(self, first: int, last: int) -> Tensor:
        """Return the frames as the codec takes them."""
        drawn = torch.cat(self._latents[first:last]) if first < last else torch.empty(0, self._model.config.latent_dim)
        spread: Tensor = drawn * self._model.latent_std.cpu() + self._model.latent_mean.cpu()
        return spread

    def save(self, frames_sent: int) -> dict[str, Any]:
        rows = [base64.b64encode(latent.numpy().astype(_STORED).tobytes()).decode() for latent in self._latents]
        return {"rows": rows, "left": self._left, "given": frames_sent}

    def resume(self, saved: dict[str, Any]) -> None:
        """Go on after the frames of `save`; from the beginning where they can be none of this part."""
        try:
            drawn = [np.frombuffer(base64.b64decode(row, validate=True), _STORED) for row in saved["rows"]]
            width, left, given = self._model.config.latent_dim, saved["left"], saved["given"]
        except (ValueError, LookupError, TypeError):
            return
        right = all(each.shape == (width,) and bool(np.isfinite(each).all()) for each in drawn) and 0 < len(drawn) <= self._most
        if not right or not (left is None or (type(left) is int and 0 <= left <= self._ending.after)):
            return
        if type(given) is not int or not 0 <= given <= len(drawn):
            return
        self._latents, self._left = [torch.from_numpy(each.copy())[None] for each in drawn], left
        for _ in drawn:  # one by one, as they were drawn
            torch.randn(1, width, generator=self._noise)
