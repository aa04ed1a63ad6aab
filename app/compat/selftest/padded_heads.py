"""Ask a Mac whether heads padded for its prefill kernel are right, and quicker than its graph of products over heads as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from statistics import median
from typing import Final

import torch

from app.compat.attention import measure
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.heads_field import PADDED, RIGHT
from app.compat.planning.metal import metal_paths
from app.compat.planning.quickest_way import Shape
from app.compat.planning.types import Choice, Dtype, Need, Plan
from app.compat.selftest.operations import Measured
from app.compat.selftest.probes import Probe, through
from app.compat.selftest.reference import BLIND_HEADS, SD15, SD15_LARGE

DTYPES: Final[tuple[Dtype, ...]] = ("float16", "bfloat16", "float32")
TIMED: Final = (Shape(2, 2, 2, 4096, 4096, 40, False, False, ""), Shape(2, 2, 2, 1024, 1024, 160, False, False, ""))
"""They are SD 1.5's longest attention at 512 pixels, and its deepest at 1024, with two heads of eight."""
QUICKER: Final = 0.95
"""At most this share of the time counts as quicker."""
ROUNDS: Final = 7


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    if hardware.pretended or "prefill" not in metal_paths(hardware):  # this processor's times say nothing of another machine
        return ()
    asked: list[Probe] = []
    for dtype in DTYPES:
        asked.append(Probe(Subject.path(RIGHT, dtype), dtype, compare(hardware, dtype)))
        asked.append(Probe(Subject.quicker(PADDED, dtype), dtype, partial(time_beside_graph, hardware, dtype), QUICKER))
    return tuple(asked)


def plan_heads(hardware: Hardware, dtype: Dtype, pads: bool) -> Plan:
    """Return SD 1.5's plan for this Mac with padded heads, as if they had been seen to be quicker, or without."""
    seen = {each: Verdict(each, True) for each in (Subject.path(RIGHT, dtype), Subject.quicker(PADDED, dtype)) if pads}
    shape = TIMED[0]
    need = Need("", "picture", shape.batch, 8, 8, shape.head_dim, shape.queries, shape.keys, masked=False, causal=False)
    return decide(hardware, need, Choice(dtype=dtype), seen)


def compare(hardware: Hardware, dtype: Dtype) -> Callable[[str], Measured]:
    return through(plan_heads(hardware, dtype, True), dtype, (SD15, SD15_LARGE, BLIND_HEADS))


def time_beside_graph(hardware: Hardware, dtype: Dtype, device: str) -> Measured:
    """Return the time of both attentions with padded heads as a share of that without, in turn, and its seconds."""
    times: dict[str, list[float]] = {"padded": [], "plain": []}
    for shape in (each._replace(dtype=dtype) for each in TIMED):
        ways = {name: measure.composed(plan_heads(hardware, dtype, name == "padded"), shape) for name in times}
        found: dict[str, list[float]] = {name: [] for name in times}
        with torch.inference_mode():
            for name, elapsed_s, _ in islice(measure.turns(ways, measure.made(shape, device), device, always=ways), len(ways) * ROUNDS):
                found[name].append(elapsed_s)
        for name, each in found.items():
            times[name].append(median(each))
    return sum(times["padded"]) / sum(times["plain"]), sum(times["padded"])
