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
from app.engine.models.picture_families import FAMILIES
from app.engine.models.safetensors import BITS, Entry

What = Literal["model", "denoiser", "lora", "embedding", "vae", "encoder", "controlnet", "enlarger", "other"]
Prediction = Literal["", "v"]
WHAT: Final[Mapping[What, Value]] = {
    "model": say("file.model", "complete model"), "denoiser": say("file.denoiser", "denoiser alone"), "lora": "LoRA",
    "embedding": say("file.embedding", "textual inversion"), "vae": "VAE", "encoder": say("file.encoder", "text encoder"),
    "controlnet": "ControlNet", "enlarger": say("file.enlarger", "enlarger"), "other": say("file.other", "unknown to Hearth"),
}  # fmt: skip
_PREFIXES: Final = ("model.diffusion_model.", "diffusion_model.", "")
PIXART: Final = "PixArt"
_OTHERS: Final[tuple[tuple[str, str], ...]] = (
    ("nerf_image_embedder.embedder.0.weight", "Chroma1 Radiance"), ("early_stream_modulations.image.lin.weight", "FLUX.3"),
    ("txtfusion.projector.weight", "Krea 2"), ("txt_in.text_norm.weight", "Qwen-Image 2.1"), ("transformer_blocks.0.img_mod.1.weight", "Qwen-Image"),
    ("head.modulation", "Wan"), ("double_stream_blocks.0.block.adaLN_modulation.1.bias", "HiDream"), ("double_layers.0.attn.w1q.weight", "AuraFlow"),
    ("txt_in.individual_token_refiner.blocks.0.adaLN_modulation.1.bias", "HunyuanVideo"), ("patchify_proj.weight", "LTX-Video"),
    ("blocks.0.mlp.inverted_conv.conv.weight", "Sana"), ("blocks.0.cross_attn.q_linear.weight", PIXART), ("net.x_embedder.proj.1.weight", "Cosmos or Anima"),
    ("clip_txt_mapper.weight", "Stable Cascade"), ("blocks.0.attention.img_qkv_proj.weight", "PRX"), ("blocks.0.img_qkv_proj.weight", "PRX"),
)  # fmt: skip
"""Hearth does not have these families; each one's denoiser is told by a tensor."""
_PACKINGS: Final = (
    (re.compile(r"\.comfy_quant$", re.MULTILINE), "ComfyUI's own 8 or 4 bits"),
    (re.compile(r"^scaled_fp8$|\.scaled_fp8$|\.scale_weight$|\.weight_scale$", re.MULTILINE), "scaled fp8"),
    (re.compile(r"\.wscales$|\.smooth_factor$|\.proj_down$", re.MULTILINE), "SVDQuant (Nunchaku)"),
    (re.compile(r"\.weight\.quant_state\.|\.weight\.absmax$", re.MULTILINE), "bitsandbytes nf4"),
    (re.compile(r"\.qzeros$|\.g_idx$", re.MULTILINE), "GPTQ or AWQ"),
    (re.compile(r"\.SCB$", re.MULTILINE), "bitsandbytes int8"),
)
"""No loader of single files takes apart weights packed in these ways, each told by the tensors that it adds."""
PLAIN_LORA: Final = "LoRA"
_LORAS: Final = (
    ("lora_down.", PLAIN_LORA), ("lora_A.", PLAIN_LORA), (".lora.down", PLAIN_LORA),
    ("hada_w1_a", "LoHa"), ("lokr_w1", "LoKr"), (".diff_b", "full differences"), ("oft_blocks", "OFT"), (".ia3", "IA3"),
)  # fmt: skip
"""Fragments of the names of its tensors tell a LoRA's kind."""
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
_PREDICTS_V: Final = re.compile(r"(?:(?<![A-Za-z])v|V)[-_. ]?(?i:pred)")
_ZERO_SNR: Final = re.compile(r"zt?snr", re.IGNORECASE)
_WHOLE_STEPS: Final = re.compile(r"(?:(?<![A-Za-z])(?i:base)|(?<=[a-z])Base)(?![a-z])")
"""Also as Civitai writes it: zImageBase_v1."""
_BETWEEN: Final = re.compile(r"[-_. ]++")
_PRECISION_WORDS: Final = re.compile(r"bf16|fp16|fp32|fp8|e4m3fn|e5m2|q\d|k|[01sml]")
"""A file's name has such parts where it tells the precision of its weights, as bf16, fp8_e4m3fn and Q4_K_M do."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    what: What
    family: str = ""
    """picture_families.py has this name; it is empty if Hearth has none for it, or if it is no denoiser."""
    other: Value = ""
    """It names a family that Hearth has not, and of a LoRA the kind."""
    precision: str = ""
    packing: str = ""
    """Weights are packed in this way, if no loader of single files takes that apart."""
    gguf: bool = False
    prefix: str = ""
    """The names of the denoiser's tensors begin so."""
    holds: Mapping[str, str] = field(default_factory=dict)
    """The file holds these parts beside the denoiser, by the names of the family's pipeline, with what begins the names of their
    tensors."""
    parameters: int = 0
    """The denoiser has this many numbers, of which `linear` lie in its linear layers."""
    linear: int = 0
    table: tuple[int, ...] = ()
    """A text encoder has this many words, and each has this width."""
    guided: bool = False
    """It takes guidance as a number."""
    prediction: Prediction = ""
    """Empty: it predicts as its family does."""
    prediction_by_name: bool = False
    """Its name alone says so."""
    zero_snr: bool = False
    few_steps: bool = False
    """Its name or its makers' words say that it needs only a few steps."""
    whole_steps: bool = False
    """Its name or its makers' words say that it is a base model, which needs all steps."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """Parts that have to come from elsewhere."""
        encoders = FAMILIES[self.family].encoders if self.family else ()
        needed = (*(each.part for each in encoders), "vae") if self.what in ("model", "denoiser") else ()
        return tuple(each for each in needed if each not in self.holds)


_HELD: Final[tuple[tuple[str, str], ...]] = (
    ("first_stage_model.", "vae"), ("vae.", "vae"), ("cond_stage_model.", "text_encoder"), ("conditioner.embedders.0.", "text_encoder"),
    ("conditioner.embedders.1.", "text_encoder_2"), ("text_encoders.clip_l.transformer.", "text_encoder"),
    ("text_encoders.clip_g.transformer.", "text_encoder_2"), ("text_encoders.t5xxl.transformer.", "t5"),
    ("text_encoders.qwen3_4b.transformer.", "text_encoder"), ("text_encoders.gemma2_2b.transformer.", "text_encoder"),
)  # fmt: skip
"""In a file with several parts, names that begin so belong to these."""


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
    if kind := find_lora_kind(entries):
        return FileFacts("lora", other=kind, precision=precision)
    prefix, family, other = _find_denoiser(entries)
    if family or other:
        prediction, by_name = _find_prediction(entries, words, name)
        holds = _list_held(names, family)
        own = {
            each: entry.shape for each, entry in entries.items() if each.startswith(prefix) and not each.startswith(tuple(holds.values()))
        }
        said = f"{name} {words.get('modelspec.title', '')}"
        flat = [math.prod(shape) for each, shape in own.items() if len(shape) == 2 and each.endswith(".weight")]
        return FileFacts(
            "model" if any(each.startswith("text_encoder") for each in holds) else "denoiser",
            family,
            other,
            precision,
            packing,
            gguf,
            prefix=prefix,
            holds=holds,
            parameters=sum(map(math.prod, own.values())),
            linear=sum(flat),
            guided=_takes_a_number(entries, prefix, family),
            prediction=prediction,
            prediction_by_name=by_name,
            zero_snr="ztsnr" in entries or words.get("ss_zero_terminal_snr") == "True" or bool(by_name and _ZERO_SNR.search(name)),
            few_steps=says_few_steps(said, family),
            whole_steps=bool(_WHOLE_STEPS.search(said)) or _is_named_as_base(name, family),
        )
    what, title = _find_part(entries)
    tables = (each.shape for name, each in entries.items() if name.endswith(_TABLES) and len(each.shape) == 2)
    return FileFacts(what, other=title, precision=precision, packing=packing, gguf=gguf, table=next(tables, ()))


def says_few_steps(said: str, family: str) -> bool:
    own = FAMILIES[family].few_steps if family else None
    return bool(_FEW_STEPS.search(said)) or (own is not None and bool(own.named.search(said)))


def _is_named_as_base(name: str, family: str) -> bool:
    """Tell whether a file has its family's name alone, where that is its base model's: ComfyUI's z_image_bf16 is no Turbo."""
    if not family or not FAMILIES[family].steps_unsaid:
        return False
    bare = "".join(part for part in _BETWEEN.split(name.lower()) if not _PRECISION_WORDS.fullmatch(part))
    return bare == family.replace("-", "")


