"""Control models (ControlNet): networks by which one picture guides another. What a file or folder is, which are there, which fit. Loads nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from app.base.path_checks import is_file
from app.base.paths import Home
from app.base.sentence import Value, say
from app.base.trouble import Trouble
from app.engine.models import safetensors
from app.engine.models.judged_files import judge_folder
from app.engine.models.lora_facts import NAMES
from app.engine.models.model import Model
from app.engine.models.model_folder import choose_weights
from app.engine.models.picture_families import FAMILIES
from app.engine.models.safetensors import Entry

ENDING: Final = ".safetensors"
STEM: Final = "diffusion_pytorch_model"
CONFIG: Final = "config.json"
FILES_MOST: Final = 200
KNOWN_MOST: Final = 512
"""At most so many headers are remembered."""
_FIRST: Final = "controlnet_cond_embedding.conv_in.weight"
_FIRST_Z_IMAGE: Final = "control_all_x_embedder.2-1.weight"
_FIRST_ORIGINAL: Final = ("control_model.input_hint_block.0.weight", "input_hint_block.0.weight")
_UNION: Final = say("control.union", "a ControlNet Union")
_T2I: Final = say("control.t2i", "a T2I-Adapter")
_ADAPTER: Final = say("control.adapter", "an IP-Adapter")
_OTHERS: Final[tuple[tuple[str, Value], ...]] = (
    ("lora_controlnet", say("control.lora", "a Control-LoRA")), ("task_embedding", _UNION), ("control_add_embedding.linear_1.weight", _UNION),
    ("controlnet_x_embedder.weight", say("control.of", "a ControlNet for {family}", family="FLUX")),
    ("controlnet_blocks.0.weight", say("control.of", "a ControlNet for {family}", family="SD 3 / FLUX")),
    ("adapter.body.0.resnets.0.block1.weight", _T2I), ("body.0.block1.weight", _T2I),
    ("image_proj.proj.weight", _ADAPTER), ("image_proj.latents", _ADAPTER),
)  # fmt: skip
"""People keep these, too, beside control models; they are told by a tensor of each."""
_WIDTHS: Final = {1024: "sd2"}
"""These families have no row, and are told by the numbers that their attention reads of each token."""


@dataclass(frozen=True, slots=True)
class Control:
    path: Path
    """It is a .safetensors file, or a folder as diffusers writes it."""
    family: str
    """lora_facts.NAMES has this key."""
    parameters: int
    original: bool
    """True: its tensors have the names of Stable Diffusion's first programs."""
    width: int = 0
    layers: int = 0
    """Of a transformer's: so many layers hand on so many numbers of each token."""

    @property
    def weights(self) -> tuple[Path, ...]:
        return tuple(choose_weights(self.path, STEM)) if self.path.is_dir() else (self.path,)

    def count_handed(self, tokens: int) -> int:
        """Count the numbers that are alive when a transformer's hands on what its layers made: theirs, and as strong as was asked for."""
        return 2 * (self.layers + 1) * self.width * tokens


def read_control(path: Path) -> Control:
    """Describe a control model by its headers; raise a Trouble for anything else."""
    file = path / CONFIG if path.is_dir() else path
    if not is_file(file):
        raise Trouble(say("control.missing", "The control model {path} was not found. Choose another one.", path=path.name))
    facts = file.stat()
    return _read(path, (facts.st_size, facts.st_mtime_ns))


@lru_cache(KNOWN_MOST)
def _read(path: Path, _stamp: tuple[int, int]) -> Control:
    if path.is_dir():
        judge_folder(path)
    found = Control(path, "", 0, False)
    entries: dict[str, Entry] = {}
    for file in found.weights:
        entries |= safetensors.read_header(file)
    other = next((title for mark, title in _OTHERS if mark in entries), "")
    original = any(each in entries for each in _FIRST_ORIGINAL)
    if other or not (original or _FIRST in entries or _FIRST_Z_IMAGE in entries):
        raise Trouble(
            say(
                "control.other",
                "{path} is {kind}, which Hearth does not use to guide a picture. Get a ControlNet for {families} as .safetensors.",
                path=path.name,
                kind=other or say("control.unknown", "no control model"),
                families=tuple(each.title for each in FAMILIES.values() if each.guided),
            )
        )
    layers = [each for name, each in entries.items() if name.startswith("control_layers.") and name.endswith(".after_proj.weight")]
    return replace(
        found,
        family=_find_family(entries),
        parameters=sum(math.prod(each.shape) for each in entries.values()),
        original=original,
        width=layers[0].shape[0] if layers and layers[0].shape else 0,
        layers=len(layers),
    )


def _find_family(entries: Mapping[str, Entry]) -> str:
    """SDXL alone reads the picture's size; small ones of it have no attention to go by."""
    if _FIRST_Z_IMAGE in entries:
        return "z-image"
    if any(name.endswith(("add_embedding.linear_1.weight", "label_emb.0.0.weight")) for name in entries):
        return "sdxl"
    widths = (each.shape[-1] for name, each in entries.items() if name.endswith("attn2.to_k.weight") and each.shape)
    return _WIDTHS.get(next(widths, 0), "sd15")


def explain_misfit(control: Control, model: Model) -> Value | None:
    """Say why a control model cannot be used with a model; None if it can."""
    family = FAMILIES.get(model.family)
    if family is None or not family.guided or model.starter:
        able = tuple(each.title for each in FAMILIES.values() if each.guided)
        return say("control.none", "{model} cannot be guided by a picture; models of {families} can.", model=model.words, families=able)
    if control.family != model.family:
        made_for = NAMES.get(control.family, control.family)
        return say("control.family", "It was made for {family}; {model} is another kind of model.", family=made_for, model=model.words)
    return None


def require_fit(path: Path, model: Model) -> Control:
    """Read a control model; raise a Trouble unless it fits the model."""
    control = read_control(path)
    if (why := explain_misfit(control, model)) is not None:
        raise Trouble(say("control.unfit", "The control model {name} cannot be used here. {why}", name=name_control(path), why=why))
    return control


def name_control(path: Path) -> str:
    return path.name.removesuffix(ENDING)


def list_controls(home: Home) -> list[Path]:
    """List what a person put into Hearth's folder, by name, whatever it turns out to be."""
    there = home.controls.iterdir() if home.controls.is_dir() else ()
    found = [each for each in there if is_control_path(each)]
    return sorted(found, key=lambda path: path.name.lower())[:FILES_MOST]


def is_control_path(path: Path) -> bool:
    return path.name.lower().endswith(ENDING) or is_file(path / CONFIG)


def find_control(home: Home, name: str) -> str:
    """Return a control model as a request has it, by its path. Raise a Trouble for one that is not there."""
    if not name or Path(name).is_absolute():
        return name
    found = next((each for each in list_controls(home) if name in (each.name, name_control(each))), None)
    if found is None:
        raise Trouble(
            say(
                "control.not-here",
                "There is no control model {name} here. Put its .safetensors or its folder into {folder}, or choose another one.",
                name=name,
                folder=str(home.controls),
            )
        )
    return str(found)
