"""List the Swin2SR enlargers, rows like the catalog's, and say what is known of one by its settings, or by its file's tensors. Loads nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import ModelPart
from app.engine.jobs.outward import public_name
from app.engine.models import safetensors
from app.engine.models.judged_files import judge_folder, read_settings
from app.engine.models.model import Attention, Model, Source, list_sources
from app.engine.models.model_folder import choose_weights
from app.engine.models.rrdb import Tiling
from app.engine.models.safetensors import Entry

CONFIG: Final = "config.json"


def _make_row(scale: int, parameters: int) -> Model:
    name = f"swin2SR-classical-sr-x{scale}-64"
    return Model(
        name,
        "enlarging",
        "swin2sr",
        f"Swin2SR {scale}x",
        parts=(ModelPart("model", "speech", parameters),),
        attention=Attention(6, 6, 30, text_tokens=64, keys=64, masked=True, causal=False),
        source=Source(f"caidas/{name}", (CONFIG, "model.safetensors"), 4 * parameters),
        licence="Apache-2.0",
        note=say("catalog.enlarger", "Enlarges pictures {scale}-fold and keeps fine structure; slow without a graphics card.", scale=scale),
    )


ROWS: Final = (_make_row(2, 12_091_571), _make_row(4, 12_239_283))
"""An id is its repository's name, by which a picture's settings name the folder of the hub's cache."""
_REPOS: Final = {source.repo: row for row in ROWS for source in list_sources(row)}
UPSAMPLER: Final = "pixelshuffle"
"""The other kinds are for smaller networks, or mend what compression left; none of them is forecast."""
_FEATURES: Final = 64
"""Behind its last attention it has so many channels."""
_SCALES: Final = (2, 3, 4)
WINDOW: Final = 8
_BIAS: Final = 512
"""The layer that says what a distance within a window counts is so wide."""
_ACTIVATIONS: Final = ("gelu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu", "leaky_relu", "silu", "swish", "mish")
FIRST: Final = "swin2sr.first_convolution.weight"
_NORM: Final = "layernorm_before.weight"
PRODUCTS: Final = ("query", "key", "value")
QKV: Final = "attn.qkv.weight"
"""Its makers keep the three as one."""
_COMPUTED: Final = ("relative_position_index", "relative_coords_table", "attn_mask")
"""They lie in its makers' files, though each follows from the size of a window."""
_DTYPES: Final = ("F16", "F32", "BF16")
_KINDS: Final = (
    ("conv_aux", "pixelshuffle_aux"), ("conv_up1", "nearest+conv"), ("conv_before_upsample_hf", "pixelshuffle_hf"),
    ("conv_before_upsample", UPSAMPLER), ("upsample.0", "pixelshuffledirect"), ("conv.", "pixelshuffledirect"),
)  # fmt: skip
"""Each kind is told by a tensor, the first that is there, by its makers' names or transformers'."""
_BY_MAKERS: Final = (
    ("swin2sr.encoder.stages.", "layers."), (".layers.", ".residual_group.blocks."), ("attention.self.query.weight", QKV),
    ("attention.self.key.weight", QKV), ("attention.self.value.weight", QKV), ("attention.self.query.bias", "attn.q_bias"),
    ("attention.self.value.bias", "attn.v_bias"), ("attention.self.continuous_position_bias_mlp.", "attn.cpb_mlp."),
    ("attention.self.", "attn."), ("attention.output.dense", "attn.proj"), ("intermediate.dense", "mlp.fc1"), ("output.dense", "mlp.fc2"),
    ("layernorm_before", "norm1"), ("layernorm_after", "norm2"), ("patch_embed.projection", "patch_embed.proj"),
    ("swin2sr.embeddings.patch_embeddings.projection", "patch_embed.proj"), ("swin2sr.embeddings.patch_embeddings.layernorm", "patch_embed.norm"),
    ("swin2sr.layernorm", "norm"), ("swin2sr.first_convolution", "conv_first"), ("swin2sr.conv_after_body", "conv_after_body"),
    ("upsample.conv_before_upsample.", "conv_before_upsample.0."), ("upsample.final_convolution", "conv_last"),
    ("upsample.upsample.convolution_0", "upsample.0"), ("upsample.upsample.convolution_1", "upsample.2"),
    ("upsample.upsample.convolution.", "upsample.0."),
)  # fmt: skip
"""What stands in transformers' names, in this order, is this in its makers'."""
_HELD: Final = 12
"""So many copies of what a layer reads are alive while its attention runs, as measured: the picture's, the stage's, its own in windows, queries, keys and
values, and torch's of those that it multiplies."""


