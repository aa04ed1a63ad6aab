"""Make a part's frames, one a step or none: the language model says whether there is another, the head draws it, and the model hears its sound."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.speech.families.vibevoice.backbone import Backbone, Memory
from app.engine.speech.families.vibevoice.diffusion import DiffusionHead
from app.engine.speech.families.vibevoice.stream import Stream

_STORED: Final = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class Signs:
    """What the language model may say while it speaks."""

    frame: int
    begin: int
    """Sound begins, as if nothing had been said before."""
    close: int
    """Sound ends; more may begin."""
    end: int
    """The part ends."""

    @property
    def all(self) -> list[int]:
        return sorted({self.frame, self.begin, self.close, self.end})


class Parts:
    """What makes parts of one loaded model."""

    def __init__(self, model: Any, words: Tensor, signs: Signs, backbone: Backbone, head: DiffusionHead) -> None:
        """`model`: VibeVoice's own, without its head for words. `words`: that head's rows of the signs alone, in their order."""
        self.model, self.words, self.signs, self.backbone, self.head = model, words, signs, backbone, head

    def embed(self, ids: list[int]) -> Tensor:
        rows: Tensor = self.model.language_model.embed_tokens(torch.tensor(ids, device=self.words.device))
        return rows


class Part:
    """One part while it is made."""

    def __init__(self, parts: Parts, prompt: Tensor, before: Memory, *, seed: int, guidance: float, most: int) -> None:
        """`prompt`: the rows that follow what is remembered from `before`. `most`: steps at most."""
        self._parts, self._most, self._guidance = parts, most, guidance
        self._noise = torch.Generator("cpu").manual_seed(seed)
        model = parts.model
        self._said, self._unsaid = Memory(model, len(prompt) + most, before), Memory(model, most + 1)
        self._decoder, self._listener = Stream(model.audio_tower.decoder), Stream(model.semantic_tokenizer_encoder)
        self._next: Tensor = prompt
        """The rows that the model has not read."""
        self._rows: list[Tensor | int] = []
        """Frames as they were drawn (1, width), on the processor, and signs."""
        self._sound: list[Tensor] = []
        """The samples of each frame."""

    @property
    def made(self) -> int:
        return len(self._rows)

    @property
    def frames(self) -> int:
        return len(self._sound)

    @property
    def _ended(self) -> bool:
        return bool(self._rows) and isinstance(self._rows[-1], int) and self._rows[-1] == self._parts.signs.end

    @property
    def done(self) -> bool:
        return self._ended or self.made >= self._most

    @property
    def cut_off(self) -> bool:
        return self.made >= self._most and not self._ended

    @torch.inference_mode()
    def step(self) -> None:
        conditions = self._read_on()
        signs, spread = self._parts.signs, (conditions[:1] @ self._parts.words.T)[0].float()
        if not bool(torch.isfinite(spread).all()):
            raise NumbersBroke(self.made, "speech")
        sign = signs.all[int(spread.argmax())]
        self._take(self._parts.head(conditions, self._draw_noise(), self._guidance) if sign == signs.frame else sign)

    def _draw_noise(self) -> Tensor:
        """Return the noise that a frame is made from, of two lines, as transformers draws them."""
        return torch.randn(2, self._parts.model.config.audio_config.hidden_size, generator=self._noise)[:1]

    def _read_on(self) -> Tensor:
        """Let the model read what it has not; return what it says of what follows, with its text and without (2, width)."""
        parts = self._parts
        if len(self._next) > 1:
            said = parts.backbone(self._next, self._said)
            return torch.cat((said, parts.backbone(self._next[-1:], self._unsaid)))
        return parts.backbone(self._next.expand(2, -1), self._said, self._unsaid)

    def _take(self, row: Tensor | int) -> None:
        """Note what was drawn or said, with its sound; it is read next."""
        parts, model = self._parts, self._parts.model
        if isinstance(row, int):
            self._unsaid.length = 0 if row == parts.signs.begin else self._unsaid.length - 1  # only frames are remembered of it
            self._next = parts.embed([row])
        else:
            frame = row.to(parts.words.device, parts.words.dtype)
            sound = self._decoder(frame / model.latent_scaling_factor - model.latent_bias_factor)
            heard = self._listener(sound)
            self._next = model.multi_modal_projector(frame) + model.semantic_connector(heard)
            samples = sound[:, 0].float().cpu()
            if not bool(torch.isfinite(samples).all()):
                raise NumbersBroke(self.made, "speech")
            self._sound.append(samples)
        self._rows.append(row)

    def get_codes(self, first: int, last: int) -> Tensor:
        """Return the samples (frames, samples)."""
        hop = int(self._parts.model.config.audio_config.hop_length)
        return torch.stack(self._sound[first:last]) if first < last else torch.empty(0, hop)

    def save(self, frames_sent: int) -> dict[str, Any]:
        rows = [row if isinstance(row, int) else base64.b64encode(row.numpy().astype(_STORED).tobytes()).decode() for row in self._rows]
        return {"rows": rows, "given": frames_sent}

    @torch.inference_mode()
    def resume(self, saved: dict[str, Any]) -> None:
        """Go on after the rows of `save`; from the beginning where they can be none of this part."""
        signs, width = self._parts.signs, self._parts.model.config.audio_config.hidden_size
        try:
            rows = [row if type(row) is int else np.frombuffer(base64.b64decode(row, validate=True), _STORED) for row in saved["rows"]]
            given = saved["given"]
        except (ValueError, LookupError, TypeError):
            return
        drawn = [row for row in rows if isinstance(row, np.ndarray)]
        right = all(each.shape == (width,) and bool(np.isfinite(each).all()) for each in drawn) and 0 < len(rows) <= self._most
        ends = [place for place, row in enumerate(rows) if isinstance(row, int) and row == signs.end]
        if (
            not right
            or ends not in ([], [len(rows) - 1])
            or not {row for row in rows if isinstance(row, int)} <= {*signs.all} - {signs.frame}
        ):
            return
        if type(given) is not int or not 0 <= given <= len(drawn):
            return
        for row in rows:  # one by one, as they were made: other sums would lead to other frames
            self._read_on()
            if isinstance(row, int):
                self._take(row)
            else:
                self._draw_noise()
                self._take(torch.from_numpy(row.copy())[None])
