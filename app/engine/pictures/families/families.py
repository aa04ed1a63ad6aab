"""Describe each family of diffusion models: its pipeline classes, their arguments, and how its latents become the VAE's. No weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch

Parts = Mapping[str, tuple[str, ...]]
"""The parts of a pipeline, and the classes that each may have. A folder only chooses among them: others may load what their config names,
from anywhere. Schedulers are checked by their kind (loader.py)."""
Unpack = Callable[[Any, torch.Tensor, int, int], torch.Tensor]
"""(pipeline, latents, height, width) -> latents for the VAE, [1, C, h, w]."""


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
    if latents.ndim == 4:  # the pipeline returns its final latents ready for the VAE
        return latents
    side = pipe.vae_scale_factor * 2
    patches = latents.permute(0, 2, 1).reshape(1, latents.shape[2], height // side, width // side)
    norm = pipe.vae.bn
    mean = norm.running_mean.view(1, -1, 1, 1).to(patches)
    std = torch.sqrt(norm.running_var.view(1, -1, 1, 1) + pipe.vae.config.batch_norm_eps).to(patches)
    plain: torch.Tensor = pipe._unpatchify_latents(patches * std + mean)
    return plain


_VAE: Final = ("AutoencoderKL", "AutoencoderTiny", "AsymmetricAutoencoderKL")
_CLIP: Final = ("CLIPTextModel",)
_PROJECTED_CLIP: Final = ("CLIPTextModelWithProjection",)
_T5: Final = ("T5EncoderModel",)
_QWEN: Final = ("Qwen3ForCausalLM", "Qwen3Model")
_CLIP_WORDS: Final = ("CLIPTokenizer", "CLIPTokenizerFast")
_T5_WORDS: Final = ("T5Tokenizer", "T5TokenizerFast")
_QWEN_WORDS: Final = ("Qwen2Tokenizer", "Qwen2TokenizerFast")
_QWEN_CHAT: Final = (
    "<|im_start|>user\n{{ messages[0]['content'] }}<|im_end|>\n<|im_start|>assistant\n"
    "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
"""What Qwen 3's own template makes of the one message that pipelines give it."""


@dataclass(frozen=True, slots=True)
class Family:
    text_class: str
    """The class of diffusers for text to picture; the next two for a start picture and a mask, if there are any."""
    parts: Parts
    image_class: str = ""
    inpaint_class: str = ""
    denoiser: str = "transformer"
    unpack: Unpack = _unscale_and_shift
    negative_prompts: bool = True
    flow_matching: bool = True
    """Flow-matching models keep their own scheduler."""
    prompt_weights: bool = False
    """Whether all its text encoders are CLIP, which takes weighted words."""
    uses_strength: bool = True
    """False: a start picture without a mask is edited by the prompt, and strength has no effect."""
    call_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Always passed to the pipeline's call."""
    guided_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Passed too where the denoiser takes guidance as a number."""
    load_arguments: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str = ""
    """Makes what its text encoder reads of a prompt, in Jinja; empty where that is the prompt."""


FAMILIES: Final[dict[str, Family]] = {
    "sd15": Family(
        "StableDiffusionPipeline", {"text_encoder": _CLIP, "tokenizer": _CLIP_WORDS, "unet": ("UNet2DConditionModel",), "vae": _VAE},
        "StableDiffusionImg2ImgPipeline", "StableDiffusionInpaintPipeline", "unet", _unscale,
        flow_matching=False, prompt_weights=True, load_arguments={"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False},
    ),
    "sdxl": Family(
        "StableDiffusionXLPipeline",
        {
            "text_encoder": _CLIP, "tokenizer": _CLIP_WORDS, "text_encoder_2": _PROJECTED_CLIP, "tokenizer_2": _CLIP_WORDS,
            "unet": ("UNet2DConditionModel",), "vae": _VAE,
        },
        "StableDiffusionXLImg2ImgPipeline", "StableDiffusionXLInpaintPipeline", "unet",
        _unscale, flow_matching=False, prompt_weights=True, load_arguments={"add_watermarker": False},
    ),
    "pixart-sigma": Family(
        "PixArtSigmaPipeline",
        {"text_encoder": _T5, "tokenizer": _T5_WORDS, "transformer": ("PixArtTransformer2DModel", "Transformer2DModel"), "vae": _VAE},
        unpack=_unscale, flow_matching=False, call_arguments={"use_resolution_binning": False, "clean_caption": False},
    ),
    "sd3": Family(
        "StableDiffusion3Pipeline",
        {
            "text_encoder": _PROJECTED_CLIP, "tokenizer": _CLIP_WORDS, "text_encoder_2": _PROJECTED_CLIP, "tokenizer_2": _CLIP_WORDS,
            "text_encoder_3": _T5, "tokenizer_3": _T5_WORDS, "transformer": ("SD3Transformer2DModel",), "vae": _VAE,
        },
        "StableDiffusion3Img2ImgPipeline", "StableDiffusion3InpaintPipeline",
    ),
    "flux": Family(
        "FluxPipeline",
        {
            "text_encoder": _CLIP, "tokenizer": _CLIP_WORDS, "text_encoder_2": _T5, "tokenizer_2": _T5_WORDS,
            "transformer": ("FluxTransformer2DModel",), "vae": _VAE,
        },
        "FluxImg2ImgPipeline", "FluxInpaintPipeline", unpack=_unpack, negative_prompts=False,
        call_arguments={"max_sequence_length": 256}, guided_arguments={"max_sequence_length": 512},
    ),
    "flux2-klein": Family(
        "Flux2KleinPipeline",
        {"text_encoder": _QWEN, "tokenizer": _QWEN_WORDS, "transformer": ("Flux2Transformer2DModel",), "vae": ("AutoencoderKLFlux2",)},
        "Flux2KleinPipeline", "Flux2KleinInpaintPipeline", unpack=_unpatch, negative_prompts=False,
        uses_strength=False, chat_template=_QWEN_CHAT,
    ),
    "z-image": Family(
        "ZImagePipeline",
        {"text_encoder": _QWEN, "tokenizer": _QWEN_WORDS, "transformer": ("ZImageTransformer2DModel",), "vae": _VAE},
        "ZImageImg2ImgPipeline", "ZImageInpaintPipeline", chat_template=_QWEN_CHAT,
    ),
}  # fmt: skip
