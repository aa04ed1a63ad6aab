"""Judge the numbers that a LoRA's file says besides its shapes: its scales and ranks. What its settings name is left to lora_file.py."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from app.base.bounded_json import Bounds, parse_json
from app.base.regular_file import open_regular
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models import safetensors
from app.engine.models.config_facts import Fact, StrangeFactError, judge, judge_fact, shorten

_RANK: Final = Fact(int, 1, 1 << 16)
_SCALE: Final = Fact(float, -1e6, 1e6)
FACTS: Final = {
    "r": _RANK, "lora_alpha": _SCALE, "lora_dropout": Fact(float, 0, 1), "layers_to_transform": Fact(int, 0, 4096, 4096),
    "rank_pattern": _RANK, "alpha_pattern": _SCALE, "ss_network_dim": Fact(float, 1, 1 << 16), "ss_network_alpha": _SCALE,
}  # fmt: skip
"""Each of these numbers says something about a LoRA; of a pattern, those by the names of layers."""
SETTINGS: Final = "lora_adapter_metadata"
"""Here diffusers keeps what it builds a LoRA from: by part of the pipeline, then by the names that peft has for settings."""
BOUNDS: Final = Bounds(most_bytes=4 << 20, depth=8, values=100_000, unique=True)
_FORMS: Final = {"F64": "<d", "F32": "<f", "F16": "<e"}
SCALES_MOST: Final = 20_000


def judge_lora(path: Path) -> None:
    """Raise a Trouble that names the file and the number, for the first that no LoRA has."""
    header = safetensors.read_whole_header(path)
    try:
        _judge_words(header.words)
        for name, value in _read_scales(path, header):
            judge_fact(name, value, _SCALE)
    except StrangeFactError as strange:
        raise refuse_lora(path, strange.field, strange.value) from strange
    except ValueError as fault:
        raise refuse_lora(path, SETTINGS, str(fault)) from fault


def _judge_words(words: dict[str, Any]) -> None:
    """Judge a header's metadata. Numbers are written as words there; some programs write "Dynamic" or "None" in their place."""
    for name in sorted(FACTS.keys() & words.keys()):
        try:
            number = float(words[name])
        except ValueError:
            continue
        if math.isnan(number):
            raise StrangeFactError(name, number)
        judge_fact(name, number, FACTS[name])
    settings = parse_json(words[SETTINGS].encode(), BOUNDS) if words.get(SETTINGS) else {}
    if not isinstance(settings, dict):
        raise StrangeFactError(SETTINGS, settings)
    for name, value in settings.items():
        field = name.rpartition(".")[2]  # behind the name of a pipeline's part
        inner = value if isinstance(value, dict) and field in FACTS else {field: value}
        for each in inner.values():
            judge({field: each}, FACTS)


def _read_scales(path: Path, header: safetensors.Header) -> Iterator[tuple[str, float]]:
    """Yield the single numbers by which layers are scaled."""
    named = [(name, entry) for name, entry in header.entries.items() if name.endswith(".alpha") and math.prod(entry.shape) == 1]
    if len(named) > SCALES_MOST:
        raise StrangeFactError("number of scales", len(named))
    with open_regular(path) as file:
        for name, entry in named:
            form = _FORMS.get(entry.dtype)
            file.seek(header.data_at + header.begins[name])
            if form is not None:
                yield name, struct.unpack(form, file.read(struct.calcsize(form)))[0]
            elif entry.dtype == "BF16":
                yield name, struct.unpack("<f", b"\0\0" + file.read(2))[0]


def refuse_lora(path: Path, field: str, value: Any) -> Trouble:
    """Make the Trouble that names a file, and what in it no LoRA has."""
    return Trouble(
        say(
            "lora.fact",
            "The LoRA {path} cannot be used: its {field} is {value}, which no LoRA has. Remove it, or download it again.",
            path=str(path),
            field=shorten(field),
            value=shorten(value),
        )
    )
