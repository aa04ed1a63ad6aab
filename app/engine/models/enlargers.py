"""Enlargers: networks that make a picture larger, a .safetensors file each. What a file is, and which are there. Loads nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from app.base.path_checks import is_file
from app.base.paths import Home, assets
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.settings import ENLARGERS, STARTER_ENLARGER
from app.engine.models import safetensors
from app.engine.models.chosen import read_tool_places
from app.engine.models.lora_library import list_files
from app.engine.models.model import Model
from app.engine.models.on_disk import locate
from app.engine.models.rrdb import Rrdb, Tiling, read_rrdb
from app.engine.models.safetensors import Entry
from app.engine.models.swin2sr import CONFIG, Swin2sr, read_swin2sr, read_swin2sr_file
from app.engine.models.swin2sr import FIRST as SWIN2SR_FIRST
from app.engine.models.swin2sr import ROWS as SWIN2SR

ENDING: Final = ".safetensors"
Base = Literal["nearest", "lanczos"]
FILES_MOST: Final = 200
_WEIGHT: Final = re.compile(r"body\.(\d{1,3})\.(weight|bias)")
_CONVOLUTIONS: Final = range(1, 65)
_FEATURES: Final = range(1, 257)
_SCALES: Final = range(1, 5)
_DTYPES: Final = ("F16", "F32", "BF16")
_SWIN2SR_TITLE: Final = "Swin2SR"
_COPIES: Final = 3
"""So many copies of the widest layer's numbers are alive at once: what it reads, what it writes, and torch's own copy of one of them."""


_OTHERS: Final = (
    ("model.1.sub.0.RDB1.conv1x1.weight", "ESRGAN+"), ("layers.0.residual_group.overlap_attn.qkv.weight", "HAT"), ("layers.0.residual_group.td", "ATD"),
    ("layers.0.swin1.norm1.weight", "DRCT"), ("layers.0.blocks.0.gamma", "RGT"), ("layers.0.blocks.0.attn.channel_interaction.1.weight", "DAT"),
    ("groups.0.blocks.0.inter.cg.1.weight", "FDAT"), ("layers.0.blocks.0.attn.window_attn.attn_transform.logit_scale", "GRL"),
    ("layers.0.residual_group.hf_blocks.0.attn.temperature", "CRAFT"), ("block_1.c1_r.sk.weight", "SPAN"),
    ("residual_layer.0.residual_layer.0.layer.0.fn.0.weight", "OmniSR"), ("feats.1.refine.weight", "PLKSR"), ("feats.0.safm.aggr.weight", "SAFMN"),
    ("gblocks.1.fc1.weight", "MoSR"), ("in_to_dim.weight", "MoESR"), ("UFONE.0.ITLs.0.attn.temperature", "DITN"),
    ("unet1.conv1.conv.0.weight", "Real-CUGAN"), ("m_head.0.weight", "SCUNet"), ("body.0.body.0.body.0.weight", "RCAN"),
    ("patch_embed.proj.weight", _SWIN2SR_TITLE), (SWIN2SR_FIRST, _SWIN2SR_TITLE),
    ("layers.0.residual_group.blocks.0.attn.relative_position_bias_table", "SwinIR"),
)  # fmt: skip
"""Kinds of networks that people keep, each told by one of its tensors. Hearth runs none of them but Swin2SR."""


@dataclass(frozen=True, slots=True)
class Compact:
    """What is known of a "compact" network (SRVGGNet): convolutions of 3 x 3 with a PReLU behind each but the last, whose channels become pixels."""

    path: Path
    scale: int
    features: int
    convolutions: int
    """So many lie between the first and the last."""
    base: Base = "nearest"
    """Its pixels are added to these: the nearest ones, as everywhere; those of a formula, where its file says so."""

    @property
    def tiling(self) -> Tiling:
        """Each convolution sees one pixel further."""
        return Tiling(self.convolutions + 2)

    def count_bytes(self, width: int, height: int) -> int:
        """Forecast the memory of one call in float32 for a picture, or a tile, of so many pixels: its widest layer."""
        return width * height * 4 * _COPIES * max(self.features, 3 * self.scale**2)


Enlarger = Compact | Rrdb | Swin2sr


def read_enlarger(path: Path) -> Enlarger:
    """Describe an enlarger by its header, a folder by its settings; raise a Trouble for any other file."""
    if path.is_dir():
        return read_swin2sr(path)
    if not is_file(path):
        raise _explain_missing(path)
    header = safetensors.read_whole_header(path)
    entries = safetensors.unwrap(header.entries)
    if all(each.dtype in _DTYPES for each in entries.values()):
        if (shapes := _read_shapes(entries)) is not None:
            return Compact(path, *shapes, "lanczos" if header.words.get("base") == "lanczos" else "nearest")
        if (rrdb := read_rrdb(path, entries)) is not None:
            return rrdb
    kind = next((title for mark, title in _OTHERS if mark in entries), None)
    if kind == _SWIN2SR_TITLE:
        return read_swin2sr_file(path, entries)
    if kind is not None:
        raise Trouble(
            say(
                "enlarger.kind",
                "{path} is an enlarger of the kind {kind}, which Hearth cannot run. "
                "Choose one of the kinds ESRGAN, Swin2SR or compact (SRVGGNet) as .safetensors.",
                path=path.name,
                kind=kind,
            )
        )
    raise Trouble(
        say(
            "enlarger.other",
            "{path} is no enlarger that Hearth can use. "
            "It takes those of the kinds ESRGAN, Swin2SR and compact (SRVGGNet) as .safetensors, for colour pictures.",
            path=path.name,
        )
    )


def _explain_missing(path: Path) -> Trouble:
    return Trouble(say("enlarger.missing", "The enlarger {path} was not found. Choose another one.", path=path.name))


def _read_shapes(entries: Mapping[str, Entry]) -> tuple[int, int, int] | None:
    """Return scale, features and number of inner convolutions; None unless every tensor is where this kind of network has it."""
    shapes = {name: entry.shape for name, entry in entries.items()}
    if not all(map(_WEIGHT.fullmatch, shapes)):
        return None
    first = shapes.get("body.0.weight", ())
    last = max((int(name.split(".")[1]) for name in shapes), default=0)
    features, convolutions = first[0] if len(first) == 4 else 0, last // 2 - 1
    scale = next((each for each in _SCALES if shapes.get(f"body.{last}.weight") == (3 * each * each, features, 3, 3)), 0)
    if not (scale and last % 2 == 0 and features in _FEATURES and convolutions in _CONVOLUTIONS):
        return None
    return (scale, features, convolutions) if shapes == list_shapes(scale, features, convolutions) else None


def list_shapes(scale: int, features: int, convolutions: int) -> dict[str, tuple[int, ...]]:
    """List the tensors of a network with their shapes."""
    found: dict[str, tuple[int, ...]] = {}
    for place in range(convolutions + 1):
        found |= {f"body.{2 * place}.weight": (features, features if place else 3, 3, 3), f"body.{2 * place}.bias": (features,)}
        found[f"body.{2 * place + 1}.weight"] = (features,)
    last, channels = 2 * convolutions + 2, 3 * scale * scale
    return found | {f"body.{last}.weight": (channels, features, 3, 3), f"body.{last}.bias": (channels,)}


def count_products(name: str, size: tuple[int, int], times: float) -> float:
    """Forecast how often an enlarger multiplies for a picture; 0 for a compact one, which takes next to no time beside the painting."""
    facts = read_enlarger(locate_enlarger(name)) if name else None
    if facts is None or isinstance(facts, Compact):
        return 0.0
    reached, total = 1, 0.0
    while (not total and times > 1) or (facts.scale > 1 and reached < times):
        total, reached = total + math.prod(size) * reached**2 * facts.products, reached * facts.scale
    return total


def locate_enlarger(name: str) -> Path:
    """Return the file, or the folder, of an enlarger that a request names; the starter's comes with Hearth."""
    return assets() / "starter" / "enlarger" / f"enlarger{ENDING}" if name == STARTER_ENLARGER else Path(name)


