"""FLUX.1: schnell, and dev, which takes its guidance as a number."""

from __future__ import annotations

from typing import Final

from app.compat.planning.attention_calls import CLIP_L, joint, t5
from app.engine.models.families.family import CLIP, CLIP_WORDS, T5, T5_WORDS, VAE, Encoder, Entries, NumberedGuidance, PictureFamily


def _recognise(entries: Entries, prefix: str) -> str | None:
    if f"{prefix}double_blocks.0.img_attn.norm.key_norm.scale" not in entries:
        return None
    first = entries.get(f"{prefix}img_in.weight")
    other = first is not None and len(first.shape) == 2 and first.shape[-1] in (96, 128, 384)
    return "FLUX.1 Fill, Canny or Depth" if other else ""


FAMILY: Final = PictureFamily(
    "flux", "FLUX.1", "FLUX.1", "flux1-schnell", "FluxPipeline",
    {
        "text_encoder": CLIP, "tokenizer": CLIP_WORDS, "text_encoder_2": T5, "tokenizer_2": T5_WORDS,
        "transformer": ("FluxTransformer2DModel",), "vae": VAE,
    },
    lambda width, height: (CLIP_L, t5(1, 256), *joint(1, 24, 128, text=256, masked=False, width=width, height=height)), _recognise,
    "FluxImg2ImgPipeline", "FluxInpaintPipeline", unpack="unpack", negative_prompts=False, guidance="number",
    outer_share=0.04,
    numbered=NumberedGuidance(
        28, 3.5, 512, (("use_dynamic_shifting", True), ("shift", 3.0), ("base_shift", 0.5), ("max_shift", 1.15)), "guidance_in.in_layer.weight",
    ),
    call_arguments={"max_sequence_length": 256}, encoders=(Encoder("text_encoder", "CLIP", 768), Encoder("text_encoder_2", "T5", 4096)),
    vae_file="ae", unsafe_in_half=("vae",), written_as=("flux-1", "flux1"), lora_marks=("single_transformer_blocks", "double_blocks"),
)  # fmt: skip
