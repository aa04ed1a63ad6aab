"""Read names and shapes from .safetensors headers; refuse truncated files, other formats and pickles. Loads nothing."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.compat.planning.types import ModelPart, Role
from app.engine.files.bounded_json import Bounds, parse_json
from app.sentence import Trouble, say

PICKLES: Final = frozenset({".ckpt", ".pt", ".pth", ".bin", ".pkl", ".pickle"})
HEADER: Final = Bounds(most_bytes=16 << 20, depth=8, values=500_000)
"""Far more than any model has; the format itself allows 100 MB, which would take seconds to parse."""


@dataclass(frozen=True, slots=True)
class Entry:
    dtype: str
    shape: tuple[int, ...]


def read_header(path: Path) -> dict[str, Entry]:
    """Read the names and shapes in a .safetensors file; raise a Trouble if it is truncated or another format."""
    refuse_pickle(path)
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(HEADER.most_bytes, max(size_bytes - 8, 0)):
            raise _no_safetensors(path)
        try:
            table = parse_json(file.read(length), HEADER)
            entries = {
                str(name): (Entry(str(row["dtype"]), tuple(map(int, row["shape"]))), int(row["data_offsets"][1]))
                for name, row in table.items()
                if name != "__metadata__"
            }
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as fault:
            raise _no_safetensors(path) from fault
    end = 8 + length + max((last for _, last in entries.values()), default=0)
    if end != size_bytes:
        raise Trouble(
            say(
                "detect.cut-off",
                "{path} is damaged: it has {there} {there:byte|bytes} instead of {wanted}. Download it again.",
                path=str(path),
                wanted=end,
                there=size_bytes,
            )
        )
    return {name: entry for name, (entry, _) in entries.items()}


def refuse_pickle(path: Path) -> None:
    """Refuse pickles, by name and by first bytes: reading one can run any program."""
    with path.open("rb") as file:
        start = file.read(4)
    if path.suffix.lower() in PICKLES or start[:2] == b"\x80\x02" or start == b"PK\x03\x04":
        raise Trouble(
            say(
                "detect.pickle",
                "{path} is a pickle file, which can run any program when opened. Hearth only reads .safetensors; download that version of the model.",
                path=str(path),
            )
        )


def _no_safetensors(path: Path) -> Trouble:
    return Trouble(
        say(
            "detect.not-safetensors",
            "{path} is not a valid .safetensors file, or the download is incomplete. Download it again, or choose another file.",
            path=str(path),
        )
    )


def list_weights(folder: Path) -> list[Path]:
    """List the .safetensors of a part, in one precision if there are two; raise a Trouble if there are only pickles, or
    none."""
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        pickles = [each for each in folder.glob("*") if each.suffix in PICKLES]
        if pickles:
            refuse_pickle(pickles[0])
        raise Trouble(
            say(
                "detect.no-weights",
                "{path} contains no .safetensors file, so the model is incomplete. Download it again.",
                path=str(folder),
            )
        )
    full = [each for each in found if ".fp16" not in each.name]
    return full or found


def describe_part(name: str, role: Role, folder: Path, half_is_safe: bool = True) -> ModelPart:
    """Count a part's parameters from its headers, and those in layers that can be quantised."""
    held = {each: entry.shape for path in list_weights(folder) for each, entry in read_header(path).items()}
    linear = {each: math.prod(shape) for each, shape in held.items() if len(shape) == 2 and each.endswith(".weight")}
    if role != "denoiser":  # the denoiser's embedders are linear layers, despite their names
        linear = {each: count for each, count in linear.items() if not any(mark in each for mark in _STAYS_WHOLE)}
    return ModelPart(
        name, role, sum(map(math.prod, held.values())), half_is_safe, sum(linear.values()),
        sum(count for each, count in linear.items() if each.endswith(_KEPT_WIDE)),
    )  # fmt: skip


_STAYS_WHOLE: Final = ("embed", "shared.", "relative_attention_bias", "lm_head", "text_projection", "logits_dense")
"""Embedding tables and output layers: quantisers skip both."""
_KEPT_WIDE: Final = ".DenseReluDense.wo.weight"
"""T5's layers whose values exceed float16."""