def find_enlarger(home: Home, name: str) -> str:
    """Return an enlarger as a request has it: those that are everywhere by name, the owner's by its path. Raise a Trouble for one that is not there."""
    if name in ENLARGERS or Path(name).is_absolute():
        return name
    plain = Path(name).name == name != ".."
    if plain and is_file(home.enlargers / name / CONFIG):
        return str(home.enlargers / name)
    if (row := next((each for each in SWIN2SR if each.id == name), None)) is not None:
        return str(_require_row(home, row))
    path = home.enlargers / f"{name.removesuffix(ENDING)}{ENDING}"
    pickle = home.enlargers / name
    if pickle.suffix.lower() in safetensors.PICKLES and plain and is_file(pickle):
        safetensors.refuse_pickle(pickle)
    if plain and is_file(path):
        return str(path)
    if (other := _list_others(home).get(name.removesuffix(ENDING))) is None:
        if not plain:
            raise _explain_missing(Path(name))
        raise Trouble(
            say(
                "enlarger.unknown",
                "There is no enlarger {name} here. Put its .safetensors into {folder}, or choose another one.",
                name=name,
                folder=str(home.enlargers),
            )
        )
    return str(other)


def _require_row(home: Home, row: Model) -> Path:
    """Return where an enlarger of the catalog lies; raise a Trouble that offers one which is not here."""
    if (found := locate(home, row)) is None:
        raise Trouble(
            say("enlarger.get", "{model} is not here yet. Download it first, or choose another enlarger.", model=row.words),
            cure=f"get:{row.id}",
        )
    return found.folder


def list_offered(home: Home) -> list[tuple[str, str]]:
    """List what the owner may choose besides what is everywhere, with titles: what is here, then what the catalog has, with what it takes to download."""
    here = list_enlargers(home)
    titles = {row.id: str(row.title) for row in SWIN2SR}
    missing = [(row.id, f"{row.title} ({round(row.bytes / 1e6)} MB, {row.licence})") for row in SWIN2SR if row.id not in here]
    return [*((each, titles.get(each, each)) for each in here), *missing]


def list_enlargers(home: Home) -> list[str]:
    """List the names of the enlargers, files and folders, that a person put into Hearth's folder, whatever they turn out to be; pickles too, so that
    choosing one says what to get in its place. Then those of other programs, and those of the catalog that are here."""
    there = [*home.enlargers.iterdir()] if home.enlargers.is_dir() else []
    usable, others = {path.stem for path in there if path.name.endswith(ENDING)}, {*_list_others(home)}
    usable |= {path.name for path in there if is_file(path / CONFIG)}
    pickles = {path.name for path in there if path.suffix.lower() in safetensors.PICKLES and path.stem not in usable | others}
    own = sorted(usable | pickles, key=str.lower)[:FILES_MOST]
    listed = sorted([*own, *sorted(others - usable, key=str.lower)[: FILES_MOST - len(own)]], key=str.lower)
    return [*listed, *(row.id for row in SWIN2SR if row.id not in listed and locate(home, row) is not None)]


def _list_others(home: Home) -> dict[str, Path]:
    """Return the enlargers of the programs that Hearth was asked to look for, by their files' names, as restored settings have them; of equal ones
    that which lies highest."""
    found = sorted(list_files(*read_tool_places(home, "enlarger")), key=lambda each: each.name.count("/"))
    return {each.word: each.path for each in reversed(found)}
