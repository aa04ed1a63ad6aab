"""List the models that read pictures for others, rows like the catalog's: how far away things are. They make nothing, so no job names them. Loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.base.sentence import say
from app.compat.planning.memory_formulas import BYTES, SCRATCH_BYTES
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
"""Each is found by what is made of a guide."""


def count_reading_bytes(made: str) -> int:
    """Return what it takes in memory to make a guide's map: the reader's weights in float32, and its work."""
    return sum(part.parameters for part in READERS[made].parts) * BYTES["float32"] + SCRATCH_BYTES["speech"] if made in READERS else 0
