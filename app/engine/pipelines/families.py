"""Families of diffusion models as rows: their pipelines, what each is told, and how their latents become the decoder's. No weights here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from app.engine.models.model import Family as Name

Unpack = Callable[[Any, torch.Tensor, int, int], torch.Tensor]
"""(pipeline, latents, height, width) -> latents as the VAE wants them, [1, C, h, w]."""


def _unscale(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    config = pipe.vae.config
    scaling: float = config.scaling_factor
    mean, std = getattr(config, "latents_mean", None), getattr(config, "latents_std", None)
    if mean is not None and std is not None:
        shape = (1, len(mean), 1, 1)
        latents = latents * torch.tensor(std).view(shape).to(latents) / scaling
        return latents + torch.tensor(mean).view(shape).to(latents)
    return latents / scaling


def _unscale_and_shift(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    scaling: float = pipe.vae.config.scaling_factor
    shift: float = pipe.vae.config.shift_factor
    return latents / scaling + shift


def _unpack(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    plain = pipe._unpack_latents(latents, height, width, pipe.vae_scale_factor)
    return _unscale_and_shift(pipe, plain, height, width)


def _unpatch(pipe: Any, latents: torch.Tensor, height: int, width: int) -> torch.Tensor:
    if latents.ndim == 4:  # the pipeline hands its last latents out ready for the VAE
        return latents
    side = pipe.vae_scale_factor * 2
    patches = latents.permute(0, 2, 1).reshape(1, latents.shape[2], height // side, width // side)
    norm = pipe.vae.bn
    mean = norm.running_mean.view(1, -1, 1, 1).to(patches)
    std = torch.sqrt(norm.running_var.view(1, -1, 1, 1) + pipe.vae.config.batch_norm_eps).to(patches)
    plain: torch.Tensor = pipe._unpatchify_latents(patches * std + mean)
    return plain


@dataclass(frozen=True, slots=True)
class Family:
    text_class: str
    """The class of diffusers that paints from text; the other two where there are such."""
    image_class: str = ""
    inpaint_class: str = ""
    denoiser: str = "transformer"
    unpack: Unpack = _unscale_and_shift
    negative_prompts: bool = True
    flow_matching: bool = True
    """A flow model comes with the one schedule that suits it."""
    prompt_weights: bool = False
    """Whether its text encoders are CLIP's alone, which take weighted words."""
    uses_strength: bool = True
    """False: a picture without a mask is edited by words, not partly repainted."""
    call_arguments: Mapping[str, Any] = field(default_factory=dict)
    """What its pipelines are always told."""
    load_arguments: Mapping[str, Any] = field(default_factory=dict)


FAMILIES: Final[dict[Name, Family]] = {
    "sd15": Family(
        "StableDiffusionPipeline", "StableDiffusionImg2ImgPipeline", "StableDiffusionInpaintPipeline", "unet", _unscale,
        flow=False, weights=True, loaded_with={"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False},
    ),
    "sdxl": Family(
        "StableDiffusionXLPipeline", "StableDiffusionXLImg2ImgPipeline", "StableDiffusionXLInpaintPipeline", "unet",
        _unscale, flow=False, weights=True, loaded_with={"add_watermarker": False},
    ),
    "pixart-sigma": Family(
        "PixArtSigmaPipeline", unpack=_unscale, flow=False,
        told={"use_resolution_binning": False, "clean_caption": False},
    ),
    "sd3": Family("StableDiffusion3Pipeline", "StableDiffusion3Img2ImgPipeline", "StableDiffusion3InpaintPipeline"),
    "flux": Family(
        "FluxPipeline", "FluxImg2ImgPipeline", "FluxInpaintPipeline", unpack=_unpack, negative=False,
        told={"max_sequence_length": 256},
    ),
    "flux2-klein": Family(
        "Flux2KleinPipeline", "Flux2KleinPipeline", "Flux2KleinInpaintPipeline", unpack=_unpatch, negative=False,
        strength=False,
    ),
    "z-image": Family("ZImagePipeline", "ZImageImg2ImgPipeline", "ZImageInpaintPipeline"),
}  # fmt: skip
