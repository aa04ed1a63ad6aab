"""Load a Pocket TTS or a Phonon from a local folder as the plan says, and begin its parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import (
    GradiumPhononTTSForConditionalGeneration,
    PocketTTSAudioTokenizerModel,
    PocketTTSForConditionalGeneration,
    PreTrainedTokenizerFast,
)

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.planning.types import Plan
from app.engine.jobs.request import SpeechRequest
from app.engine.models import safetensors
from app.engine.models.loading.packed_linears import BITS
from app.engine.models.loading.tokenizer import load_tokenizer
from app.engine.models.loading.voice_parts import device_for, explaining, find_codec, load_part, split_plan
from app.engine.models.voice_families import read_type
from app.engine.models.voice_limits import VoiceLimits, read_limits
from app.engine.speech.families.pocket.backbone import Backbone, Remembered
from app.engine.speech.families.pocket.codec import Codec
from app.engine.speech.families.pocket.facts import PHONON, Manner, find_frame_width, read_manner
from app.engine.speech.families.pocket.flow_head import FlowHead
from app.engine.speech.families.pocket.fused import fuse, pack
from app.engine.speech.families.pocket.part import Ending, Part
from app.engine.speech.families.pocket.prompt import prepare_text
from app.engine.speech.families.pocket.voices_brought import SIDEWAYS, find_frames
from app.engine.speech.family import PartTask, Voice
from app.engine.speech.sound.spoken_parts import Codes

HEARD_MOST: Final = 8
"""So many voices are kept as the model has read them: a part begins where the last one with its voice did."""


@dataclass(frozen=True, slots=True)
class Pocket:
    """A loaded voice."""

    model: Any
    device: str
    tokenizer: Any
    codec: Codec
    limits: VoiceLimits
    manner: Manner
    head: FlowHead
    name: str
    notes: tuple[Sentence, ...] = ()
    heard: dict[bytes, Remembered] = field(default_factory=dict)

    def choose_settings(self, request: SpeechRequest) -> float:
        return self.manner.temperature if request.temperature is None else request.temperature

    def begin(self, task: PartTask, seed: int, most_s: float, saved: dict[str, Any] | None) -> Part:
        text = prepare_text((turn.text for turn in task.part.turns), self.limits.figures, _list_spelled(self.tokenizer))
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        prompt, most = torch.tensor(ids, dtype=torch.long, device=self.device), max(1, round(most_s * self.limits.frame_rate))
        frames = self._find_frames(task)
        before = self._hear(frames) if frames is not None else None
        rows = Backbone(self.model, self.device, len(prompt) + 1 + most, before)
        manner = self.manner
        after = manner.after_short if len(text.split()) <= manner.short_words else manner.after
        part = Part(
            self.model,
            self.head,
            rows,
            prompt,
            seed=seed,
            temperature=task.settings,
            ending=Ending(manner.threshold, manner.least, after),
            most=most,
        )
        if saved is not None:
            part.resume(saved)
        return part

    def _find_frames(self, task: PartTask) -> Tensor | None:
        """Return the frames of the voice of a part's speaker: of the clip, of one of the voices that came with the model, or of none."""
        context, speaker, named = task.context, task.part.turns[0].speaker, task.named or self.limits.usual
        if context is not None and (not named or not context.turns or speaker in context.speakers):
            return context.codes
        if not named:
            return None
        config = self.model.config
        return read_voice(self.limits.brought[named[speaker - 1]], find_frame_width(config.to_dict()), self.manner.made_for)

    @torch.inference_mode()
    def _hear(self, frames: Tensor) -> Remembered:
        """Return what the model remembers of a voice's frames, read once."""
        key = frames.numpy().tobytes()
        if key not in self.heard:
            inner, config = self.model.model, self.model.config
            read = inner.audio_prompt_proj(frames.to(self.device, inner.audio_prompt_proj.weight.dtype))
            if (begin := getattr(config, "audio_prompt_bos_token_id", None)) is not None:
                read = torch.cat((inner.embed_tokens(torch.tensor([begin], device=self.device)), read))
            rows = Backbone(self.model, self.device, len(read))
            rows(read)
            if len(self.heard) == HEARD_MOST:
                del self.heard[next(iter(self.heard))]
            self.heard[key] = rows.remember()
        return self.heard[key]

    def is_code(self, codes: Codes) -> bool:
        """Frames are no whole numbers: none is stored."""
        return False

    def adapt(self, plan: Plan) -> Pocket:
        return self


def read_voice(file: Path, width: int, made_for: Collection[str]) -> Tensor:
    """Return the frames (frames, width) of a voice that comes with a model; raise a Trouble unless they are numbers and were made for this model.
    `made_for`: what it takes, by the names that voices have for it; empty: any."""
    header = safetensors.read_whole_header(file)
    maker = header.words.get("model_ext")
    if maker is not None and made_for and maker not in made_for:
        raise _refuse_voice(file)
    found = find_frames(header.entries, width)
    if found is None:
        raise _refuse_voice(file)
    with safe_open(file, "pt") as opened:
        frames: Tensor = opened.get_tensor(found[0]).float().flatten(0, -2)
    if not bool(frames.isfinite().all()):
        raise _refuse_voice(file)
    return frames.T.contiguous() if found[0] == SIDEWAYS else frames


def _refuse_voice(file: Path) -> Trouble:
    return Trouble(
        say(
            "pocket.other-voice",
            "The voice in {file} was made for another model, or is damaged. Choose another voice, or download the model again.",
            file=str(file),
        )
    )


def _list_spelled(tokenizer: Any) -> frozenset[str]:
    """Return the characters in a tokenizer's pieces; none where it writes any other as bytes that it knows as well."""
    pieces = tokenizer.get_vocab()
    return frozenset("".join(each for each in pieces if not each.startswith("<0x"))) if "<0x41>" in pieces else frozenset()


def load(folder: Path, plan: Plan, beside: Mapping[str, Path], name: str) -> Voice:
    """Load the voice in `folder`. `beside`: where its codec is ("codec"), if not in the folder itself. `name`: what parts are kept under."""
    sound = find_codec(folder, beside, "pocket_tts_audio_tokenizer")
    speech, codec_precision = split_plan(plan)
    plan, bits = replace(plan, precision=(speech, codec_precision)), BITS.get(plan.quantised)
    notes: list[Sentence] = []
    kind = GradiumPhononTTSForConditionalGeneration if read_type(folder) == PHONON else PocketTTSForConditionalGeneration
    model = load_part(kind, folder, replace(plan, runs_on="cpu") if bits else plan, speech, notes)
    device = device_for(plan, speech)
    with explaining(folder):
        if bits:
            pack(model, bits, device, getattr(torch, speech.compute))
        else:
            fuse(model)
        tokenizer = load_tokenizer(PreTrainedTokenizerFast, folder)
    codec_plan = replace(plan, quantised="none", attention="eager")
    codec = load_part(PocketTTSAudioTokenizerModel, sound, codec_plan, codec_precision, notes)
    loaded = Codec(codec, device_for(plan, codec_precision), getattr(torch, codec_precision.compute))
    manner = read_manner(folder)
    with torch.inference_mode():
        head = FlowHead(model.flow_head, manner.steps)
    return Pocket(model, device, tokenizer, loaded, read_limits(folder, beside), manner, head, name, tuple(notes))
