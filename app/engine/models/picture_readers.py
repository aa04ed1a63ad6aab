"""List the models that read pictures, rows like the catalog's: what is how far away, which thing is where. They make nothing, so no job names them."""

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

PICKER: Final = Model(
    "slimsam", "seeing", "sam", "SlimSAM",
    parts=(ModelPart("model", "speech", 9_723_784, half_is_safe=False),),
    attention=Attention(12, 12, 14, text_tokens=4096, keys=4096, masked=True, causal=False),
    source=Source("Zigeng/SlimSAM-uniform-77", ("config.json", "model.safetensors"), 38_900_000), licence="Apache-2.0",
    cache_bytes=2 * 12 * 4096 * 4096,  # what its widest attention adds to the scores, for each head
    note=say("catalog.picker", "Finds the thing that you click on, so that it becomes the mask of a starting picture."),
)  # fmt: skip

READERS: Final[Mapping[str, Model]] = {"depth": DEPTH}
"""Each is found by what is made of a guide."""
ALL: Final = (*READERS.values(), PICKER)


def count_reading_bytes(made: str) -> int:
    """Return what it takes in memory to make a guide's map: the reader's weights in float32, and its work."""
    return sum(part.parameters for part in READERS[made].parts) * BYTES["float32"] + SCRATCH_BYTES["speech"] if made in READERS else 0
