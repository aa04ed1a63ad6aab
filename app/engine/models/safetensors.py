"""Read names and shapes from .safetensors headers; refuse truncated files, other formats and pickles. Loads nothing."""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from app.base.bounded_json import Bounds, parse_json
from app.base.regular_file import open_regular
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import ModelPart, Role
from app.engine.models.config_facts import Fact, StrangeFactError, judge_fact, refuse_fact

Tensor = TypeVar("Tensor")
ENDINGS: Final = (".safetensors", ".sft")
"""Single files of weights end so; black-forest-labs published some with the short one."""
PICKLES: Final = frozenset({".ckpt", ".pt", ".pth", ".bin", ".pkl", ".pickle"})
HEADER: Final = Bounds(most_bytes=16 << 20, depth=8, values=500_000, unique=True)
"""No model has nearly as much; the format itself allows 100 MB, which would take seconds to parse."""
FILES_MOST: Final = 256
"""One part may have so many files of weights."""
TENSORS_MOST: Final = 200_000
"""One part may have so many tensors."""
AXES_MOST: Final = 8
HEADER_LENGTH: Final = Fact(int, 2, HEADER.most_bytes)
_AXES: Final = Fact(int, 0, AXES_MOST)
PLACE_MOST: Final = 1 << 63
BITS: Final[dict[str, int]] = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64, "F16": 16, "BF16": 16, "F32": 32, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
}  # fmt: skip
"""A value takes this many bits, by the format's names."""


@dataclass(frozen=True, slots=True)
class Entry:
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Header:
    entries: dict[str, Entry]
    begins: dict[str, int]
    """Each tensor's bytes begin here, behind `data_at`."""
    data_at: int
    words: dict[str, str]
    """Its makers wrote this about it."""


def read_header(path: Path) -> dict[str, Entry]:
    """Read the names and shapes in a .safetensors file; raise a Trouble if it is truncated or another format."""
    return read_whole_header(path).entries


def read_whole_header(path: Path) -> Header:
    """Read all that a .safetensors file says before its data; raise a Trouble if it is truncated or another format, or for a number that no
    such file has."""
    refuse_pickle(path)
    with open_regular(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= max(size_bytes - 8, 0):
            raise _no_safetensors(path)
        try:
            judge_fact("length of its header", length, HEADER_LENGTH)
            table = parse_json(file.read(length), HEADER)
            words = table.get("__metadata__") or {}
            rows = {str(name): row for name, row in table.items() if name != "__metadata__"}
            entries = {name: Entry(row["dtype"], tuple(row["shape"])) for name, row in rows.items()}
            spans = {name: _judge_row(name, entries[name], row["data_offsets"]) for name, row in rows.items()}
            if not all(isinstance(each, str) for each in words.values()):
                raise ValueError("metadata that are no words")
        except StrangeFactError as strange:
            raise refuse_fact(path.parent, path.name, strange.field, strange.value) from strange
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as fault:
            raise _no_safetensors(path) from fault
    data_bytes = max((end for _, end in spans.values()), default=0)
    if 8 + length + data_bytes != size_bytes:
        raise Trouble(
            say(
                "detect.cut-off",
                "{path} is damaged: it has {there} {there:byte|bytes} instead of {wanted}. Download it again.",
                path=str(path),
                wanted=8 + length + data_bytes,
                there=size_bytes,
            )
        )
    if sum(end - begin for begin, end in spans.values()) != data_bytes:  # gaps, or tensors on top of each other: the format has neither
        raise _no_safetensors(path)
    return Header(entries, {name: begin for name, (begin, _) in spans.items()}, 8 + length, words)


def unwrap(tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return the tensors by their own names, where all have what a training program put before them. Of a file that keeps a network as it was
    trained last beside its average, which is the better one, the average alone."""
    if all(name.startswith(_BOTH) for name in tensors):
        tensors = {name: tensor for name, tensor in tensors.items() if name.startswith(_AVERAGE)} or tensors
    for each in _WRAPS:
        if all(name.startswith(each) for name in tensors):
            tensors = {name.removeprefix(each): tensor for name, tensor in tensors.items()}
    return tensors


_AVERAGE: Final = "params_ema."
_BOTH: Final = (_AVERAGE, "params.")
_WRAPS: Final = (*_BOTH, "module.")


def _judge_row(name: str, entry: Entry, offsets: list[int]) -> tuple[int, int]:
    """Return where a tensor's bytes begin and end; raise StrangeFactError unless they are as many as its shape says."""
    begin, end = offsets
    judge_fact(f"{name}: number of axes", len(entry.shape), _AXES)
    for field, numbers in (("shape", entry.shape), ("data_offsets", offsets)):
        for each in numbers:
            if type(each) is not int or not 0 <= each < PLACE_MOST:
                raise StrangeFactError(f"{name}: {field}", each)
    if (math.prod(entry.shape) * BITS[entry.dtype] + 7) // 8 != end - begin:
        raise StrangeFactError(f"{name}: shape", list(entry.shape))
    return begin, end


def refuse_pickle(path: Path) -> None:
    """Refuse pickles, by name and by first bytes: reading one can run any program."""
    with open_regular(path) as file:
        start = file.read(9)
    # a .safetensors file begins with the length of its header, which may be 640, and then has its first brace
    packed = start[:2] == b"\x80\x02" and start[8:] != b"{"
    if path.suffix.lower() in PICKLES or packed or start[:4] == b"PK\x03\x04":
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


_HALF: Final = re.compile(r"\.(fp16|bf16)[.-]")


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
    full = [each for each in found if not _HALF.search(each.name)]
    return full or [each for each in found if ".fp16" in each.name] or found


def describe_part(name: str, role: Role, folder: Path, half_is_safe: bool = True) -> ModelPart:
    """Count a part's parameters from its headers, and those in layers that can be quantised."""
    held: dict[str, tuple[int, ...]] = {}
    for count, path in enumerate(list_weights(folder)):
        held |= {each: entry.shape for each, entry in read_header(path).items()}
        if count >= FILES_MOST or len(held) > TENSORS_MOST:  # each takes time to read
            raise ValueError(f"more than {FILES_MOST} files or {TENSORS_MOST} tensors of weights")
    linear = {each: math.prod(shape) for each, shape in held.items() if len(shape) == 2 and each.endswith(".weight")}
    if role != "denoiser":  # the denoiser's embedders are linear layers, despite their names
        linear = {each: count for each, count in linear.items() if not any(mark in each for mark in _STAYS_WHOLE)}
    return ModelPart(
        name,
        role,
        sum(map(math.prod, held.values())),
        half_is_safe,
        sum(linear.values()),
        sum(count for each, count in linear.items() if each.endswith(_KEPT_WIDE)),
    )


_STAYS_WHOLE: Final = ("embed", "shared.", "relative_attention_bias", "lm_head", "text_projection", "logits_dense")
"""These are embedding tables and output layers, which quantisers skip."""
_KEPT_WIDE: Final = ".DenseReluDense.wo.weight"
"""T5's layers whose names have this hold values that exceed float16."""
