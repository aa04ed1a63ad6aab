"""Ask a machine to compute each part of both starters, and compare with float32 on the processor."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
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
from app.engine.models.voice_families import FAMILIES

Module = Any
Compute = Callable[[Module, str, torch.dtype], Tensor]
"""It computes a part, moved to this device and dtype, on numbers that are always the same."""

TOLERANCE: Final[dict[Dtype, float]] = {"float32": 2e-2, "float16": 2e-2, "bfloat16": 2e-1}
"""These are ten times the rounding error seen on a CPU; float32 leaves room for cards that multiply in TF32."""


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
    *(Part(name, "starter-voice", *more) for name, *more in import_module(FAMILIES[BY_ID["starter-voice"].family].starter_check).PARTS),
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
        Probe(
            Subject.part(part.name, dtype),
            dtype,
            as_planned(hardware, partial(compare, part, dtype)),
            TOLERANCE[dtype],
            partial(compute_right, part),
        )
        for dtype in dtypes
        for part in PARTS
        if dtype == "float32" or part.name not in IN_FLOAT32
    )


def _load(model: str, folder: str, kind: str) -> Module:
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call] # it would break the line that says how far the check is
    library = diffusers if hasattr(diffusers, kind) else transformers
    path = Path(BY_ID[model].path) / folder
    return getattr(library, kind).from_pretrained(path, dtype=torch.float32, local_files_only=True, use_safetensors=True).eval()
