"""What a folder or a single file of weights is, from its configs and its header alone: nothing is loaded, nothing is unpickled."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.compat.plan import Part, Role
from app.engine.model import Attention, Companion, Family, Model
from app.sentence import Trouble, say

PICKLES: Final = frozenset({".ckpt", ".pt", ".pth", ".bin", ".pkl", ".pickle"})
_HEADER_MOST_BYTES: Final = 100_000_000
"""The format's own limit."""
_BYTES_A_NUMBER: Final = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
    "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip

FAMILY_OF_CLASS: Final[dict[str, Family]] = {
    "StableDiffusionPipeline": "sd15",
    "StableDiffusionImg2ImgPipeline": "sd15",
    "StableDiffusionXLPipeline": "sdxl",
    "StableDiffusionXLImg2ImgPipeline": "sdxl",
    "PixArtSigmaPipeline": "pixart-sigma",
    "StableDiffusion3Pipeline": "sd3",
    "FluxPipeline": "flux",
    "Flux2KleinPipeline": "flux2-klein",
    "ZImagePipeline": "z-image",
}
"""The `_class_name` of a model_index.json."""
_LIKE: Final[dict[Family, str]] = {
    "sd15": "sd15", "sdxl": "sdxl", "pixart-sigma": "pixart-sigma", "sd3": "sd35-medium",
    "flux": "flux1-schnell", "flux2-klein": "flux2-klein", "z-image": "z-image-turbo", "dia": "dia-1.6b",
}  # fmt: skip
"""The catalog's row that a local model takes its recommendations from."""
_ROLES: Final[dict[str, Role]] = {
    "text_encoder": "text", "text_encoder_2": "text", "text_encoder_3": "text",
    "unet": "denoiser", "transformer": "denoiser", "vae": "vae",
}  # fmt: skip
USUAL_SCALE: Final = 8
"""What every decoder in the catalog's rows shrinks a picture by; a local model's own is read from its config."""
_LIBRARIES: Final = frozenset({"diffusers", "transformers", "stable_diffusion", None})
"""Where the parts of a pipeline may come from; anything else would be code from the folder."""


@dataclass(frozen=True, slots=True)
class Entry:
    dtype: str
    shape: tuple[int, ...]


def header(path: Path) -> dict[str, Entry]:
    """The names and shapes in a .safetensors file; a Trouble where it is cut off, something else, or a pickle."""
    refuse_pickle(path)
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(_HEADER_MOST_BYTES, max(size_bytes - 8, 0)):
            raise _no_safetensors(path)
        try:
            table = json.loads(file.read(length))
            entries = {
                str(name): (Entry(str(row["dtype"]), tuple(map(int, row["shape"]))), int(row["data_offsets"][1]))
                for name, row in table.items()
                if name != "__metadata__"
            }
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as fault:
            raise _no_safetensors(path) from fault
    end = 8 + length + max((last for _, last in entries.values()), default=0)
    if end != size_bytes:
        raise Trouble(
            say(
                "detect.cut-off",
                "{path} is damaged: it should have {wanted} bytes and has {there}. Download it again.",
                path=str(path),
                wanted=end,
                there=size_bytes,
            )
        )
    return {name: entry for name, (entry, _) in entries.items()}


def refuse_pickle(path: Path) -> None:
    """By its name, and by how it begins: a pickle can run any program when it is read."""
    with path.open("rb") as file:
        start = file.read(4)
    if path.suffix.lower() in PICKLES or start[:2] == b"\x80\x02" or start == b"PK\x03\x04":
        raise Trouble(
            say(
                "detect.pickle",
                "{path} is a pickle, and reading one can run any program. Hearth reads .safetensors only; look for that version of it.",
                path=str(path),
            )
        )


def _no_safetensors(path: Path) -> Trouble:
    return Trouble(
        say(
            "detect.not-safetensors",
            "{path} is not a .safetensors file, whatever its name says, or it is cut off. Download it again, or choose another.",
            path=str(path),
        )
    )


