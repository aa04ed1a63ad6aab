"""Ask a machine to compute each part of both starters, and compare with float32 on the processor."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import diffusers
import torch
import transformers
from torch import Tensor

from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.precision_fields import list_dtypes
from app.compat.planning.types import Dtype
from app.compat.selftest.operations import Measured
from app.compat.selftest.probes import Probe, as_planned, careful_plan
from app.compat.selftest.reference import Array, error
from app.engine.models.catalog import BY_ID
from app.engine.speech.dia.codec import Codec
from app.engine.speech.dia.decoder import Decoding, DecodingState, PartInput
from app.engine.speech.dia.sampling import Sampling

Module = Any
Compute = Callable[[Module, str, torch.dtype], Tensor]
"""Computes a part, moved to this device and dtype, on numbers that are always the same."""

TOLERANCE: Final[dict[Dtype, float]] = {"float32": 2e-2, "float16": 2e-2, "bfloat16": 2e-1}
"""Ten times the rounding error seen on a CPU; float32 leaves room for cards that multiply in TF32."""
ROWS: Final = 12
"""Of speech that comes before the row in question."""


def _random(*size: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(0))


def _whole(most: int, *size: int) -> Tensor:
    return torch.randint(0, most, size, generator=torch.Generator().manual_seed(0))


def encode_prompt(encoder: Module, device: str, dtype: torch.dtype) -> Tensor:
    words = _whole(encoder.config.vocab_size, 2, encoder.config.max_position_embeddings)
    found: Tensor = encoder(words.to(device)).last_hidden_state
    return found


def denoise(unet: Module, device: str, dtype: torch.dtype) -> Tensor:
    side, words = unet.config.sample_size // 2, 48
    latents, prompt = _random(2, unet.config.in_channels, side, side), _random(2, words, unet.config.cross_attention_dim)
    found: Tensor = unet(latents.to(device, dtype), 500, prompt.to(device, dtype)).sample
    return found


def decode_latents(vae: Module, device: str, dtype: torch.dtype) -> Tensor:
    found: Tensor = vae.decode(_random(1, vae.config.latent_channels, 8, 8).to(device, dtype)).sample
    return found


def encode_script(voice: Module, device: str, dtype: torch.dtype) -> Tensor:
    words = _whole(voice.config.encoder_config.vocab_size, 2, 64)
    found: Tensor = voice.model.encoder(input_ids=words.to(device)).last_hidden_state
    return found


def decode_row(voice: Module, device: str, dtype: torch.dtype) -> Tensor:
    """Return the logits of the row after the first ones, which come at once, and of the next, which comes alone."""
    config = voice.config.decoder_config
    rows = _whole(config.eos_token_id, ROWS + 1, config.num_channels)
    text = _whole(voice.config.encoder_config.vocab_size, 32)
    begun = DecodingState(rows[:ROWS], torch.Generator().get_state(), ended=None, frames_sent=0)
    decoding = Decoding(voice, device, PartInput(text, None, Sampling(), seed=0, new_rows=2 * ROWS), begun)
    first = decoding.compute_logits()
    decoding.append(rows[ROWS])
    return torch.cat((first, decoding.compute_logits()))


def decode_sound(dac: Module, device: str, dtype: torch.dtype) -> Tensor:
    codes = _whole(dac.config.codebook_size, 16, dac.config.n_codebooks)
    return torch.from_numpy(Codec(dac, device, dtype).decode(codes))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a starter, where it is, and what is asked of it."""

    name: str
    model: str
    folder: str
    kind: str
    compute: Compute


PARTS: Final = (
    Part("text", "starter-painter", "text_encoder", "CLIPTextModel", encode_prompt),
    Part("denoiser", "starter-painter", "unet", "UNet2DConditionModel", denoise),
    Part("vae", "starter-painter", "vae", "AutoencoderKL", decode_latents),
    Part("voice-text", "starter-voice", "", "DiaForConditionalGeneration", encode_script),
    Part("voice-row", "starter-voice", "", "DiaForConditionalGeneration", decode_row),
    Part("codec", "starter-voice", "codec", "DacModel", decode_sound),
)
IN_FLOAT32: Final = ("codec",)
"""A plan never computes these in another dtype."""


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    """Ask each part in each dtype that a plan may choose; on a processor float32 is itself what the others are compared with. What
    is loaded for them is freed with the questions."""
    dtypes = list_dtypes(hardware)
    if hardware.kind == "cpu":
        dtypes = ("bfloat16",) if hardware.fast_bf16 else ()
    plan = careful_plan(hardware)  # attention has questions of its own
    load = cache(_load)

    @cache
    def compute_right(part: Part) -> Array:
        """Compute as transformers and diffusers do, in float32 on the processor."""
        return part.compute(load(part.model, part.folder, part.kind), "cpu", torch.float32).double().numpy()

    def compare(part: Part, dtype: Dtype, device: str) -> Measured:
        right, wanted = compute_right(part), getattr(torch, dtype)
        began_s = time.perf_counter()
        # diffusers' own `to` warns of what is no danger here.
        module = torch.nn.Module.to(deepcopy(load(part.model, part.folder, part.kind)), device, wanted)
        with applied(replace(plan, dtype=dtype)):
            worst = error(part.compute(module, device, wanted), right)  # reading the result waits for the device
        return worst, time.perf_counter() - began_s

    return tuple(
        Probe(Subject.part(part.name, dtype), dtype, as_planned(hardware, partial(compare, part, dtype)), TOLERANCE[dtype], partial(compute_right, part))
        for dtype in dtypes for part in PARTS if dtype == "float32" or part.name not in IN_FLOAT32
    )  # fmt: skip


def _load(model: str, folder: str, kind: str) -> Module:
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call] # it would break the line that says how far the check is
    library = diffusers if hasattr(diffusers, kind) else transformers
    path = Path(BY_ID[model].path) / folder
    return getattr(library, kind).from_pretrained(path, dtype=torch.float32, local_files_only=True, use_safetensors=True).eval()
