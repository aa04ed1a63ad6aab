"""Speak a part with a voice of the pocket family: as Hearth does, and as transformers' documentation does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from transformers import (
    GradiumPhononTTSForConditionalGeneration,
    PocketTTSAudioTokenizerModel,
    PocketTTSForConditionalGeneration,
    PreTrainedTokenizerFast,
)

from app.cli.peak_memory import Peak
from app.compat.attention.seam import applied
from app.compat.planning.types import Dtype, Plan
from app.engine.models.voice_families import read_type
from app.engine.speech.family import PartTask, VoiceContext
from app.engine.speech.run import loader
from app.engine.speech.run.sounding import Sounding, open_beside
from app.engine.speech.text.turns import ScriptPart, Turn

TEXT: Final = "He comes in from the fjord, alone."
"""A token each letter: as many as a part of 8 seconds has with the models' own tokenizers."""
VOICE_FRAMES: Final = 125
"""Ten seconds."""


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def time_parts(part: HearthPart | PlainPart, times: int) -> list[float]:
    took = []
    for _ in range(times):
        began_s, spent_s = time.perf_counter(), time.process_time()
        part.speak()
        took.append(time.perf_counter() - began_s)
        part.cpu_s = time.process_time() - spent_s
    return took


def make_voice(width: int) -> torch.Tensor:
    return torch.randn(VOICE_FRAMES, width, generator=torch.Generator().manual_seed(0))


class HearthPart:
    """A part of a script: its voice was read for an earlier one, and its sound is made each second, beside the loop where the engine would."""

    def __init__(self, folder: Path, plan: Plan, frames: int, threads: int, scratch: Path) -> None:
        self.made_of = (folder, plan, frames, threads, scratch)
        self.first_s = self.cpu_s = 0.0
        """The last part's time until it is heard, and that of all threads."""
        self._voice: Any = None

    def time_parts(self, times: int) -> list[float]:
        if self._voice is None:
            folder, plan, *_ = self.made_of
            self._voice = loader.load(folder, plan).voice
            self.time_parts(1)  # the first warms up
        with threads(self.made_of[3]):
            return time_parts(self, times)

    def speak(self) -> None:
        _, plan, frames, _, scratch = self.made_of
        voice, config = self._voice, self._voice.model.config
        context = VoiceContext(make_voice(getattr(config, "audio_prompt_dim", config.latent_dim)), ())
        task = PartTask(0, ScriptPart((Turn(1, TEXT),), 8.0), context, 0.3, 1, None, (), "")
        began_s, second = time.perf_counter(), int(voice.codec.frame_rate)
        with applied(plan), open_beside(voice.device, voice.codec.device) as beside:
            part, sounding = voice.begin(task, 1, frames / voice.codec.frame_rate, None), Sounding(voice.codec, scratch, 0, 0, beside)
            while not part.done:
                part.step()
                sent = sounding.frames_begun
                if part.made - sent >= (second if sent else second // 2) + voice.codec.overlap or part.done:
                    sounding.finish()
                    sounding.begin(part.get_codes(0, part.made), part.made if part.done else part.made - voice.codec.overlap)
                    if not sent:
                        sounding.finish()
                        self.first_s = time.perf_counter() - began_s
            sounding.finish()


class PlainPart:
    """generate() with the voice as its prompt, then its sound at once."""

    def __init__(self, folder: Path, dtype: Dtype, frames: int, threads: int) -> None:
        self.made_of = (folder, dtype, frames, threads)
        self.first_s = self.cpu_s = 0.0
        self._model: Any = None

    def time_parts(self, times: int) -> list[float]:
        if self._model is None:
            folder, dtype, *_ = self.made_of
            kind: Any = PocketTTSForConditionalGeneration if read_type(folder) == "pocket_tts" else GradiumPhononTTSForConditionalGeneration
            self._model = kind.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True).eval()
            codec: Any = PocketTTSAudioTokenizerModel.from_pretrained(folder / "codec", local_files_only=True)
            self._codec = codec.eval()
            self._ids = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True).encode(TEXT, add_special_tokens=False)
            self.time_parts(1)
        with threads(self.made_of[3]):
            return time_parts(self, times)

    def speak(self) -> None:
        _, _, frames, _ = self.made_of
        model, own = self._model, self._model.config
        begin = getattr(own, "audio_prompt_bos_token_id", None)
        before = [*([] if begin is None else [begin]), *[own.audio_prompt_token_id] * VOICE_FRAMES]
        ids = torch.tensor([[*before, *self._ids, own.audio_bos_token_id]])
        voice = make_voice(getattr(own, "audio_prompt_dim", own.latent_dim))[None]
        began_s = time.perf_counter()
        found = model.generate(
            ids, attention_mask=torch.ones_like(ids), audio_prompt_latents=voice, frames_after_eos=2, max_new_tokens=frames
        )
        with torch.inference_mode():
            self._codec.decode(found.audio_latents.float())
        self.first_s = time.perf_counter() - began_s


def measure_peak(part: HearthPart | PlainPart) -> int:
    """Return the most memory that loading and speaking take, beyond the libraries'; in a process of its own."""
    peak = Peak("cpu")
    part.time_parts(0)
    return peak.extra()