def find_lora_kind(entries: Mapping[str, Entry]) -> str:
    """Return what kind of LoRA the names of the tensors tell; empty: none."""
    names = "\n".join(("", *entries))
    return next((title for mark, title in _LORAS if mark in names), "")


def _find_denoiser(entries: Mapping[str, Entry]) -> tuple[str, str, Value]:
    """Return the beginning of its names, its family, or the name of one that Hearth has not."""
    for prefix in _PREFIXES:
        other = next((title for mark, title in _OTHERS if f"{prefix}{mark}" in entries), "")
        if other:
            return prefix, "", other
        for family in FAMILIES.values():
            relative = family.recognise(entries, prefix)
            if relative is not None:
                return prefix, "" if relative else family.name, relative
    return "", "", ""


def _takes_a_number(entries: Mapping[str, Entry], prefix: str, family: str) -> bool:
    numbered = FAMILIES[family].numbered if family else None
    return numbered is not None and f"{prefix}{numbered.mark}" in entries


def _list_held(names: str, family: str) -> dict[str, str]:
    encoders = FAMILIES[family].encoders if family else ()
    t5 = next((each.part for each in encoders if each.kind == "T5"), "text_encoder_2")
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
    ("controlnet", "Z-Image", ("control_all_x_embedder.2-1.weight",)),
    ("vae", "", ("decoder.conv_in.weight",)), ("vae", "Wan", ("decoder.middle.0.residual.0.gamma",)),
    ("encoder", "T5", ("encoder.block.0.layer.0.SelfAttention.q.weight",)), ("encoder", "T5", ("enc.blk.0.attn_q.weight",)),
    ("encoder", "CLIP", ("text_model.embeddings.token_embedding.weight",)), ("encoder", "CLIP", ("transformer.resblocks.0.ln_1.weight",)),
    ("encoder", "Qwen 3 VL", ("visual.patch_embed.proj.weight", "layers.0.self_attn.q_norm.weight")),
    ("encoder", "Qwen 3", ("layers.0.self_attn.q_norm.weight",)), ("encoder", "Qwen 3", ("blk.0.attn_q_norm.weight",)),
    ("encoder", "Gemma 2", ("layers.0.pre_feedforward_layernorm.weight",)),
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


def _find_prediction(entries: Mapping[str, Entry], words: Mapping[str, str], name: str) -> tuple[Prediction, bool]:
    """Return what it predicts, and whether that is known by its name alone."""
    said = (words.get("modelspec.prediction_type") or words.get("modelspec.predict_key") or "").lower()  # sd-scripts', ComfyUI's
    if "v_pred" in entries or said in ("v", "v_prediction"):
        return "v", False
    by_name = not said and bool(_PREDICTS_V.search(name))
    return "v" if by_name else "", by_name
