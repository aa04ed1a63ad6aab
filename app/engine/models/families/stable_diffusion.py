"""Stable Diffusion 1.5 and XL, and what is told from their files by the same tensors: SD 2, the refiner, inpainting models, EDM."""

from __future__ import annotations

from typing import Final

from app.base.sentence import Value, say
from app.compat.planning.attention_calls import CLIP_G, CLIP_L, GUIDED, SD15, SDXL, unet
from app.engine.models.families.family import CLIP, CLIP_WORDS, PROJECTED_CLIP, VAE, Encoder, Entries, PictureFamily

INPAINTING: Final = say("family.inpainting", "an inpainting or editing model")
REFINER: Final = say("family.refiner", "the refiner of SDXL")
EDM: Final = say("family.edm", "a model with EDM's noise, such as Playground 2.5")
_EDM_MARKS: Final = {"edm_mean": "Playground 2.5", "edm_vpred.sigma_max": "CosXL"}
"""These tensors beside SDXL's say that its noise is another, as ComfyUI reads them too."""
_UNKNOWN: Final = say("family.unknown", "a denoiser of another family")


def _recognise(entries: Entries, prefix: str, wanted: str) -> Value | None:
    first = entries.get(f"{prefix}input_blocks.0.0.weight")
    if first is None or len(first.shape) != 4:
        return None
    shallow = entries.get(f"{prefix}input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight")
    deep = entries.get(f"{prefix}input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight")
    if first.shape[1] != 4:
        return INPAINTING
    if edm := next((title for mark, title in _EDM_MARKS.items() if mark in entries), ""):
        return edm
    if "conditioner.embedders.0.model.text_projection" in entries or (shallow is None and deep is not None and deep.shape[-1] == 1280):
        return REFINER
    if shallow is not None and shallow.shape[-1] == 1024:
        return "Stable Diffusion 2"
    if shallow is not None and shallow.shape[-1] == 768:
        return "" if wanted == "sd15" else None
    if f"{prefix}label_emb.0.0.weight" in entries:
        return "" if wanted == "sdxl" else None
    return _UNKNOWN if wanted == "sdxl" else None


SD_1: Final = PictureFamily(
    "sd15", "Stable Diffusion 1.5", "SD 1.5", "sd15", "StableDiffusionPipeline",
    {"text_encoder": CLIP, "tokenizer": CLIP_WORDS, "unet": ("UNet2DConditionModel",), "vae": VAE},
    lambda width, height: (CLIP_L, *unet(SD15, GUIDED, width, height)),
    lambda entries, prefix: _recognise(entries, prefix, "sd15"),
    "StableDiffusionImg2ImgPipeline", "StableDiffusionInpaintPipeline", "unet", "scale",
    flow_matching=False, prompt_weights=True,
    outer_share=0.4,  # timed (docs/speed-pictures.md)
    load_arguments={"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False},
    encoders=(Encoder("text_encoder"),), written_as=("stable-diffusion-v1", "sd_v1"), lora_width=768,
    guide_share=0.36,  # of its multiplications, counted from 512 to 1024 pixels
)  # fmt: skip
SD_XL: Final = PictureFamily(
    "sdxl", "Stable Diffusion XL", "SDXL", "sdxl", "StableDiffusionXLPipeline",
    {
        "text_encoder": CLIP, "tokenizer": CLIP_WORDS, "text_encoder_2": PROJECTED_CLIP, "tokenizer_2": CLIP_WORDS,
        "unet": ("UNet2DConditionModel",), "vae": VAE,
    },
    lambda width, height: (CLIP_L, CLIP_G, *unet(SDXL, GUIDED, width, height)),
    lambda entries, prefix: _recognise(entries, prefix, "sdxl"),
    "StableDiffusionXLImg2ImgPipeline", "StableDiffusionXLInpaintPipeline", "unet", "scale",
    flow_matching=False, prompt_weights=True,
    outer_share=0.2,  # estimated
    few_steps_folders=True, load_arguments={"add_watermarker": False}, encoders=(Encoder("text_encoder"), Encoder("text_encoder_2")),
    unsafe_in_half=("vae",), written_as=("stable-diffusion-xl", "sdxl"), lora_marks=("lora_te2_", "text_encoder_2."), lora_width=2048,
    guide_share=0.45,
)  # fmt: skip
