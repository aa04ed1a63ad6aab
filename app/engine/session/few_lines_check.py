"""Ask a machine whether the ways of multiplying few lines that are not torch's are right here, and quicker than torch's own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from operator import truediv
from statistics import median
from typing import Final

import torch
from torch import Tensor

from app.compat.attention import measure
from app.compat.kernels.few_lines import BITS, KernelRefused, Multiply, candidates, choose_way, multiply
from app.compat.kernels.source import MOST_LINES
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.product_field import ALL, Weights, quicker_subject, right_subject
from app.compat.planning.quantisation_field import PACKED_KINDS
from app.compat.planning.quantisation_field import QUICKER as _QUICKER_WEIGHTS
from app.compat.planning.types import Dtype, Product
from app.compat.selftest.operations import Measured
from app.compat.selftest.probes import TOLERANCE, Probe, as_planned
from app.compat.selftest.reference import error
from app.engine.models.loading.packed_linears import FewLinesLinear, pack_linear, pair_up, round_to_4_bits, round_to_8_bits, scales_dtype
from app.engine.session.packed_weights_check import unpack

COLUMNS: Final = 2048
"""Dia's layers have this many columns."""
COMPARED: Final = ((1, 32), (3, 224), (16, 256), (77, 2048), (1028, 512), (50, 8192))
"""These weights are compared: rows that fill no group of threads, columns that fill no read of one, one of Dia's longest sums."""
TIMED: Final = ((2048, 2048, 1), (2048, 2048, 2), (16384, 2048, 2), (2048, 8192, 2))
"""These products of a layer are timed, by rows, columns and lines: one line hears the text, two with guidance everything else."""
QUICKER: Final = 0.9
"""At most this share of torch's time counts as quicker."""
ROUNDS: Final = 7


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    if hardware.pretended:  # this processor's times say nothing of another machine
        return ()
    asked: list[Probe] = []
    for dtype in ("float32", "float16", "bfloat16"):
        for weights in ALL:
            for way in candidates(hardware, dtype, weights, COLUMNS):
                looks = ((right_subject, compare, TOLERANCE[dtype]), (quicker_subject, time_beside_torch, QUICKER))
                for subject, look, most in looks:
                    asked.append(Probe(subject(way, weights, dtype), dtype, as_planned(hardware, partial(look, way, weights, dtype)), most))
        if hardware.kind not in PACKED_KINDS and candidates(hardware, dtype, "int8", COLUMNS):
            # Of what the time of the kernel above is a share; on other machines packed_weights_check.py asks it.
            packed = as_planned(hardware, partial(time_packed, dtype))
            asked.append(Probe(Subject.quicker("int8", dtype), dtype, packed, _QUICKER_WEIGHTS))
    return tuple(asked)


def hold(weight: Tensor, weights: Weights, device: str, lines: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Return a weight as a voice holds it there, and its scales."""
    halves = scales_dtype(device, lines)
    if weights == "half":
        return weight.to(device, halves), None
    numbers, scales = round_to_8_bits(weight, halves) if weights == "int8" else round_to_4_bits(weight, halves)
    return (numbers if weights == "int8" else pair_up(numbers)).to(device), scales.to(device)


def mean(weight: Tensor, weights: Weights, halves: torch.dtype) -> Tensor:
    """Return in float64 what is held."""
    return weight.to(halves).double() if weights == "half" else unpack(weights, weight, halves).double()


def compare(way: Product, weights: Weights, dtype: Dtype, device: str) -> Measured:
    """Compare with float64 on the processor: every number of lines, parts of larger tensors, lines that do not lie together."""
    made, lines_dtype = torch.Generator().manual_seed(0), getattr(torch, dtype)
    by = _insist(way, weights)
    worst, began_s = 0.0, time.perf_counter()
    for rows, columns in COMPARED:
        weight = torch.randn(rows + 8, columns, generator=made) / 8
        right = mean(weight, weights, scales_dtype(device, lines_dtype)).numpy()
        held, scales = hold(weight, weights, device, lines_dtype)
        if weights == "half":  # a part of a larger matrix
            held, right = held[8:], right[8:]
        for count in range(1, MOST_LINES + 1):
            given = torch.randn(count, 2, columns, generator=made).to(lines_dtype)
            there = given.to(device)
            for lines, its in ((there[:, 0], given[:, 0]), (there[:, 1:], given[:, 1:])):  # apart, and in three dimensions
                found = by(lines, held, scales)
                if found is None:
                    continue
                if found.shape != (*its.shape[:-1], len(held)):
                    return torch.inf, time.perf_counter() - began_s
                worst = max(worst, error(found, its.double().numpy() @ right.T))
    return worst, time.perf_counter() - began_s


def _insist(way: Product, weights: Weights) -> Multiply:
    """Return a way that raises in place of leaving its work to torch."""

    def launch(*given: Tensor | None) -> Tensor:
        made = multiply(BITS[weights], *given)  # type: ignore[arg-type]
        if made is None:
            raise KernelRefused("the kernel does not take this")
        return made

    return launch if way == "kernel" else choose_way(way, weights)


def time_beside_torch(way: Product, weights: Weights, dtype: Dtype, device: str) -> Measured:
    """Return the time of a layer's products as a share of torch's own, in turn, and its seconds."""
    compute = getattr(torch, dtype)
    _insist(way, weights)(torch.ones(1, 32, dtype=compute, device=device), *hold(torch.ones(1, 32), weights, device, compute))
    return _time(_make_layers(way, weights, compute, device), _make_layers("torch", weights, compute, device), compute, device)


def time_packed(dtype: Dtype, device: str) -> Measured:
    """Return the time that torch takes for weights in 8 bits as a share of that for halves."""
    compute = getattr(torch, dtype)
    return _time(_make_layers("torch", "int8", compute, device), _make_layers("torch", "half", compute, device), compute, device)


def _make_layers(product: Product, weights: Weights, compute: torch.dtype, device: str) -> list[torch.nn.Module]:
    made = torch.Generator().manual_seed(0)
    drawn = (torch.randn(rows, columns, generator=made) / 50 for rows, columns, _ in TIMED)
    if weights == "half":
        return [FewLinesLinear(each.to(device, scales_dtype(device, compute)), product) for each in drawn]
    return [pack_linear(each, 8 if weights == "int8" else 4, device, compute, product) for each in drawn]


def _time(own: list[torch.nn.Module], torchs: list[torch.nn.Module], compute: torch.dtype, device: str) -> Measured:
    lines = [torch.ones(count, columns, dtype=compute, device=device) for _, columns, count in TIMED]
    ways: dict[str, Callable[..., Tensor]] = {"own": partial(_run, own), "torch": partial(_run, torchs)}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for name, elapsed_s, _ in itertools.islice(measure.turns(ways, lines, device, always=ways), len(ways) * ROUNDS):
        times[name].append(elapsed_s)
    return median(map(truediv, times["own"], times["torch"])), median(times["own"])


def _run(layers: list[torch.nn.Module], *lines: Tensor) -> Tensor:
    made: Tensor = [layer(each) for layer, each in zip(layers, lines, strict=True)][-1]
    return made
