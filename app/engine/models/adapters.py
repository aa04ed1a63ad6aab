"""IP-Adapters: files by which a picture is painted like another. What a file is, which are there, which fit, and what reads the picture. Loads nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from app.base.path_checks import is_file
from app.base.paths import Home
from app.base.sentence import Value, say
from app.base.trouble import Trouble
from app.compat.planning.memory_formulas import BYTES, SCRATCH_BYTES
from app.engine.models import safetensors
from app.engine.models.judged_files import judge_folder, read_settings
from app.engine.models.lora_facts import NAMES
from app.engine.models.model import Model
from app.engine.models.model_folder import choose_weights
from app.engine.models.picture_families import FAMILIES
from app.engine.models.safetensors import Entry

ENDING: Final = ".safetensors"
CONFIG: Final = "config.json"
STEM: Final = "model"
FILES_MOST: Final = 200
KNOWN_MOST: Final = 256
"""At most so many headers are remembered."""
ENCODER_FOLDERS: Final = ("image_encoder", "clip_vision")
"""Other programs call the folder of image encoders this, beside an adapter's or one further up."""
_PLAIN, _PLUS = "image_proj.proj.weight", "image_proj.latents"
_FIRST_KEY: Final = "ip_adapter.1.to_k_ip.weight"
_FACE_ID: Final = say("adapter.face-id", "a FaceID adapter, which needs a recogniser of faces")
_OTHERS: Final[tuple[tuple[str, Value], ...]] = (
    ("image_proj.perceiver_resampler.proj_in.weight", _FACE_ID), ("ip_adapter.0.to_k_lora.down.weight", _FACE_ID),
    ("image_proj.norm.weight", say("adapter.faces", "an adapter for faces")),
    ("double_blocks.0.processor.ip_adapter_double_stream_k_proj.weight", say("adapter.flux", "an IP-Adapter for FLUX")),
    ("controlnet_cond_embedding.conv_in.weight", say("adapter.controlnet", "a ControlNet")),
)  # fmt: skip
"""Other files go by that name, each told by one of its tensors; plain adapters are told before."""
_FAMILIES: Final = {768: "sd15", 1024: "sd2", 2048: "sdxl"}
"""A family is told by how many numbers a UNet's attention reads of each token."""
_HEADS: Final = 16
_ACTIVATIONS: Final = {1024: "quick_gelu", 1280: "gelu", 1664: "gelu"}
"""The image encoders that people have as one file (CLIP's L, OpenCLIP's H and bigG) compute so, by their width; a folder says it itself."""

Reads = Literal["whole", "patches"]


@dataclass(frozen=True, slots=True)
class Adapter:
    path: Path
    family: str
    """lora_facts.NAMES has this key; it is empty if its width tells of none: then its load says whether it fits."""
    parameters: int
    reads: Reads
    """It takes this of the encoder's answer."""
    width: int
    """It takes so many numbers of it."""


@dataclass(frozen=True, slots=True)
class ImageEncoder:
    path: Path
    """It is a .safetensors file, or a folder as transformers writes it."""
    settings: Mapping[str, Any]
    """transformers' CLIPVisionConfig takes these."""
    widths: Mapping[Reads, int]
    parameters: int
    halves: bool
    """True: its weights are stored in 16 bits."""

    @property
    def reading_bytes(self) -> int:
        """What it takes in memory to read a picture: its weights as they are stored, and its work."""
        return self.parameters * BYTES["float16" if self.halves else "float32"] + SCRATCH_BYTES["speech"]

    @property
    def weights(self) -> tuple[Path, ...]:
        return tuple(choose_weights(self.path, STEM)) if self.path.is_dir() else (self.path,)


def read_adapter(path: Path) -> Adapter:
    """Describe an IP-Adapter by its header; raise a Trouble for anything else."""
    if not is_file(path):
        raise Trouble(say("adapter.missing", "The IP-Adapter {path} was not found. Choose another one.", path=path.name))
    facts = path.stat()
    return _read(path, (facts.st_size, facts.st_mtime_ns))


@lru_cache(KNOWN_MOST)
def _read(path: Path, _stamp: tuple[int, int]) -> Adapter:
    entries = safetensors.read_header(path)
    first, plain, plus = entries.get(_FIRST_KEY), entries.get(_PLAIN), entries.get("image_proj.proj_in.weight")
    kinds = () if plain is not None and len(plain.shape) == 2 else _OTHERS
    other = next((title for mark, title in _OTHERS[:2] + tuple(kinds) if mark in entries), "")
    taken = plain if plain is not None else plus if _PLUS in entries else None
    if other or first is None or len(first.shape) != 2 or taken is None or len(taken.shape) != 2:
        raise Trouble(
            say(
                "adapter.other",
                "{path} is {kind}, by which Hearth cannot paint. Get an IP-Adapter for {families} as .safetensors, plain or plus.",
                path=path.name,
                kind=other or say("adapter.unknown", "no IP-Adapter"),
                families=tuple(each.title for each in FAMILIES.values() if each.guided),
            )
        )
    total = sum(math.prod(each.shape) for each in entries.values())
    return Adapter(path, _FAMILIES.get(first.shape[-1], ""), total, "whole" if plain is not None else "patches", taken.shape[-1])


def explain_misfit(adapter: Adapter, model: Model) -> Value | None:
    """Say why an adapter cannot be used with a model; None if it can, as far as its header says."""
    family = FAMILIES.get(model.family)
    if family is None or not family.guided or model.starter:
        able = tuple(each.title for each in FAMILIES.values() if each.guided)
        return say("adapter.none", "{model} cannot paint like a picture; models of {families} can.", model=model.words, families=able)
    if adapter.family not in ("", model.family):
        made_for = NAMES.get(adapter.family, adapter.family)
        return say("control.family", "It was made for {family}; {model} is another kind of model.", family=made_for, model=model.words)
    return None


