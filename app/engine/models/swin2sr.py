"""List the Swin2SR enlargers, rows like the catalog's, and say what is known of one by its settings. Loads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import ModelPart
from app.engine.jobs.outward import public_name
from app.engine.models.judged_files import judge_folder, read_settings
from app.engine.models.model import Attention, Model, Source, list_sources
from app.engine.models.rrdb import Tiling

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
_HELD: Final = 12
"""So many copies of what a layer reads are alive while its attention runs, as measured: the picture's, the stage's, its own in windows, queries, keys and
values, and torch's of those that it multiplies."""


@dataclass(frozen=True, slots=True)
class Swin2sr:
    """What is known of a Swin2SR network."""

    path: Path
    """The folder, as transformers writes it."""
    scale: int
    width: int
    heads: int
    """Its widest layer has so many."""
    stages: int
    """Each ends with a convolution, and has some of the layers."""
    layers: int
    growth: float
    """Each layer computes with so many times its width in between."""
    window: int

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
        stages = 10 * self.stages * self.width**2
        return self.layers * layer + stages + 10 * self.width**2 + 9 * self.width * (_FEATURES + 3) + late

    def count_bytes(self, width: int, height: int) -> int:
        """Forecast the memory of one call in float32 for a tile of so many pixels: two copies of the scores within windows, with the mask of shifted ones
        and what else is alive; or, with a large scale, what becomes pixels, before and after."""
        area = self.window**2
        attention = 2 * self.heads * area + area + _HELD * self.width
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
        raise Trouble(
            say(
                "enlarger.upsampler",
                "{path} is a Swin2SR of the kind {kind}, which Hearth cannot run. Choose one of the kind {runs}: the classical ones.",
                path=folder.name,
                kind=kind if isinstance(kind, str) and kind else "?",
                runs=UPSAMPLER,
            )
        )
    if (found := _read(folder, settings)) is None:
        raise Trouble(
            say(
                "enlarger.odd",
                "The settings of the Swin2SR in {path} are not those of an enlarger that Hearth can use. Choose another enlarger.",
                path=folder.name,
            )
        )
    return found


def _read(folder: Path, settings: dict[str, Any]) -> Swin2sr | None:
    """Return what the settings say, with transformers' own values for those that are not there; None where no such network has them."""
    scale, width, window = settings.get("upscale", 2), settings.get("embed_dim", 180), settings.get("window_size", 8)
    depths, heads, growth = settings.get("depths", [6] * 6), settings.get("num_heads", [6] * 6), settings.get("mlp_ratio", 2.0)
    channels = settings.get("num_channels", 3)
    fits = (
        scale in _SCALES
        and window == 8
        and _is_whole(width, 8, 512)
        and isinstance(depths, list)
        and isinstance(heads, list)
        and 0 < len(depths) == len(heads) <= 16
        and all(_is_whole(each, 1, 16) for each in depths)
        and all(_is_whole(each, 1, 64) and width % each == 0 for each in heads)
        and isinstance(growth, int | float)
        and 0 < growth <= 8
        and _is_whole(settings.get("image_size", 64), 2 * window, 1024)
        and (settings.get("patch_size", 1), channels, settings.get("num_channels_out") or channels) == (1, 3, 3)
        and settings.get("resi_connection", "1conv") in ("1conv", "3conv")
        and not settings.get("use_absolute_embeddings")
        and not settings.get("quantization_config")  # packed weights need what may not be here
    )
    return Swin2sr(folder, scale, width, max(heads), len(depths), sum(depths), growth, window) if fits else None


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
