"""List the models that read pictures for others, rows like the catalog's: how far away things are. They make nothing, so no job names them. Loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.base.sentence import say
from app.compat.planning.types import ModelPart
from app.engine.models.model import Attention, Model, Source

DEPTH: Final = Model(
    "depth-anything-v2-small", "seeing", "depth_anything", "Depth Anything V2 Small",
    parts=(ModelPart("model", "speech", 24_785_089),),
    attention=Attention(6, 6, 64, text_tokens=1370, keys=1370, causal=False),
    source=Source("depth-anything/Depth-Anything-V2-Small-hf", ("config.json", "model.safetensors"), 99_200_000), licence="Apache-2.0",
    note=say("catalog.depth", "Sees how far away things are, so that a picture can guide another by its depth."),
)  # fmt: skip

READERS: Final[Mapping[str, Model]] = {"depth": DEPTH}
"""By what is made of a guide."""
