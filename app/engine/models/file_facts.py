"""What a weights file is, by the names and shapes in its header alone: a whole model, one part, a LoRA, or what Hearth cannot use and why. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from app.base.sentence import Value, say
from app.engine.models import safetensors
from app.engine.models.gguf_header import read_gguf
from app.engine.models.model import Family
from app.engine.models.safetensors import BITS, Entry

What = Literal["model", "denoiser", "lora", "embedding", "vae", "encoder", "controlnet", "enlarger", "other"]
Prediction = Literal["", "v"]
WHAT: Final[Mapping[What, Value]] = {
    "model": say("file.model", "complete model"), "denoiser": say("file.denoiser", "denoiser alone"), "lora": "LoRA",
    "embedding": say("file.embedding", "textual inversion"), "vae": "VAE", "encoder": say("file.encoder", "text encoder"),
    "controlnet": "ControlNet", "enlarger": say("file.enlarger", "enlarger"), "other": say("file.other", "unknown to Hearth"),
}  # fmt: skip
TITLES: Final[Mapping[str, str]] = {
    "sd15": "Stable Diffusion 1.5", "sdxl": "Stable Diffusion XL", "pixart-sigma": "PixArt-Sigma",
    "sd3": "Stable Diffusion 3.5 Medium",
    "flux": "FLUX.1", "flux2-klein": "FLUX.2 klein 4B", "z-image": "Z-Image",
}  # fmt: skip
"""Of families."""
GUIDED_FLUX: Final = "guidance_in.in_layer.weight"
_PREFIXES: Final = ("model.diffusion_model.", "diffusion_model.", "")
_OTHERS: Final[tuple[tuple[str, str], ...]] = (
    ("distilled_guidance_layer.in_proj.bias", "Chroma"), ("early_stream_modulations.image.lin.weight", "FLUX.3"),
    ("txtfusion.projector.weight", "Krea 2"), ("txt_in.text_norm.weight", "Qwen-Image 2.1"), ("transformer_blocks.0.img_mod.1.weight", "Qwen-Image"),
    ("head.modulation", "Wan"), ("double_stream_blocks.0.block.adaLN_modulation.1.bias", "HiDream"), ("double_layers.0.attn.w1q.weight", "AuraFlow"),
    ("txt_in.individual_token_refiner.blocks.0.adaLN_modulation.1.bias", "HunyuanVideo"), ("patchify_proj.weight", "LTX-Video"),
    ("blocks.0.cross_attn.q_linear.weight", "Sana or PixArt"), ("net.x_embedder.proj.1.weight", "Cosmos or Anima"),
    ("clip_txt_mapper.weight", "Stable Cascade"), ("cap_embedder.0.weight", "Lumina 2"),
)  # fmt: skip
"""Denoisers of families that Hearth has not, by a tensor of each."""
_PACKINGS: Final = (
    (re.compile(r"\.comfy_quant$", re.MULTILINE), "ComfyUI's own 8 or 4 bits"),
    (re.compile(r"^scaled_fp8$|\.scaled_fp8$|\.scale_weight$|\.weight_scale$", re.MULTILINE), "scaled fp8"),
    (re.compile(r"\.wscales$|\.smooth_factor$|\.proj_down$", re.MULTILINE), "SVDQuant (Nunchaku)"),
    (re.compile(r"\.weight\.quant_state\.|\.weight\.absmax$", re.MULTILINE), "bitsandbytes nf4"),
    (re.compile(r"\.qzeros$|\.g_idx$", re.MULTILINE), "GPTQ or AWQ"),
    (re.compile(r"\.SCB$", re.MULTILINE), "bitsandbytes int8"),
)
"""Ways to pack weights that no loader of single files takes apart, by the tensors that they add."""
_LORAS: Final = (
    ("lora_down.", "LoRA"), ("lora_A.", "LoRA"), (".lora.down", "LoRA"),
    ("hada_w1_a", "LoHa"), ("lokr_w1", "LoKr"), (".diff_b", "full differences"), ("oft_blocks", "OFT"), (".ia3", "IA3"),
)  # fmt: skip
"""Kinds of LoRAs, by fragments of their tensors' names."""
_PRECISIONS: Final = {
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "fp8",
    "F8_E5M2": "fp8",
    "I8": "int8",
    "U8": "packed",
}
_FEW_STEPS: Final = re.compile(r"turbo|lightning|distill|schnell|(?<![a-z])(hyper|lcm|dmd2?)(?![a-z])", re.IGNORECASE)

