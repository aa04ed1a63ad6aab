"""Ask a card whether a captured graph makes the rows that single calls make, and whether it makes them sooner."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from statistics import median
from typing import Any, Final

import torch
import transformers
from torch import Tensor

from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.decide import decide
from app.compat.planning.precision_fields import list_dtypes
from app.compat.planning.types import Dtype, Plan
from app.compat.selftest.operations import Measured
from app.compat.selftest.probes import Probe, as_planned
from app.compat.selftest.reference import error
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.speech.families.dia.decoder_layers import DecoderLayers
from app.engine.speech.families.dia.row_graph import BUCKET, GraphedRows

LAYERS: Final = 2
"""So many of Dia's 18 layers are tried, at their full width: what a graph spares is spared in each."""
BEFORE: Final = BUCKET - 3
"""So many rows come first, so that the third of those compared is the last of its graph."""
COMPARED: Final = 8
WITHIN: Final[dict[Dtype, float]] = {"float32": 1e-3, "float16": 5e-2, "bfloat16": 2e-1}
"""On a processor a right graph is off by 2e-5 in float32, and one that always writes the same row by about 1."""
TIMED: Final = 24
QUICKER: Final = 0.9
"""At most this share of the plain time counts as quicker: a graph also has to be captured."""


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    if hardware.pretended or hardware.kind != "cuda":
        return ()
    # As planned: what is wrong with its attention is asked elsewhere, and would be alike in both ways.
    plan, make = decide(hardware, describe_need(BY_ID["dia-1.6b"])), cache(make_voice)
    asked = []
    for dtype in list_dtypes(hardware):
        for subject, look, most in (
            (Subject.path("row/graph", dtype), compare, WITHIN[dtype]),
            (Subject.quicker("graph", dtype), time_beside_calls, QUICKER),
        ):
            asked.append(Probe(subject, dtype, as_planned(hardware, partial(_ask, look, make, plan, dtype)), most))
    return tuple(asked)


def make_voice(device: str, dtype: torch.dtype) -> Any:
    """Make a short Dia whose layers answer with numbers as large as they are given."""
    config: Any = transformers.DiaConfig()
    kind: Any = transformers.DiaForConditionalGeneration
    config.encoder_config.num_hidden_layers = config.decoder_config.num_hidden_layers = LAYERS
    with torch.device(device):
        voice = kind(config).to(dtype).eval().requires_grad_(False)
    made = torch.Generator(device).manual_seed(0)
    for weight in voice.parameters():
        if weight.ndim > 1:
            weight.normal_(0, weight[0].numel() ** -0.5, generator=made)
    return voice


Ways = dict[str, Callable[[Tensor], Tensor]]


def _ask(look: Callable[[Ways, Tensor], Measured], make: Callable[..., Any], plan: Plan, dtype: Dtype, device: str) -> Measured:
    voice = make(device, getattr(torch, dtype))
    config, made = voice.config.decoder_config, torch.Generator().manual_seed(0)
    codes = torch.randint(0, config.eos_token_id, (BEFORE + COMPARED + TIMED, config.num_channels), generator=made)
    text = torch.randint(32, 120, (200,), generator=made)
    with applied(replace(plan, dtype=dtype)):
        calls, behind = (DecoderLayers(voice, device, text, True, 2 * BUCKET) for _ in range(2))
        for layers in (calls, behind):
            layers(codes[:BEFORE].to(device))
        ways: Ways = {"graph": GraphedRows(behind, config.num_channels, device), "calls": lambda row: calls(row.to(device))}
        return look(ways, codes[BEFORE:])


def compare(ways: Ways, codes: Tensor) -> Measured:
    began_s, worst = time.perf_counter(), 0.0
    for row in torch.split(codes[:COMPARED], 1):
        right = ways["calls"](row).double().cpu().numpy()
        worst = max(worst, error(ways["graph"](row), right))
    return worst, time.perf_counter() - began_s


def time_beside_calls(ways: Ways, codes: Tensor) -> Measured:
    """Return the time of a replay as a share of single calls', in turn, and its seconds. The rows of `compare` warm both up."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for row in torch.split(codes, 1):
        for name, way in ways.items():
            began_s = time.perf_counter()
            way(row).cpu()  # waits for the device
            took[name].append(time.perf_counter() - began_s)
    middle = {name: median(times[COMPARED:]) for name, times in took.items()}
    return middle["graph"] / middle["calls"], middle["graph"]
