"""A tone while it is made: a pitch a frame, drawn from what attention finds in its text and in the pitches before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from app.base.sentence import Sentence
from app.compat.planning.types import Plan
from app.engine.jobs.request import SpeechRequest
from app.engine.models.loading.voice_parts import device_for, explaining, split_plan
from app.engine.models.voice_limits import VoiceLimits, read_limits
from app.engine.speech.family import PartTask, Voice
from app.engine.speech.sound.sound import Samples
from app.engine.speech.sound.spoken_parts import Codes
from tests.support.tone_voice import HEADS, PITCHES


class Codec:
    device = "cpu"
    overlap = 0

    def __init__(self, limits: VoiceLimits) -> None:
        self.rate, self.frame_rate = limits.rate, limits.frame_rate
        self.hop = round(limits.rate / limits.frame_rate)

    def encode(self, sound: Samples) -> torch.Tensor:
        raise AssertionError("it imitates nobody")

    def decode(self, codes: torch.Tensor, first: int = 0, last: int | None = None) -> Samples:
        pitches = np.repeat(codes[first:last, 0].numpy(), self.hop)
        at_s = np.arange(first * self.hop, first * self.hop + len(pitches)) / self.rate
        return (0.3 * np.sin(2 * np.pi * 110 * 2 ** (pitches / 12) * at_s)).astype(np.float32)


class Humming:
    """One part."""

    def __init__(
        self, weights: dict[str, torch.Tensor], device: str, text: str, seed: int, temperature: float, frames: tuple[int, int]
    ) -> None:
        self._weights, self._device, self._temperature = weights, device, temperature
        self._wanted, self._most = frames
        self._letters = torch.tensor(list(text.encode()), device=device)
        self._generator = torch.Generator().manual_seed(seed)
        self._pitches: list[int] = []

    @property
    def made(self) -> int:
        return len(self._pitches)

    frames = made

    @property
    def done(self) -> bool:
        return self.made >= min(self._wanted, self._most)

    @property
    def cut_off(self) -> bool:
        return self.made >= self._most < self._wanted

    @torch.inference_mode()
    def step(self) -> None:
        before = self._weights["rows"][torch.tensor(self._pitches[-20:], dtype=torch.long, device=self._device)]
        seen = torch.cat((self._weights["letters"][self._letters], before))[None].unflatten(-1, (HEADS, -1)).transpose(1, 2)
        heard = F.scaled_dot_product_attention(seen[:, :, -1:], seen, seen).transpose(1, 2).flatten(-2)[0, 0]
        chances = ((self._weights["pitch"] @ heard).float().cpu() / self._temperature).softmax(0)
        self._pitches.append(int(torch.multinomial(chances, 1, generator=self._generator)))

    def get_codes(self, first: int, last: int) -> torch.Tensor:
        return torch.tensor(self._pitches[first:last])[:, None]

    def save(self, frames_sent: int) -> dict[str, Any]:
        return {"rows": list(self._pitches), "generator": self._generator.get_state().tolist(), "given": frames_sent}

    def resume(self, saved: dict[str, Any]) -> None:
        rows = saved["rows"]
        if all(type(each) is int and 0 <= each < PITCHES for each in rows) and len(rows) <= min(self._wanted, self._most):
            self._generator.set_state(torch.tensor(saved["generator"], dtype=torch.uint8))
            self._pitches = list(rows)


@dataclass(frozen=True, slots=True)
class Tone:
    weights: dict[str, torch.Tensor]
    device: str
    limits: VoiceLimits
    codec: Codec
    name: str
    notes: tuple[Sentence, ...] = ()

    def choose_settings(self, request: SpeechRequest) -> float:
        return self.limits.settings["temperature"] if request.temperature is None else request.temperature

    def begin(self, task: PartTask, seed: int, most_s: float, saved: dict[str, Any] | None) -> Humming:
        said = " ".join(turn.text for turn in task.part.turns)
        wanted, most = (round(seconds * self.limits.frame_rate) for seconds in (len(said.encode()) / self.limits.bytes_per_s, most_s))
        humming = Humming(self.weights, self.device, said, seed, task.settings, (wanted, most))
        if saved is not None:
            humming.resume(saved)
        return humming

    def is_code(self, codes: Codes) -> bool:
        return codes.shape[1:] == (1,)

    def adapt(self, plan: Plan) -> Tone:
        return self


def load(folder: Path, plan: Plan, beside: Mapping[str, Path], name: str) -> Voice:
    speech, _ = split_plan(plan)
    device, limits = device_for(plan, speech), read_limits(folder)
    with explaining(folder):
        weights = {key: each.to(device, getattr(torch, speech.compute)) for key, each in load_file(folder / "model.safetensors").items()}
    return Tone(weights, device, limits, Codec(limits), name)
