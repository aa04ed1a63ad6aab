"""Stable Diffusion 3.5 Medium: three text encoders, attention to picture and text at once."""

from __future__ import annotations

from typing import Final

from app.compat.planning.attention_calls import CLIP_G, CLIP_L, GUIDED, Call, joint, t5
from app.engine.models.families.family import CLIP_WORDS, PROJECTED_CLIP, T5, T5_WORDS, VAE, Encoder, Entries, PictureFamily


def _recognise(entries: Entries, prefix: str) -> str | None:
    if f"{prefix}joint_blocks.0.context_block.adaLN_modulation.1.bias" not in entries:
        return None
    if f"{prefix}joint_blocks.37.x_block.mlp.fc1.weight" in entries:
        return "Stable Diffusion 3.5 Large"
    return "" if f"{prefix}joint_blocks.0.x_block.attn2.qkv.weight" in entries else "Stable Diffusion 3 Medium"


def _list_calls(width: int, height: int) -> tuple[Call, ...]:
    tokens = -(-width // 16) * -(-height // 16)
    itself = Call("itself", GUIDED, 24, 24, tokens, tokens, 64)
    return CLIP_L, CLIP_G, t5(GUIDED, 256), *joint(GUIDED, 24, 64, text=333, masked=False, width=width, height=height), itself


FAMILY: Final = PictureFamily(
    "sd3", "Stable Diffusion 3.5 Medium", "SD 3", "sd35-medium", "StableDiffusion3Pipeline",
    {
        "text_encoder": PROJECTED_CLIP, "tokenizer": CLIP_WORDS, "text_encoder_2": PROJECTED_CLIP, "tokenizer_2": CLIP_WORDS,
        "text_encoder_3": T5, "tokenizer_3": T5_WORDS, "transformer": ("SD3Transformer2DModel",), "vae": VAE,
    },
    _list_calls, _recognise, "StableDiffusion3Img2ImgPipeline", "StableDiffusion3InpaintPipeline",
    # The two CLIPs of other programs come without their projection.
    encoders=(Encoder("text_encoder"), Encoder("text_encoder_2"), Encoder("text_encoder_3", "T5", 4096)),
    vae_file="sd3_vae", outer_share=0.05, written_as=("stable-diffusion-3", "sd3"), lora_marks=("joint_blocks",),
)  # fmt: skip
