"""Load a VibeVoice from a local folder as the plan says, and begin its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from transformers import Qwen2Tokenizer, VibeVoiceForConditionalGeneration

from app.base.sentence import Sentence
from app.compat.planning.types import Plan
from app.engine.jobs.request import SpeechRequest
from app.engine.models.loading.packed_linears import BITS
from app.engine.models.loading.tokenizer import load_tokenizer
from app.engine.models.loading.voice_parts import device_for, explaining, load_part, split_plan
from app.engine.models.voice_limits import VoiceLimits, read_limits
from app.engine.speech.families.vibevoice.backbone import Backbone, Memory
from app.engine.speech.families.vibevoice.codec import Codec
from app.engine.speech.families.vibevoice.diffusion import DiffusionHead
from app.engine.speech.families.vibevoice.facts import read_manner
from app.engine.speech.families.vibevoice.fused import fuse, pack
from app.engine.speech.families.vibevoice.part import Part, Parts, Signs
from app.engine.speech.families.vibevoice.prompt import SYSTEM, TEXT, VOICE, prepare_text
from app.engine.speech.family import PartTask, Voice
from app.engine.speech.sound.spoken_parts import Codes

HEARD_MOST: Final = 8
"""So many voices are kept as the model has read them: a part begins where the last one with its voice did."""


@dataclass(frozen=True, slots=True)
class VibeVoice:
    """A loaded voice."""

    parts: Parts
    device: str
    tokenizer: Any
    codec: Codec
    limits: VoiceLimits
    name: str
    notes: tuple[Sentence, ...] = ()
    heard: dict[bytes, Memory] = field(default_factory=dict)

    def choose_settings(self, request: SpeechRequest) -> float:
        return self.limits.settings["guidance"] if request.guidance is None else request.guidance

    @torch.inference_mode()
    def begin(self, task: PartTask, seed: int, most_s: float, saved: dict[str, Any] | None) -> Part:
        said = TEXT.format(said=prepare_text(turn.text for turn in task.part.turns))
        frames = _find_frames(task)
        ids = [*self._encode("\n" * (frames is not None) + said), self.parts.signs.begin]
        most = max(1, round(most_s * self.limits.frame_rate))
        part = Part(self.parts, self.parts.embed(ids), self._hear(frames), seed=seed, guidance=task.settings, most=most)
        if saved is not None:
            part.resume(saved)
        return part

    def _hear(self, frames: Tensor | None) -> Memory:
        """Return what the model remembers of its task and of a voice's frames, read once."""
        key, parts = b"" if frames is None else frames.numpy().tobytes(), self.parts
        if key not in self.heard:
            model, signs = parts.model, parts.signs
            rows = parts.embed(self._encode(SYSTEM if frames is None else SYSTEM + VOICE))
            if frames is not None:
                read = model.multi_modal_projector(frames.to(self.device, rows.dtype))
                rows = torch.cat((rows, parts.embed([signs.begin]), read, parts.embed([signs.close])))
            memory = Memory(model, len(rows))
            parts.backbone(rows, memory)
            if len(self.heard) == HEARD_MOST:
                del self.heard[next(iter(self.heard))]
            self.heard[key] = memory
        return self.heard[key]

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def is_code(self, codes: Codes) -> bool:
        """Frames are no whole numbers: none is stored."""
        return False

    def adapt(self, plan: Plan) -> VibeVoice:
        return self


def _find_frames(task: PartTask) -> Tensor | None:
    """Return the frames of the voice of a part's speaker: of a recording, or of an earlier part of his. Another's voice is none."""
    context = task.context
    if context is None or (context.turns and task.part.turns[0].speaker not in context.speakers):
        return None
    return context.codes


def load(folder: Path, plan: Plan, beside: Mapping[str, Path], name: str) -> Voice:
    """Load the voice in `folder`. `name`: what parts are kept under."""
    speech, _ = split_plan(plan)
    manner, limits, bits = read_manner(folder), read_limits(folder, beside), BITS.get(plan.quantised)
    notes: list[Sentence] = []
    # Its towers have no attention, and transformers knows them by no other; the backbone calls torch's itself.
    reading = replace(plan, attention="eager", runs_on="cpu" if bits else plan.runs_on)
    whole = load_part(VibeVoiceForConditionalGeneration, folder, reading, speech, notes)
    device, model = device_for(plan, speech), whole.model
    with explaining(folder), torch.no_grad():
        config = whole.config
        signs = Signs(config.audio_token_id, config.audio_bos_token_id, config.audio_eos_token_id, config.eos_token_id)
        words = whole.lm_head.weight[signs.all].to(device)
        if bits:
            pack(model, bits, device, getattr(torch, speech.compute), plan.product)
        else:
            fuse(model, device)
        parts = Parts(model, words, signs, Backbone(model), DiffusionHead(model.diffusion_head, manner))
        tokenizer = load_tokenizer(Qwen2Tokenizer, folder)
    return VibeVoice(parts, device, tokenizer, Codec(model, device, limits.rate, manner.loudness_db), limits, name, tuple(notes))
