"""Load a Dia voice from a local folder as the plan says, and begin its parts. decoder.py has the decode loop, run.py speaks a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import torch
from transformers import DacModel, DiaForConditionalGeneration, DiaTokenizer

from app.base.sentence import Sentence
from app.compat.planning.types import Dtype, Plan, Precision, Product, Row
from app.engine.jobs.request import SpeechRequest
from app.engine.models import safetensors
from app.engine.models.loading.packed_linears import BITS, FewLinesLinear, make_linear
from app.engine.models.loading.tokenizer import load_tokenizer
from app.engine.models.loading.voice_parts import device_for, explaining, find_codec, load_part, split_plan
from app.engine.models.voice_limits import VoiceLimits, read_limits
from app.engine.speech.families.dia.codec import Codec
from app.engine.speech.families.dia.decoder import Decoding, PartInput, is_code_of, read_state
from app.engine.speech.families.dia.linears import StoredLinears, is_quicker_here, pack_voice, reorder_weights, runs_once
from app.engine.speech.families.dia.sampling import Sampling
from app.engine.speech.families.dia.voice_prompt import compose_text, count_least_frames
from app.engine.speech.family import PartTask, Voice
from app.engine.speech.sound.spoken_parts import Codes

_HELD: Final[dict[str, Dtype]] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class _DiaModel(DiaForConditionalGeneration):  # type: ignore[no-untyped-call]
    """Adds the input embeddings, which transformers' torchao quantiser asks every model for and its Dia does not report."""

    def get_input_embeddings(self) -> torch.nn.Module:
        return cast(torch.nn.Module, self.model.encoder.embedding)


@dataclass(frozen=True, slots=True)
class Dia:
    """A loaded voice."""

    model: Any
    device: str
    tokenizer: Any
    codec: Codec
    limits: VoiceLimits
    name: str
    row: Row
    notes: tuple[Sentence, ...] = ()
    linears: StoredLinears | None = None

    def choose_settings(self, request: SpeechRequest) -> Sampling:
        own = self.limits.settings
        return Sampling(
            guidance=own["guidance"] if request.guidance is None else request.guidance,
            temperature=own["temperature"] if request.temperature is None else request.temperature,
            top_p=own["top_p"] if request.top_p is None else request.top_p,
            cfg_filter=int(own["cfg_filter"]) if request.cfg_filter is None else request.cfg_filter,
        )

    def begin(self, task: PartTask, seed: int, most_s: float, saved: dict[str, Any] | None) -> Decoding:
        context, limits = task.context, self.limits
        text = compose_text((*(context.turns if context else ()), *task.part.turns), limits, task.named)
        available = limits.rows_most - 1 - (len(context.codes) if context else 0)
        part_input = PartInput(
            torch.tensor(self.tokenizer(text)["input_ids"]),
            context.codes if context else None,
            task.settings,
            seed,
            min(available, int(most_s * limits.frame_rate) + 1 + limits.delay + 1),
            count_least_frames(task.part.turns, limits),
        )
        return Decoding(self.model, self.device, part_input, read_state(saved) if saved is not None else None, self.row)

    def is_code(self, codes: Codes) -> bool:
        return is_code_of(self.model.config, codes)

    def adapt(self, plan: Plan) -> Dia:
        if self.linears is not None:
            self.linears.keep(_kept_bytes(plan))
        return replace(self, row=plan.row)


def load(folder: Path, plan: Plan, beside: Mapping[str, Path], name: str) -> Voice:
    """Load the voice in `folder`. `beside`: where DAC is ("codec"), if not in the folder itself. `name`: what parts are kept under."""
    sound = find_codec(folder, beside, "dac")
    speech, codec_precision = split_plan(plan)
    plan = replace(plan, precision=(speech, codec_precision))
    notes: list[Sentence] = []
    streams, bits = plan.offload in ("group", "sequential"), BITS.get(plan.quantised)
    how = _read_as_held(folder, speech) if bits else speech
    reading = replace(plan, precision=(how, codec_precision), runs_on="cpu" if streams or bits else plan.runs_on)
    model = load_part(_DiaModel, folder, reading, how, notes)
    device = device_for(plan, speech)
    linears = None
    if bits:
        pack_voice(model, bits, device, getattr(torch, speech.storage), getattr(torch, speech.compute), plan.product)
    elif plan.quantised != "none":
        model = _send_packed(model, device) if streams else model
    elif streams or speech.storage != speech.compute:
        linear = getattr(torch, speech.linear or speech.compute)
        _fuse_projections(model)
        for layer in model.model.decoder.layers:  # what every row runs is launched once, and held once
            del layer.self_attention.q_proj, layer.self_attention.k_proj, layer.self_attention.v_proj
        linears = StoredLinears(model, device, linear, getattr(torch, speech.compute), plan.product)
        linears.keep(_kept_bytes(plan))
    else:
        _fuse_projections(model)
        if device == "cpu" and is_quicker_here(speech.compute):
            reorder_weights(model)
        if plan.product != "torch":
            _multiply_few_lines(model, plan.product)
    codec_plan = replace(plan, quantised="none", attention="eager")  # DAC has no attention
    dac = load_part(DacModel, sound, codec_plan, codec_precision, notes)
    with explaining(folder):
        tokenizer = load_tokenizer(DiaTokenizer, folder)
    loaded_codec = Codec(dac, device_for(plan, codec_precision), getattr(torch, codec_precision.compute))
    return Dia(model, device, tokenizer, loaded_codec, read_limits(folder, beside), name, plan.row, tuple(notes), linears)


def _read_as_held(folder: Path, speech: Precision) -> Precision:
    """Read weights that will be packed in the file's own dtype: then they stay there, mapped, and each is read as it is packed."""
    held = {entry.dtype for path in safetensors.list_weights(folder) for entry in safetensors.read_header(path).values()}
    dtype = _HELD.get(next(iter(held))) if len(held) == 1 else None
    return replace(speech, storage=dtype or speech.storage)


def _kept_bytes(plan: Plan) -> int:
    return next((how.kept_bytes for how in plan.precision if how.role == "speech"), 0)


def _fuse_projections(model: Any) -> None:
    """Add `qkv_proj` to each decoder layer: one product instead of three for the attention to its own rows. The three keep working, as views of
    its weight, so nothing is held twice."""
    for layer in model.model.decoder.layers:
        attention = layer.self_attention
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        weight = torch.cat([part.weight.detach() for part in parts])
        for part, view in zip(parts, torch.split(weight, [len(part.weight) for part in parts]), strict=True):
            part.weight.data = view
        attention.qkv_proj = make_linear(weight)


def _multiply_few_lines(model: Any, product: Product) -> None:
    """Replace the layers that every row runs, after _fuse_projections; the three views of its matrix stay for whoever asks them."""
    for name in [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear) and not runs_once(name)]:
        model.set_submodule(name, FewLinesLinear(model.get_submodule(name).weight.detach(), product))


def _send_packed(model: Any, device: str) -> Any:
    """Keep quantised weights on the CPU; each is sent while its layer computes, then dropped. linears.py does it for the others."""
    from accelerate import cpu_offload

    return cpu_offload(model, torch.device(device))