def local(path: Path, catalog: Mapping[str, Model], configs: Mapping[str, Companion]) -> Model:
    """A model that lies on this machine, as a row like the catalog's."""
    if path.is_dir():
        return _folder(path, catalog)
    family = family_of_file(path)
    like = catalog[_LIKE[family]]
    return replace(
        like, id=str(path), title=path.stem, path=str(path), source=None, single_file=True, plain=None, note=None,
        settings=like.plain or like.settings, companions=(configs[family],), licence="", gated=False,
    )  # fmt: skip


def family_of_file(path: Path) -> Family:
    """The family of a single-file checkpoint that holds all parts; a Trouble that says what it is otherwise."""
    names = header(path)
    cross = names.get("model.diffusion_model.input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight")
    first = names.get("model.diffusion_model.input_blocks.0.0.weight")
    if first is not None and len(first.shape) == 4 and first.shape[1] == 4:
        if "conditioner.embedders.0.transformer.text_model.embeddings.position_embedding.weight" in names:
            return "sdxl"
        if cross is not None and cross.shape[-1] == 768:
            return "sd15"
    for what, marks in _OTHERS.items():
        if any(mark in name for name in names for mark in marks):
            raise Trouble(
                say(
                    "detect.not-whole",
                    "{path} holds {what}, not a whole model that Hearth can load from one file. Single files of SD 1.5 and SDXL work; for others give a diffusers folder.",
                    path=str(path),
                    what=what,
                )
            )
    raise _unknown(path)


_OTHERS: Final = {
    "a LoRA": ("lora_down.", "lora_A.", ".lora.down", "hada_w1"),
    "a FLUX denoiser": ("double_blocks.0.img_attn.norm.key_norm.scale",),
    "a Stable Diffusion 3 denoiser": ("joint_blocks.0.context_block.adaLN_modulation.1.bias",),
    "a Z-Image denoiser": ("layers.0.adaLN_modulation.0.weight",),
    "a ControlNet": ("control_model.", "controlnet_cond_embedding"),
    "a Stable Diffusion 2 or inpainting model": ("model.diffusion_model.input_blocks.0.0.weight",),
    "a decoder (VAE)": ("decoder.conv_in.weight",),
}
"""What else a .safetensors may be, by pieces of its names; the first that fits is said."""


