"""Load a starter voice with transformers' classes and speak with plain generate(). Trains and judges nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DacFeatureExtractor, DacModel, DiaForConditionalGeneration, DiaProcessor, DiaTokenizer

from app.engine.speech.text import pronounce

from . import codec, model

SIGNS_PER_S_MOST = 20.0
"""flite's quickest sentences have 18.7."""
AUDIO_KWARGS: dict[str, Any] = {
    "eos_token_id": model.EOS,
    "pad_token_id": model.PAD,
    "bos_token_id": model.BOS,
    "delay_pattern": list(model.DELAY),
    "sampling_rate": codec.RATE_HZ,
}


@dataclass(frozen=True, slots=True)
class Voice:
    """A loaded starter voice."""

    dia: DiaForConditionalGeneration
    processor: Any  # a DiaProcessor, whose codec has no type
    generation: dict[str, Any]
    letters: pronounce.Letters


@dataclass(frozen=True, slots=True)
class Spoken:
    """One script spoken: its sound, its frames, and whether the voice ended by itself."""

    sound: NDArray[np.float32]
    frames: int
    ended: bool


def about(folder: Path) -> dict[str, Any]:
    """Return what starter.json says."""
    said: dict[str, Any] = json.loads((folder / "starter.json").read_text())
    return said


def load(folder: Path) -> Voice:
    """Load the voice in a folder: model.safetensors, codec/, tokenizer, starter.json."""
    dia = DiaForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    dac = DacModel.from_pretrained(folder / "codec", dtype=torch.float32).eval()
    extractor = DacFeatureExtractor.from_pretrained(folder)
    processor = DiaProcessor(extractor, DiaTokenizer.from_pretrained(folder), dac)
    said = about(folder)
    return Voice(dia, processor, said["generation"], pronounce.read_letters(folder / said["letters"]))


def least_frames(script: str) -> int:
    """Return the frames before which a script cannot have been said."""
    return max(1, int((len(re.sub(r"\[S.\]. ?", "", script)) / SIGNS_PER_S_MOST - 0.25) * codec.FRAMES_PER_S))


def speak(voice: Voice, scripts: list[str], seed: int, prompts: list[NDArray[np.float32]] | None = None, **changed: Any) -> list[Spoken]:
    """Speak scripts in one batch with plain generate(), each cut at its end; with prompts, return only what follows them."""
    settings = {**voice.generation, **changed}
    torch.manual_seed(seed)
    if prompts is None:
        settings["min_new_tokens"] = min(settings["max_new_tokens"], *map(least_frames, scripts))
    inputs = voice.processor(text=scripts, audio=prompts, padding="longest", return_tensors="pt", **AUDIO_KWARGS)
    with torch.no_grad():
        rows = voice.dia.generate(**inputs, **settings)
    skipped = 0 if prompts is None else inputs["decoder_attention_mask"].shape[1] - max(model.DELAY) - 1
    return [_cut(voice, row[1 + skipped :], settings["max_new_tokens"]) for row in rows]


def _cut(voice: Voice, rows: Tensor, limit: int) -> Spoken:
    """Undo the delay of one result and decode it: batch_decode fails if the first code is the end. At the limit generate() forces an end."""
    ends = (rows[:, 0] >= model.EOS).nonzero()
    count = int(ends[0]) if len(ends) else len(rows) - max(model.DELAY)
    ended = count < limit - max(model.DELAY) - 1
    codes = torch.stack([rows[late : late + count, channel] for channel, late in enumerate(model.DELAY)]).clamp(max=codec.CODES - 1)
    if count == 0:
        return Spoken(np.zeros(0, np.float32), 0, ended)
    with torch.no_grad():
        sound = voice.processor.audio_tokenizer.decode(audio_codes=codes[None]).audio_values[0]
    return Spoken(sound.float().numpy(), count, ended)
