"""Ask a machine whether torch's kernels for packed weights are right here, and whether they multiply a row of speech sooner than plain ones."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from operator import truediv
from statistics import median
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention import measure
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.precision_fields import list_dtypes
from app.compat.planning.quantisation_field import PACKED, PACKED_KINDS, QUICKER
from app.compat.planning.types import Dtype, Quantised
from app.compat.selftest.operations import Measured
from app.compat.selftest.probes import TOLERANCE, Probe
from app.compat.selftest.reference import error
from app.engine.models.loading.packed_linears import BITS, GROUP, lines_dtype, pack_linear, round_to_4_bits, round_to_8_bits
from app.engine.session.loaded_models import THREADS

LINES: Final = (2, 80)
"""A row of speech with guidance has the first number of lines, and a prompt the second."""
COMPARED: Final = ((128, 160), (256, 8192))
"""These weights are compared: a small one whose sides differ, and one of Dia's longest sums; with more of them, float64 would take much memory."""
ROUNDS: Final = 7
SHAPE: Final = (8192, 2048)
"""One of Dia's larger layers has this shape."""


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    if hardware.pretended or hardware.kind not in PACKED_KINDS:  # this processor's kernels and times say nothing of another machine
        return ()
    dtypes = list_dtypes(hardware)
    if hardware.kind == "cpu":
        dtypes = ("bfloat16", "float32") if hardware.fast_bf16 else ("float32",)
    kinds = [(kind, dtype) for dtype in dtypes for kind in PACKED]
    return (
        *(
            Probe(Subject.path(f"quantised/{kind}", dtype), dtype, partial(compare, kind, dtype), _tolerance(hardware, dtype))
            for kind, dtype in kinds
        ),
        # 4 bits are taken for want of memory, not for speed.
        *(Probe(Subject.quicker("int8", dtype), dtype, partial(time_beside_plain, "int8", dtype), QUICKER) for dtype in dtypes),
    )


def _tolerance(hardware: Hardware, dtype: Dtype) -> float:
    return TOLERANCE["bfloat16" if hardware.kind == "cpu" else dtype]


def compare(kind: Quantised, dtype: Dtype, device: str) -> Measured:
    """Compare with the weights that the packed numbers stand for, in float64."""
    made, compute = torch.Generator().manual_seed(0), getattr(torch, dtype)
    stored = lines_dtype(device, compute)
    worst, began_s = 0.0, time.perf_counter()
    for shape in COMPARED:
        weight = torch.randn(shape, generator=made)
        right = unpack(kind, weight, stored).numpy()
        packed = pack_linear(weight, BITS[kind], device, compute)
        for count in LINES:
            lines = torch.randn(count, shape[1], generator=made).to(stored)
            worst = max(worst, error(packed(lines.to(device, compute)), lines.double().numpy() @ right.T))
    return worst, time.perf_counter() - began_s


def unpack(kind: Quantised, weight: Tensor, stored: torch.dtype) -> Tensor:
    """Return the weight as it is after rounding."""
    if BITS[kind] == 8:
        numbers, scales = round_to_8_bits(weight, stored)
        return numbers * scales.double()[:, None]
    numbers, scales = round_to_4_bits(weight, stored)
    step, eight = scales.double().transpose(0, 1).repeat_interleave(GROUP, 1).unbind(-1)
    return (numbers - 8) * step + eight


def time_beside_plain(kind: Quantised, dtype: Dtype, device: str) -> Measured:
    """Return the time of packed weights as a share of plain ones', in turn and in all threads, and the seconds of one product."""
    compute, threads = getattr(torch, dtype), torch.get_num_threads()
    weight = torch.randn(SHAPE, generator=torch.Generator().manual_seed(0)) / 50
    plain = weight.to(device, compute)
    lines = torch.ones(LINES[0], SHAPE[1], dtype=compute, device=device)
    ways: dict[str, Callable[..., Tensor]] = {
        "packed": pack_linear(weight, BITS[kind], device, compute),
        "plain": partial(F.linear, weight=plain),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    torch.set_num_threads(THREADS)  # a small model's speech left fewer
    try:
        for name, elapsed_s, _ in itertools.islice(measure.turns(ways, (lines,), device, always=ways), len(ways) * ROUNDS):
            times[name].append(elapsed_s)
    finally:
        torch.set_num_threads(threads)
    return median(map(truediv, times["packed"], times["plain"])), median(times["packed"])