def _unknown(path: Path) -> Trouble:
    return Trouble(
        say(
            "detect.unknown",
            "{path} is no model that Hearth knows: it works with {families}, as a diffusers folder, or as a single file of SD 1.5 or SDXL.",
            path=str(path),
            families=", ".join(sorted(set(FAMILY_OF_CLASS.values()) | {"dia"})),
        )
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as fault:
        raise Trouble(
            say(
                "detect.config",
                "{path} cannot be read: {fault}. The model's folder is incomplete; download it again.",
                path=str(path),
                fault=str(fault),
            )
        ) from fault
    return values if isinstance(values, dict) else {}


def _folder(path: Path, catalog: Mapping[str, Model]) -> Model:
    for starter in catalog.values():
        if starter.path and Path(starter.path) == path:
            return starter
    if (path / "model_index.json").is_file():
        return _pipeline(path, catalog)
    if (path / "config.json").is_file() and _json(path / "config.json").get("model_type") == "dia":
        return replace(
            catalog["dia-1.6b"], id=str(path), title=path.name, path=str(path), source=None, companions=(), note=None
        )
    raise _unknown(path)


def _pipeline(path: Path, catalog: Mapping[str, Model]) -> Model:
    index = _json(path / "model_index.json")
    family = FAMILY_OF_CLASS.get(str(index.get("_class_name")))
    if family is None:
        raise _unknown(path)
    parts = []
    for name, made_of in index.items():
        library = made_of[0] if isinstance(made_of, list) and made_of else None
        if not name.startswith("_") and library not in _LIBRARIES:
            raise Trouble(
                say(
                    "detect.remote-code",
                    "The model in {path} brings code of its own ({library}) to run. Hearth never runs code from a model; choose another.",
                    path=str(path),
                    library=str(library),
                )
            )
        if name in _ROLES and library is not None:
            parts.append(Part(name, _ROLES[name], parameters(path / name), _safe_in_half(name, family)))
    like = catalog[_LIKE[family]]
    recommended = like.plain or like.settings
    scale = _scale(path)
    attention, width = _attention(path, like.attention, recommended.width, scale)
    sizes = recommended.sizes if (width, width) in recommended.sizes else ((width, width),)
    # A coarser decoder than its family's asks for sizes in larger strides; what diffusers' pipelines take is never finer than 8.
    multiple = max(recommended.multiple, recommended.multiple * scale // USUAL_SCALE)
    settings = replace(recommended, width=width, height=width, sizes=sizes, multiple=multiple)
    return replace(
        like, id=str(path), title=path.name, path=str(path), source=None, companions=(), plain=None, note=None,
        parts=tuple(parts), attention=attention, settings=settings, licence="", gated=False,
    )  # fmt: skip


def _safe_in_half(name: str, family: Family) -> bool:
    return not (
        (name == "vae" and family in ("sdxl", "pixart-sigma")) or (name == "transformer" and family == "z-image")
    )


def weights(folder: Path) -> list[Path]:
    """The .safetensors of a part: one precision where there are two; a Trouble where there are only pickles, or none."""
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        pickles = [each for each in folder.glob("*") if each.suffix in PICKLES]
        if pickles:
            refuse_pickle(pickles[0])
        raise Trouble(
            say(
                "detect.no-weights",
                "{path} has no .safetensors. The model's folder is incomplete; download it again.",
                path=str(folder),
            )
        )
    full = [each for each in found if ".fp16" not in each.name]
    return full or found


def parameters(folder: Path) -> int:
    return sum(math.prod(entry.shape) for path in weights(folder) for entry in header(path).values())


def _scale(path: Path) -> int:
    """Pixels of the picture to one of its latents, each way."""
    vae = _json(path / "vae" / "config.json") if (path / "vae").is_dir() else {}
    return 1 << (len(vae["block_out_channels"]) - 1) if "block_out_channels" in vae else USUAL_SCALE


def _attention(path: Path, like: Attention, width: int, scale: int) -> tuple[Attention, int]:
    """The widest attention by the denoiser's own config, and the width it was trained at."""
    if (path / "unet").is_dir():
        config = _json(path / "unet" / "config.json")
        blocks = config["down_block_types"]
        level = next((i for i, kind in enumerate(blocks) if "Attn" in kind), 0)
        # diffusers' attention_head_dim of a UNet is the number of heads, for historical reasons.
        heads = config.get("num_attention_heads") or config["attention_head_dim"]
        heads = heads[level] if isinstance(heads, list) else heads
        head_dim = config["block_out_channels"][level] // heads
        side = config.get("sample_size")
        trained = side * scale if isinstance(side, int) else width
        return replace(like, heads=heads, kv_heads=heads, head_dim=head_dim, pixels_a_token=scale << level), trained
    config = _json(path / "transformer" / "config.json")
    heads = config.get("num_attention_heads") or config.get("n_heads") or like.heads
    head_dim = config.get("attention_head_dim") or (config["dim"] // heads if "dim" in config else like.head_dim)
    # A row's patches are counted in latents: they are as much smaller as its own decoder's are.
    pixels = max(1, like.pixels_a_token * scale // USUAL_SCALE)
    return replace(like, heads=heads, kv_heads=heads, head_dim=head_dim, pixels_a_token=pixels), width


def class_of(folder: Path, part: str) -> tuple[str, str]:
    """The library and the class of a part, by model_index.json."""
    library, kind = _json(folder / "model_index.json")[part]
    return str(library), str(kind)