def require_fit(home: Home, path: Path, model: Model) -> tuple[Adapter, ImageEncoder]:
    """Read an adapter and find its encoder; raise a Trouble unless it fits the model."""
    adapter = read_adapter(path)
    if (why := explain_misfit(adapter, model)) is not None:
        raise Trouble(say("adapter.unfit", "The IP-Adapter {name} cannot be used here. {why}", name=name_adapter(path), why=why))
    return adapter, find_encoder(home, adapter)


def name_adapter(path: Path) -> str:
    return path.name.removesuffix(ENDING)


def list_adapters(home: Home) -> list[Path]:
    """List what is an IP-Adapter of what a person put into Hearth's folder, by name."""
    there = home.adapters.iterdir() if home.adapters.is_dir() else ()
    found = sorted((each for each in there if each.name.lower().endswith(ENDING)), key=lambda path: path.name.lower())[:FILES_MOST]
    return [each for each in found if _is_adapter(each)]


def _is_adapter(path: Path) -> bool:
    try:
        return bool(read_adapter(path))
    except (Trouble, OSError, ValueError, LookupError):  # what it is, the command says that names it
        return False


def find_adapter(home: Home, name: str) -> str:
    """Return an adapter as a request has it, by its path. Raise a Trouble for one that is not there."""
    if not name or Path(name).is_absolute():
        return name
    found = next((each for each in list_adapters(home) if name in (each.name, name_adapter(each))), None)
    if found is None:
        raise Trouble(
            say(
                "adapter.not-here",
                "There is no IP-Adapter {name} here. Put its .safetensors into {folder}, or choose another one.",
                name=name,
                folder=str(home.adapters),
            )
        )
    return str(found)


def find_encoder(home: Home, adapter: Adapter) -> ImageEncoder:
    """Find the image encoder that an adapter was trained with: in Hearth's folder, beside the adapter, or where ComfyUI has its own. Raise a Trouble
    where there is none."""
    for path in _list_encoders(home, adapter.path):
        try:
            encoder = read_encoder(path)
        except (Trouble, OSError, ValueError, LookupError):
            continue
        if encoder is not None and encoder.widths[adapter.reads] == adapter.width:
            return encoder
    raise Trouble(
        say(
            "adapter.no-encoder",
            "The IP-Adapter {name} needs an image encoder (CLIP vision) of {width} {width:number|numbers}, which is not here. Put its .safetensors, or its "
            "folder, into {folder}.",
            name=name_adapter(adapter.path),
            width=adapter.width,
            folder=str(home.adapters),
        )
    )


def _list_encoders(home: Home, adapter: Path) -> Iterator[Path]:
    places = [home.adapters, adapter.parent, *(up / name for up in (adapter.parent, adapter.parent.parent) for name in ENCODER_FOLDERS)]
    for place in dict.fromkeys(places):
        if not place.is_dir():
            continue
        yield place
        yield from sorted(each for each in place.iterdir() if each.is_dir() or each.name.lower().endswith(ENDING))[:FILES_MOST]


def read_encoder(path: Path) -> ImageEncoder | None:
    """Describe an image encoder by its header, and its settings where it has any; None for anything else."""
    folder = path.is_dir()
    file = path / CONFIG if folder else path
    if not is_file(file):
        return None
    facts = file.stat()
    return _read_encoder(path, (facts.st_size, facts.st_mtime_ns))


@lru_cache(KNOWN_MOST)
def _read_encoder(path: Path, _stamp: tuple[int, int]) -> ImageEncoder | None:
    if path.is_dir():
        judge_folder(path)
    found = ImageEncoder(path, {}, {}, 0, False)
    entries: dict[str, Entry] = {}
    for file in found.weights:
        entries |= safetensors.read_header(file)
    try:
        patch, places = (entries[f"vision_model.embeddings.{name}_embedding.weight"].shape for name in ("patch", "position"))
        wide, projected = entries["vision_model.encoder.layers.0.mlp.fc1.weight"].shape, entries["visual_projection.weight"].shape
    except KeyError:
        return None
    if (len(patch), len(places), len(wide), len(projected)) != (4, 2, 2, 2):
        return None
    width = patch[0]
    settings: dict[str, Any] = {
        "hidden_size": width, "patch_size": patch[-1], "image_size": math.isqrt(places[0] - 1) * patch[-1], "intermediate_size": wide[0],
        "projection_dim": projected[0], "num_attention_heads": _HEADS, "hidden_act": _ACTIVATIONS.get(width, ""),
        "num_hidden_layers": sum(name.startswith("vision_model.encoder.layers.") and name.endswith(".mlp.fc1.weight") for name in entries),
    }  # fmt: skip
    if path.is_dir():
        own = read_settings(path, CONFIG)
        settings |= {name: own[name] for name in ("num_attention_heads", "hidden_act") if name in own}
        settings["layer_norm_eps"] = own.get("layer_norm_eps", 1e-5)
    if not settings["hidden_act"] or width % settings["num_attention_heads"]:
        return None
    halves = all(each.dtype in ("F16", "BF16") for each in entries.values() if len(each.shape) == 2)
    parameters = sum(math.prod(each.shape) for each in entries.values())
    return replace(found, settings=settings, widths={"whole": projected[0], "patches": width}, parameters=parameters, halves=halves)
