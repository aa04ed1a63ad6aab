"""Z-Image: one transformer for picture and text, which float16 holds only when its weights are scaled."""

from __future__ import annotations

from typing import Final

from app.compat.planning.attention_calls import QWEN, joint
from app.engine.models.families.family import QWEN_3, QWEN_CHAT, QWEN_WORDS, VAE, Encoder, Entries, PictureFamily, WholeSteps


def _recognise(entries: Entries, prefix: str) -> str | None:
    return "" if f"{prefix}layers.0.adaLN_modulation.0.weight" in entries else None


FAMILY: Final = PictureFamily(
    "z-image", "Z-Image", "Z-Image", "z-image-turbo", "ZImagePipeline",
    {"text_encoder": QWEN_3, "tokenizer": QWEN_WORDS, "transformer": ("ZImageTransformer2DModel",), "vae": VAE},
    lambda width, height: (QWEN, *joint(1, 30, 128, text=512, masked=True, width=width, height=height)), _recognise,
    "ZImageImg2ImgPipeline", "ZImageInpaintPipeline", spares_guidance=False, outer_share=0.09, whole_steps=WholeSteps(50, 4.0, 6.0), steps_unsaid=True,
    chat_template=QWEN_CHAT, encoders=(Encoder("text_encoder", "Qwen 3", 2560),), vae_file="ae",
    unsafe_in_half=("vae", "transformer"), scaled=("transformer",),
    written_as=("zimage",), lora_marks=("layers.0.attention", "layers_0_attention"),
    guide_share=0.6,  # of its layers: the largest control models have 15 and 2, and compute the refiners' 2 once more, beside 30 and 2
)  # fmt: skip
