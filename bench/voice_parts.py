"""Speak a part with a voice of full size: as Hearth does, and as transformers' documentation does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch
from transformers import (
    GradiumPhononTTSForConditionalGeneration,
    PocketTTSAudioTokenizerModel,
    PocketTTSForConditionalGeneration,
    PreTrainedTokenizerFast,
    Qwen2Tokenizer,
    VibeVoiceForConditionalGeneration,
)

from app.base.bounded_json import read_json
from app.cli.peak_memory import Peak
from app.compat.attention.seam import applied
from app.compat.planning.types import Dtype, Plan
from app.engine.jobs.request import SpeechRequest
from app.engine.models.voice_families import read_type
from app.engine.speech.families.vibevoice.prompt import SYSTEM, VOICE
from app.engine.speech.families.vibevoice.prompt import TEXT as SAID
from app.engine.speech.family import PartTask, VoiceContext
from app.engine.speech.run import loader
from app.engine.speech.run.sounding import Sounding, open_beside
from app.engine.speech.text.turns import ScriptPart, Turn

TEXT: Final = "He comes in from the fjord, alone."
"""Each letter is a token here: as many as a part of 8 seconds has with the models' own tokenizers."""
VOICE_S: Final = 10
POCKETS: Final[dict[str, Any]] = {
    "pocket_tts": PocketTTSForConditionalGeneration, "gradium_phonon_tts": GradiumPhononTTSForConditionalGeneration,
}  # fmt: skip


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


def make_voice(frame_rate: float, width: int) -> torch.Tensor:
    return torch.randn(round(VOICE_S * frame_rate), width, generator=torch.Generator().manual_seed(0))


class HearthPart:
    """A part of a script: its voice was read for an earlier one, and its sound is made each second, beside the loop where the engine would."""

    def __init__(self, folder: Path, plan: Plan, frames: int, threads: int, scratch: Path) -> None:
        self.made_of = (folder, plan, frames, threads, scratch)
        self.first_s = self.cpu_s = 0.0
        """The first is the time until the last part is heard, the second that of all threads."""
        self._voice: Any = None

    def time_parts(self, times: int) -> list[float]:
        if self._voice is None:
            folder, plan, *_ = self.made_of
            self._voice = loader.load(folder, plan).voice
            self.time_parts(1)  # the first warms up
        with threads(self.made_of[3]):
            return time_parts(self, times)

    def drop(self) -> None:
        self._voice = None

    def speak(self) -> None:
        _, plan, frames, _, scratch = self.made_of
        voice, settings = self._voice, self._voice.choose_settings(SpeechRequest(TEXT))
        context = VoiceContext(make_voice(voice.codec.frame_rate, find_width(self.made_of[0])), ())
        task = PartTask(0, ScriptPart((Turn(1, TEXT),), 8.0), context, settings, 1, None, (), "")
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
    """generate() with the voice as its prompt; its sound is there at the end."""

    def __init__(self, folder: Path, dtype: Dtype, frames: int, threads: int) -> None:
        self.made_of = (folder, dtype, frames, threads)
        self.first_s = self.cpu_s = 0.0
        self._generate: Callable[[], object] | None = None

    def time_parts(self, times: int) -> list[float]:
        if self._generate is None:
            folder, dtype, frames, _ = self.made_of
            prepare = prepare_vibevoice if read_type(folder) == "vibevoice" else prepare_pocket
            self._generate = prepare(folder, getattr(torch, dtype), frames)
            self.time_parts(1)
        with threads(self.made_of[3]):
            return time_parts(self, times)

    def speak(self) -> None:
        assert self._generate is not None
        began_s = time.perf_counter()
        self._generate()
        self.first_s = time.perf_counter() - began_s

    def drop(self) -> None:
        self._generate = None


def prepare_pocket(folder: Path, dtype: torch.dtype, frames: int) -> Callable[[], object]:
    model = POCKETS[read_type(folder)].from_pretrained(folder, dtype=dtype, local_files_only=True).eval()
    codec: Any = PocketTTSAudioTokenizerModel.from_pretrained(folder / "codec", local_files_only=True)
    codec.eval()
    own, said = model.config, PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True).encode(TEXT, add_special_tokens=False)
    begin, voice = getattr(own, "audio_prompt_bos_token_id", None), make_voice(12.5, find_width(folder))[None]
    ids = torch.tensor(
        [[*([] if begin is None else [begin]), *[own.audio_prompt_token_id] * voice.shape[1], *said, own.audio_bos_token_id]]
    )

    @torch.inference_mode()
    def generate() -> object:
        found = model.generate(
            ids, attention_mask=torch.ones_like(ids), audio_prompt_latents=voice, frames_after_eos=2, max_new_tokens=frames
        )
        return codec.decode(found.audio_latents.float())

    return generate


def prepare_vibevoice(folder: Path, dtype: torch.dtype, frames: int) -> Callable[[], object]:
    """Its voice is heard by its own encoder, once and beforehand, so that what is timed is the same."""
    model: Any = VibeVoiceForConditionalGeneration.from_pretrained(folder, dtype=dtype, local_files_only=True)
    model.eval()
    own, tokenizer = model.config, Qwen2Tokenizer.from_pretrained(folder, local_files_only=True)
    voice = make_voice(7.5, find_width(folder))
    heard = [own.audio_bos_token_id, *[own.audio_token_id] * len(voice), own.audio_eos_token_id]
    before, after = (tokenizer.encode(each, add_special_tokens=False) for each in (SYSTEM + VOICE, "\n" + SAID.format(said=TEXT)))
    ids = torch.tensor([[*before, *heard, *after, own.audio_bos_token_id]])
    model.model.audio_tower.encode = lambda *_, **__: SimpleNamespace(latents=voice[None].to(dtype))
    sound = torch.zeros(1, 1, len(voice) * own.audio_config.hop_length, dtype=dtype)

    @torch.inference_mode()
    def generate() -> object:
        return model.generate(
            ids, attention_mask=torch.ones_like(ids), input_values=sound, padding_mask=torch.ones(sound.shape[::2]), max_new_tokens=frames
        )

    return generate


def find_width(folder: Path) -> int:
    """Return how many numbers a frame of a voice has."""
    config = read_json(folder / "config.json")
    if config["model_type"] == "vibevoice":
        return int(config["audio_config"]["hidden_size"])
    return int(config.get("audio_prompt_dim", config["latent_dim"]))


def measure_peak(part: HearthPart | PlainPart) -> int:
    """Return the most memory that loading and speaking take, beyond the libraries'; in a process of its own."""
    peak = Peak("cpu")
    part.time_parts(0)
    return peak.extra()
