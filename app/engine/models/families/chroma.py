"""Chroma: FLUX.1 schnell trained anew, without the parts that only told it the time; guided, with negative prompts."""

from __future__ import annotations

import re
from typing import Final

from app.compat.planning.attention_calls import joint, t5
from app.engine.models.families.family import T5, T5_WORDS, VAE, Encoder, Entries, FewSteps, PictureFamily


def _recognise(entries: Entries, prefix: str) -> str | None:
    return "" if f"{prefix}distilled_guidance_layer.in_proj.bias" in entries else None


_FLASH: Final = re.compile(
    r"(?i:(?<![a-z])|chroma|hd)(?i:flash)(?:[vV]?\d+)?(?![A-Za-z])|(?:(?<![A-Z])|CHROMA|HD)Flash(?!(?i:light|back))(?:[vV]?\d+)?(?![a-z])"
)
"""Also written together with other words or its version, as on Civitai: chroma1HDFlash_v1, chromaFlashHeun, chroma-flashv2; no flashlight or FlashBack."""

FAMILY: Final = PictureFamily(
    "chroma", "Chroma", "Chroma", "chroma1-hd", "ChromaPipeline",
    {"text_encoder": T5, "tokenizer": T5_WORDS, "transformer": ("ChromaTransformer2DModel",), "vae": VAE},
    lambda width, height: (t5(1, 512), *joint(1, 24, 128, text=512, masked=True, width=width, height=height)), _recognise,
    "ChromaImg2ImgPipeline", "ChromaInpaintPipeline", unpack="unpack", guidance="calls", spares_guidance=False,
    few_steps=FewSteps(_FLASH, 8, 1.0),  # Chroma1 Flash: its files and settings are those of Chroma1 HD
    outer_share=0.04,  # of its multiplications (docs/speed-pictures.md)
    asked_of_denoiser={"guidance_embeds": False}, encoders=(Encoder("text_encoder", "T5", 4096),), vae_file="ae", unsafe_in_half=("vae",),
    written_as=("chroma",), lora_marks=("distilled_guidance_layer",), loras_like="flux",
)  # fmt: skip