_WHOLE_STEPS: Final = re.compile(r"(?<![a-z])base(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileFacts:
    what: What
    family: Family | Literal[""] = ""
    other: str = ""
    """The name of a family that Hearth has not, of a LoRA its kind."""
    precision: str = ""
    packing: str = ""
    """How weights are packed, if no loader of single files takes that apart."""
    gguf: bool = False
    prefix: str = ""
    """Begins the names of the denoiser's tensors."""
    holds: Mapping[str, str] = field(default_factory=dict)
    """Parts beside the denoiser, by the names of the family's pipeline, with what begins the names of their tensors."""
    parameters: int = 0
    """Of the denoiser; the next those in its linear layers."""
    linear: int = 0
    table: tuple[int, ...] = ()
    """Of a text encoder: its words, and the width of each."""
    guided: bool = False
    """A FLUX that takes guidance as a number."""
    prediction: Prediction = ""
    """Empty: as its family."""
    zero_snr: bool = False
    few_steps: bool = False
    """Whether its name or its makers' words say that it needs only a few steps."""
    whole_steps: bool = False
    """Whether they say that it is a base model, which needs all."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """Parts that have to come from elsewhere."""
        needed = (*ENCODERS.get(self.family, ()), "vae") if self.what in ("model", "denoiser") else ()
        return tuple(each for each in needed if each not in self.holds)


ENCODERS: Final[Mapping[str, tuple[str, ...]]] = {
    "sd15": ("text_encoder",), "sdxl": ("text_encoder", "text_encoder_2"), "sd3": ("text_encoder", "text_encoder_2", "text_encoder_3"),
    "flux": ("text_encoder", "text_encoder_2"), "flux2-klein": ("text_encoder",), "z-image": ("text_encoder",),
}  # fmt: skip
"""Text encoders of each family whose files may come alone."""
_HELD: Final[tuple[tuple[str, str], ...]] = (
    ("first_stage_model.", "vae"), ("vae.", "vae"), ("cond_stage_model.", "text_encoder"), ("conditioner.embedders.0.", "text_encoder"),
    ("conditioner.embedders.1.", "text_encoder_2"), ("text_encoders.clip_l.transformer.", "text_encoder"),
    ("text_encoders.clip_g.transformer.", "text_encoder_2"), ("text_encoders.t5xxl.transformer.", "t5"),
    ("text_encoders.qwen3_4b.transformer.", "text_encoder"),
)  # fmt: skip
"""Parts in a file with several, by the beginnings of names."""


def read_facts(path: Path) -> FileFacts:
    """Read what a file is; raise a Trouble for what is no weights file, or one that has what no such file has."""
    if path.suffix.lower() == ".gguf":
        return describe(read_gguf(path), {}, path.stem, gguf=True)
    header = safetensors.read_whole_header(path)
    return describe(header.entries, header.words, path.stem)


def describe(entries: Mapping[str, Entry], words: Mapping[str, str], name: str, *, gguf: bool = False) -> FileFacts:
    """Say what a file is by its tensors, its makers' words and, where both are silent, its name."""
    precision, names = _find_precision(entries), "\n".join(("", *entries))
    packing = "" if gguf else next((title for mark, title in _PACKINGS if mark.search(names)), "")
    for mark, title in _LORAS:
        if mark in names:
            return FileFacts("lora", other=title, precision=precision)
    prefix, family, other = _find_denoiser(entries)
    if family or other:
        holds = _list_held(names, family)
        own = {
            each: entry.shape for each, entry in entries.items() if each.startswith(prefix) and not each.startswith(tuple(holds.values()))
        }
        said = f"{name} {words.get('modelspec.title', '')}"
        flat = [math.prod(shape) for each, shape in own.items() if len(shape) == 2 and each.endswith(".weight")]
        return FileFacts(
            "model" if any(each.startswith("text_encoder") for each in holds) else "denoiser", family, other, precision, packing, gguf,
            prefix=prefix, holds=holds, parameters=sum(map(math.prod, own.values())), linear=sum(flat),
            guided=f"{prefix}{GUIDED_FLUX}" in entries, prediction=_find_prediction(entries, words, name),
            zero_snr="ztsnr" in entries or words.get("ss_zero_terminal_snr") == "True",
            few_steps=bool(_FEW_STEPS.search(said)), whole_steps=bool(_WHOLE_STEPS.search(said)),
        )  # fmt: skip
    what, title = _find_part(entries)
    tables = (each.shape for name, each in entries.items() if name.endswith(_TABLES) and len(each.shape) == 2)
    return FileFacts(what, other=title, precision=precision, packing=packing, gguf=gguf, table=next(tables, ()))


def _find_denoiser(entries: Mapping[str, Entry]) -> tuple[str, Family | Literal[""], str]:
    """Return the beginning of its names, its family, or the name of one that Hearth has not."""
    for prefix in _PREFIXES:
        other = next((title for mark, title in _OTHERS if f"{prefix}{mark}" in entries), "")
        if f"{prefix}layers.0.adaLN_modulation.0.weight" in entries:
            return prefix, "z-image", ""
        if other:
            return prefix, "", other
        for find in (_find_unet, _find_flux2, _find_flux, _find_sd3):
            family, other = find(entries, prefix)
            if family or other:
                return prefix, family, other
    return "", "", ""


_Known = tuple[Family | Literal[""], str]


def _find_unet(entries: Mapping[str, Entry], prefix: str) -> _Known:
    first = entries.get(f"{prefix}input_blocks.0.0.weight")
    if first is None or len(first.shape) != 4:
        return "", ""
    shallow = entries.get(f"{prefix}input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight")
    deep = entries.get(f"{prefix}input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight")
    if first.shape[1] != 4:
        return "", "an inpainting or editing model of Stable Diffusion"
    if "conditioner.embedders.0.model.text_projection" in entries or (shallow is None and deep is not None and deep.shape[-1] == 1280):
        return "", "the refiner of SDXL"
    if shallow is not None and shallow.shape[-1] == 1024:
        return "", "Stable Diffusion 2"
    if shallow is not None and shallow.shape[-1] == 768:
        return "sd15", ""
    if f"{prefix}label_emb.0.0.weight" in entries:
        return "sdxl", ""
    return "", "a denoiser of another family"


def _find_flux2(entries: Mapping[str, Entry], prefix: str) -> _Known:
    if f"{prefix}single_stream_modulation.lin.weight" not in entries:
        return "", ""
    width = entries[f"{prefix}single_stream_modulation.lin.weight"].shape[-1]
    return ("", "FLUX.2 dev or klein 9B") if width in (4096, 6144) else ("flux2-klein", "")


def _find_flux(entries: Mapping[str, Entry], prefix: str) -> _Known:
    if f"{prefix}double_blocks.0.img_attn.norm.key_norm.scale" not in entries:
        return "", ""
    first = entries.get(f"{prefix}img_in.weight")
    if first is not None and len(first.shape) == 2 and first.shape[-1] in (96, 128, 384):
        return "", "FLUX.1 Fill, Canny or Depth"
    return "flux", ""


def _find_sd3(entries: Mapping[str, Entry], prefix: str) -> _Known:
    if f"{prefix}joint_blocks.0.context_block.adaLN_modulation.1.bias" not in entries:
        return "", ""
    if f"{prefix}joint_blocks.37.x_block.mlp.fc1.weight" in entries:
        return "", "Stable Diffusion 3.5 Large"
    return ("sd3", "") if f"{prefix}joint_blocks.0.x_block.attn2.qkv.weight" in entries else ("", "Stable Diffusion 3 Medium")


def _list_held(names: str, family: str) -> dict[str, str]:
    t5 = {"sd3": "text_encoder_3"}.get(family, "text_encoder_2")
    return {t5 if part == "t5" else part: mark for mark, part in _HELD if f"\n{mark}" in names}


def _find_part(entries: Mapping[str, Entry]) -> tuple[What, str]:
    """Say what a file without a denoiser is, and its kind."""
    for what, title, marks in _PARTS:
        if all(any(name.startswith(mark) or name.endswith(mark) for name in entries) for mark in marks):
            return what, title
    if entries and all(len(each.shape) == 2 for each in entries.values()) and {*entries} <= {"emb_params", "clip_l", "clip_g", "t5xxl"}:
        return "embedding", ""
    return "other", ""


_PARTS: Final[tuple[tuple[What, str, tuple[str, ...]], ...]] = (
    ("controlnet", "", ("control_model.",)), ("controlnet", "", ("controlnet_cond_embedding.conv_in.weight",)),
    ("vae", "", ("decoder.conv_in.weight",)), ("vae", "Wan", ("decoder.middle.0.residual.0.gamma",)),
    ("encoder", "T5", ("encoder.block.0.layer.0.SelfAttention.q.weight",)), ("encoder", "T5", ("enc.blk.0.attn_q.weight",)),
    ("encoder", "CLIP", ("text_model.embeddings.token_embedding.weight",)), ("encoder", "CLIP", ("transformer.resblocks.0.ln_1.weight",)),
    ("encoder", "Qwen 3 VL", ("visual.patch_embed.proj.weight", "layers.0.self_attn.q_norm.weight")),
    ("encoder", "Qwen 3", ("layers.0.self_attn.q_norm.weight",)), ("encoder", "Qwen 3", ("blk.0.attn_q_norm.weight",)),
    ("encoder", "", ("layers.0.self_attn.q_proj.weight",)), ("encoder", "", ("blk.0.attn_q.weight",)),
    ("enlarger", "", ("conv_first.weight",)), ("enlarger", "", ("model.0.weight",)),
)  # fmt: skip


_TABLES: Final = ("shared.weight", "embed_tokens.weight", "token_embedding.weight")


def _find_precision(entries: Mapping[str, Entry]) -> str:
    """Return the type that takes most of the file."""
    sizes: dict[str, float] = {}
    for each in entries.values():
        sizes[each.dtype] = sizes.get(each.dtype, 0) + math.prod(each.shape) * BITS.get(each.dtype, 8)
    most = max(sizes, key=lambda dtype: sizes[dtype]) if sizes else ""
    return _PRECISIONS.get(most, most)


def _find_prediction(entries: Mapping[str, Entry], words: Mapping[str, str], name: str) -> Prediction:
    said = words.get("modelspec.prediction_type", "").lower()
    return "v" if "v_pred" in entries or said in ("v", "v_prediction") else ""
