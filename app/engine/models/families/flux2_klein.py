"""FLUX.2 klein: four steps, and pictures changed by words."""

from __future__ import annotations

from typing import Final

from app.compat.planning.attention_calls import QWEN, joint
from app.engine.models.families.family import QWEN_3, QWEN_CHAT, QWEN_WORDS, Encoder, Entries, PictureFamily, WholeSteps


def _recognise(entries: Entries, prefix: str) -> str | None:
    modulation = entries.get(f"{prefix}single_stream_modulation.lin.weight")
    if modulation is None:
        return None
    return "FLUX.2 dev or klein 9B" if modulation.shape[-1:] in ((4096,), (6144,)) else ""


FAMILY: Final = PictureFamily(
    "flux2-klein", "FLUX.2 klein 4B", "FLUX.2", "flux2-klein", "Flux2KleinPipeline",
    {"text_encoder": QWEN_3, "tokenizer": QWEN_WORDS, "transformer": ("Flux2Transformer2DModel",), "vae": ("AutoencoderKLFlux2",)},
    lambda width, height: (QWEN, *joint(1, 24, 128, text=512, masked=False, width=width, height=height)), _recognise,
    "Flux2KleinPipeline", "Flux2KleinInpaintPipeline", unpack="unpatch", negative_prompts=False, uses_strength=False, guidance="calls", spares_guidance=False,
    outer_share=0.08, whole_steps=WholeSteps(50, 4.0), chat_template=QWEN_CHAT, encoders=(Encoder("text_encoder", "Qwen 3", 2560),), vae_file="flux2-vae",
    unsafe_in_half=("vae",),
    written_as=("flux-2", "flux.2", "flux2"), lora_marks=("to_qkv_mlp_proj", "stream_modulation"),
)  # fmt: skip