@dataclass(frozen=True, slots=True)
class Swin2sr:
    """What is known of a Swin2SR network."""

    path: Path
    """The folder, as transformers writes it, or a file."""
    scale: int
    width: int
    depths: tuple[int, ...]
    """Each stage has so many layers, and ends with a convolution."""
    heads: tuple[int, ...]
    """Each stage's layers have so many."""
    growth: float
    """Each layer computes with so many times its width in between."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The file's name of each tensor, by transformers' name; empty for a folder."""

    @property
    def window(self) -> int:
        return WINDOW

    @property
    def tiling(self) -> Tiling:
        """Attention passes on by half a window with each layer, as far as hundreds of pixels, but little of it: its makers let tiles overlap by 32.
        Windows lie where those of the whole picture lie."""
        return Tiling(4 * self.window, self.window, self.window)

    @property
    def products(self) -> float:
        """It multiplies so often for each pixel that it reads: each weight once, and in attention each pixel with those of its window."""
        layer = self.width**2 * (4 + 2 * self.growth) + 2 * self.width * self.window**2
        doublings = {2: (1,), 4: (1, 4), 3: (9 / 4,)}[self.scale]
        late = sum(9 * 4 * _FEATURES**2 * each for each in doublings) + 27 * _FEATURES * self.scale**2
        stages = 10 * len(self.depths) * self.width**2
        return sum(self.depths) * layer + stages + 10 * self.width**2 + 9 * self.width * (_FEATURES + 3) + late

    def count_bytes(self, width: int, height: int) -> int:
        """Forecast the memory of one call in float32 for a tile of so many pixels: two copies of the scores within windows, with the mask of shifted ones
        and what else is alive; or, with a large scale, what becomes pixels, before and after."""
        area = self.window**2
        attention = 2 * max(self.heads) * area + area + _HELD * self.width
        late = 2 * _FEATURES * (16 if self.scale == 4 else self.scale**2) + 2 * self.width
        return -(-width // self.window) * -(-height // self.window) * area * 4 * max(attention, late)


def find_row(folder: str) -> Model | None:
    """Return the row of the catalog whose folder of the hub's cache this is; None for a folder of the owner's."""
    return _REPOS.get(public_name(folder))


def read_swin2sr(folder: Path) -> Swin2sr:
    """Describe a folder by its settings; raise a Trouble for any other network, and for kinds that Hearth does not run."""
    judge_folder(folder)
    settings = read_settings(folder, CONFIG)
    if settings.get("model_type") != "swin2sr":
        raise Trouble(
            say(
                "enlarger.folder",
                "{path} is no folder of an enlarger that Hearth can use. Choose one of Swin2SR, or a .safetensors of the kinds ESRGAN or compact (SRVGGNet).",
                path=folder.name,
            )
        )
    kind = settings.get("upsampler", "")
    if kind != UPSAMPLER:
        raise _explain_kind(folder, kind)
    if (found := _read(folder, settings)) is None:
        raise _explain_odd(folder)
    own = find_row(str(folder)) is None  # one of the catalog is judged as it is loaded, and can be downloaded again
    if own and not _list_shapes(found, settings).items() <= _read_entries(folder).items():
        raise explain_damaged(folder)
    return found


def explain_damaged(folder: Path) -> Trouble:
    return Trouble(say("enlarger.damaged", "The enlarger in {path} is damaged or incomplete. Choose another enlarger.", path=folder.name))


def _explain_odd(path: Path) -> Trouble:
    return Trouble(
        say(
            "enlarger.odd",
            "The settings of the Swin2SR in {path} are not those of an enlarger that Hearth can use. Choose another enlarger.",
            path=path.name,
        )
    )


def _explain_kind(path: Path, kind: object) -> Trouble:
    return Trouble(
        say(
            "enlarger.upsampler",
            "{path} is a Swin2SR of the kind {kind}, which Hearth cannot run. Choose one of the kind {runs}: the classical ones.",
            path=path.name,
            kind=kind if isinstance(kind, str) and kind else "?",
            runs=UPSAMPLER,
        )
    )


def _read(folder: Path, settings: dict[str, Any]) -> Swin2sr | None:
    """Return what the settings say, with transformers' own values for those that are not there; None where no such network has them."""
    scale, width, window = settings.get("upscale", 2), settings.get("embed_dim", 180), settings.get("window_size", WINDOW)
    depths, heads, growth = settings.get("depths", [6] * 6), settings.get("num_heads", [6] * 6), settings.get("mlp_ratio", 2.0)
    channels = settings.get("num_channels", 3)
    fits = (
        window == WINDOW
        and isinstance(depths, list)
        and isinstance(heads, list)
        and _is_network(scale, width, depths, heads, growth)
        and _is_whole(settings.get("image_size", 64), 2 * window, 1024)
        and (settings.get("patch_size", 1), channels, settings.get("num_channels_out") or channels) == (1, 3, 3)
        and settings.get("resi_connection", "1conv") in ("1conv", "3conv")
        and isinstance(settings.get("qkv_bias", True), bool)
        and settings.get("hidden_act", "gelu") in _ACTIVATIONS
        and not settings.get("use_absolute_embeddings")
        and not settings.get("quantization_config")  # packed weights need what may not be here
    )
    return Swin2sr(folder, scale, width, tuple(depths), tuple(heads), growth) if fits else None


def _is_network(scale: object, width: Any, depths: Sequence[Any], heads: Sequence[Any], growth: object) -> bool:
    return (
        scale in _SCALES
        and _is_whole(width, 8, 512)
        and 0 < len(depths) == len(heads) <= 16
        and all(_is_whole(each, 1, 16) for each in depths)
        and all(_is_whole(each, 1, 64) and width % each == 0 for each in heads)
        and isinstance(growth, int | float)
        and 0 < growth <= 8
    )


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _read_entries(folder: Path) -> dict[str, tuple[int, ...]]:
    try:
        return {name: entry.shape for file in choose_weights(folder) for name, entry in safetensors.read_header(file).items()}
    except (OSError, Trouble) as fault:
        raise explain_damaged(folder) from fault


def _list_shapes(facts: Swin2sr, settings: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """List its tensors by transformers' names, with their shapes."""
    width, hidden = facts.width, int(facts.width * facts.growth)
    biased, three = settings.get("qkv_bias", True), settings.get("resi_connection", "1conv") == "3conv"
    found = _pair("swin2sr.first_convolution", width, 3, 3, 3) | _pair("swin2sr.embeddings.patch_embeddings.projection", width, width, 1, 1)
    found |= _pair("swin2sr.embeddings.patch_embeddings.layernorm", width)
    for stage, (depth, heads) in enumerate(zip(facts.depths, facts.heads, strict=True)):
        for layer in range(depth):
            at = f"swin2sr.encoder.stages.{stage}.layers.{layer}"
            attention = f"{at}.attention.self"
            found |= {f"{attention}.{each}.weight": (width, width) for each in PRODUCTS}
            found |= {f"{attention}.{each}.bias": (width,) for each in ("query", "value") if biased}
            found |= {f"{attention}.logit_scale": (heads, 1, 1)} | _pair(f"{attention}.continuous_position_bias_mlp.0", _BIAS, 2)
            found |= {f"{attention}.continuous_position_bias_mlp.2.weight": (heads, _BIAS)}
            found |= _pair(f"{at}.attention.output.dense", width, width) | _pair(f"{at}.layernorm_before", width)
            found |= _pair(f"{at}.intermediate.dense", hidden, width) | _pair(f"{at}.output.dense", width, hidden)
            found |= _pair(f"{at}.layernorm_after", width)
        at = f"swin2sr.encoder.stages.{stage}"
        if three:
            found |= _pair(f"{at}.conv.0", width // 4, width, 3, 3) | _pair(f"{at}.conv.2", width // 4, width // 4, 1, 1)
        found |= _pair(f"{at}.conv.4", width, width // 4, 3, 3) if three else _pair(f"{at}.conv", width, width, 3, 3)
        found |= _pair(f"{at}.patch_embed.projection", width, width, 1, 1)
    found |= _pair("swin2sr.layernorm", width) | _pair("swin2sr.conv_after_body", width, width, 3, 3)
    found |= _pair("upsample.conv_before_upsample", _FEATURES, width, 3, 3) | _pair("upsample.final_convolution", 3, _FEATURES, 3, 3)
    if facts.scale == 3:
        return found | _pair("upsample.upsample.convolution", 9 * _FEATURES, _FEATURES, 3, 3)
    for doubling in range(facts.scale // 2):
        found |= _pair(f"upsample.upsample.convolution_{doubling}", 4 * _FEATURES, _FEATURES, 3, 3)
    return found


def _pair(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def read_swin2sr_file(path: Path, entries: Mapping[str, Entry]) -> Swin2sr:
    """Describe a file by its tensors, which have its makers' names, as other programs keep them, or transformers'; raise a Trouble for kinds that
    Hearth does not run. Its makers have no other activation than the one that settings have where they say none."""
    rename = str if FIRST in entries else _name_by_makers
    shapes = {name: entry.shape for name, entry in entries.items() if not name.endswith(_COMPUTED)}
    if (kind := _tell_kind(shapes)) != UPSAMPLER:
        raise _explain_kind(path, kind)

    def measure(name: str, place: int) -> int:
        shape = shapes.get(rename(name), ())
        return shape[place] if place < len(shape) else 0

    layer = "swin2sr.encoder.stages.{}.layers.{}.{}"
    counts = (sum(1 for _ in takewhile(lambda each: measure(layer.format(stage, each, _NORM), 0), range(17))) for stage in range(17))  # noqa: B023
    depths = [*takewhile(bool, counts)]
    heads = [measure(layer.format(stage, 0, "attention.self.logit_scale"), 0) for stage in range(len(depths))]
    width, hidden = measure(FIRST, 0), measure(layer.format(0, 0, "intermediate.dense.weight"), 0)
    scale = {9: 3, 4: 4 if measure("upsample.upsample.convolution_1.weight", 0) else 2}.get(
        measure("upsample.upsample.convolution_0.weight", 0) // _FEATURES
        or measure("upsample.upsample.convolution.weight", 0) // _FEATURES,
        0,
    )
    growth = hidden / width if width else 0
    if int(width * growth) < hidden:  # as transformers rounds it: 15 / 11 would make 14 of 11
        growth = math.nextafter(growth, math.inf)
    if not _is_network(scale, width, depths, heads, growth):
        raise _explain_odd(path)
    found = Swin2sr(path, scale, width, tuple(depths), tuple(heads), growth)
    listed = _list_shapes(found, {})
    names = {name: rename(name) for name in listed}
    wanted = {names[name]: (3 * width, width) if names[name].endswith(QKV) else shape for name, shape in listed.items()}
    windows = {entry.shape[0] for name, entry in entries.items() if name.endswith(_COMPUTED[0]) and entry.shape}
    if wanted != shapes or not windows <= {WINDOW**2} or any(entries[name].dtype not in _DTYPES for name in shapes):
        raise _explain_odd(path)
    return replace(found, names=names)


def _tell_kind(names: Collection[str]) -> str:
    for mark, kind in _KINDS:
        if any(name.startswith((mark, f"upsample.{mark}")) for name in names):
            return kind
    return ""


def _name_by_makers(name: str) -> str:
    for ours, theirs in _BY_MAKERS:
        name = name.replace(ours, theirs)
    return name
