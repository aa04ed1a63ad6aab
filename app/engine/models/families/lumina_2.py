"""Lumina 2: one transformer for picture and text, as small as SDXL's UNet, read by Gemma 2; it paints from text alone."""

from __future__ import annotations

from typing import Final

from app.compat.planning.attention_calls import Call, joint
from app.engine.models.families.family import VAE, Encoder, Entries, PictureFamily


def _recognise(entries: Entries, prefix: str) -> str | None:
    return "" if f"{prefix}layers.0.adaLN_modulation.1.weight" in entries and f"{prefix}cap_embedder.0.weight" in entries else None


FAMILY: Final = PictureFamily(
    "lumina-2", "Lumina 2", "Lumina 2", "lumina-2", "Lumina2Pipeline",
    {
        "text_encoder": ("Gemma2Model",), "tokenizer": ("GemmaTokenizer", "GemmaTokenizerFast"),
        "transformer": ("Lumina2Transformer2DModel",), "vae": VAE,
    },
    lambda width, height: (
        Call("prompt, Gemma 2", 1, 8, 4, 256, 256, 256, masked=True), *joint(1, 24, 96, text=256, masked=False, width=width, height=height),
    ),
    _recognise, guidance="calls", spares_guidance=False,
    outer_share=0.11,  # the refiners and the first of its layers: 3 of 28
    call_arguments={"cfg_trunc_ratio": 0.25},  # as its makers: only the first quarter of the steps is guided
    encoders=(Encoder("text_encoder", "Gemma 2", 2304),), vae_file="ae", unsafe_in_half=("vae", "transformer", "text_encoder"),
    written_as=("lumina",), lora_marks=("layers.0.attn.", "layers_0_attn_"), loras_like="z-image",
)  # fmt: skip
