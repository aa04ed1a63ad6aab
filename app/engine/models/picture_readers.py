"""List the models that read pictures, rows like the catalog's: how far away things are, how people stand, where each thing is, what is shown. No job
names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.base.sentence import say
from app.compat.planning.memory_formulas import BYTES, SCRATCH_BYTES
from app.compat.planning.types import ModelPart
from app.engine.models.model import Attention, Companion, Model, Source

DEPTH: Final = Model(
    "depth-anything-v2-small", "seeing", "depth_anything", "Depth Anything V2 Small",
    parts=(ModelPart("model", "speech", 24_785_089),),
    attention=Attention(6, 6, 64, text_tokens=1370, keys=1370, causal=False),
    source=Source("depth-anything/Depth-Anything-V2-Small-hf", ("config.json", "model.safetensors"), 99_200_000), licence="Apache-2.0",
    note=say("catalog.depth", "Sees how far away things are, so that a picture can guide another by its depth."),
)  # fmt: skip

FINDER: Final = "finder"
"""This companion finds each person, of whom the model itself sees the points."""
POSE: Final = Model(
    "vitpose-base", "seeing", "vitpose", "ViTPose base",
    parts=(ModelPart("model", "speech", 85_912_337), ModelPart("finder", "speech", 20_174_608)),
    attention=Attention(12, 12, 64, text_tokens=192, keys=192, causal=False),
    source=Source("usyd-community/vitpose-base-simple", ("config.json", "model.safetensors"), 343_700_000), licence="Apache-2.0",
    companions=(Companion(FINDER, Source("PekingU/rtdetr_r18vd", ("config.json", "model.safetensors"), 80_900_000), "Apache-2.0"),),
    note=say("catalog.pose", "Sees how people stand and move, so that a picture can guide another by their poses."),
)  # fmt: skip

PICKER: Final = Model(
    "slimsam", "seeing", "sam", "SlimSAM",
    parts=(ModelPart("model", "speech", 9_723_784, half_is_safe=False),),
    attention=Attention(12, 12, 14, text_tokens=4096, keys=4096, masked=True, causal=False),
    source=Source("Zigeng/SlimSAM-uniform-77", ("config.json", "model.safetensors"), 38_900_000), licence="Apache-2.0",
    cache_bytes=2 * 2 * 12 * 4096 * 4096,  # what its widest attention adds to the scores, for each head, and the copy that attention is given
    note=say("catalog.picker", "Finds what you click on and makes it the mask of a starting picture."),
)  # fmt: skip

DESCRIBER: Final = Model(
    "florence-2-base", "seeing", "florence2", "Florence-2 base",
    parts=(ModelPart("model", "speech", 231_000_000, half_is_safe=False),),
    attention=Attention(12, 12, 64, text_tokens=600, keys=600, causal=False),
    source=Source("florence-community/Florence-2-base-ft", ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"), 468_000_000),
    licence="MIT",
    note=say("catalog.describer", "Describes a picture in English, to use in another picture's prompt."),
)  # fmt: skip

READERS: Final[Mapping[str, Model]] = {"depth": DEPTH, "pose": POSE}
"""Each is found by what is made of a guide."""
ALL: Final = (*READERS.values(), PICKER, DESCRIBER)


def count_reading_bytes(made: str) -> int:
    """Return what it takes in memory to make a guide's map: the largest of the reader's models in float32, as one follows the other, and its work."""
    return max(part.parameters for part in READERS[made].parts) * BYTES["float32"] + SCRATCH_BYTES["speech"] if made in READERS else 0
