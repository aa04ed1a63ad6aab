"""Ask a card with tensor cores whether convolutions of a UNet's widths are right channels last, and quicker than in torch's usual order."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from statistics import median
from typing import Any, Final

import torch
from torch import Tensor, nn

from app.compat.attention import measure
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.order_field import LAST, RIGHT, list_halves
from app.compat.planning.types import Dtype
from app.compat.selftest.operations import Measured
from app.compat.selftest.probes import Probe, as_planned
from app.compat.selftest.reference import error

SIZES: Final = ((320, 128), (640, 64), (1280, 32))
"""SDXL's widths at 1,024 pixels, each with the side of what it computes at. Two rows have as many products in each."""
ROWS: Final = 2
GROUPS: Final = 32
QUICKER: Final = 0.97
"""At most this share of the time counts as quicker."""
ROUNDS: Final = 7


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    if hardware.pretended:  # this processor's times say nothing of another machine
        return ()
    asked: list[Probe] = []
    for dtype in list_halves(hardware):
        asked.append(Probe(Subject.path(RIGHT, dtype), dtype, as_planned(hardware, partial(compare, dtype))))
        asked.append(Probe(Subject.quicker(LAST, dtype), dtype, as_planned(hardware, partial(time_beside_usual, dtype)), QUICKER))
    return tuple(asked)


Case = tuple[nn.Module, Tensor]


def make_cases() -> list[Case]:
    """Make the convolutions of a residual block of each width, with the norms between them, which cards compute in the usual order."""
    torch.manual_seed(0)
    return [(nn.Sequential(*_list_layers(width), *_list_layers(width)), torch.randn(ROWS, width, side, side)) for width, side in SIZES]


def _list_layers(width: int) -> tuple[nn.Module, ...]:
    return nn.GroupNorm(GROUPS, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1)


def put(cases: list[Case], device: str, dtype: Dtype, order: torch.memory_format) -> list[Case]:
    wanted = getattr(torch, dtype)
    return [
        (copy.deepcopy(block).to(device, wanted).to(memory_format=order), given.to(device, wanted, memory_format=order))  # type: ignore[call-overload]
        for block, given in cases
    ]


def run(cases: list[Case]) -> list[Tensor]:
    return [block(given) for block, given in cases]


def compare(dtype: Dtype, device: str) -> Measured:
    """Compare with float32 in the usual order, at the sizes that are timed: a library chooses its kernels by them."""
    made = make_cases()
    right = [each.cpu().numpy() for each in run(put(made, device, "float32", torch.contiguous_format))]
    last, began_s = put(made, device, dtype, torch.channels_last), time.perf_counter()
    worst = max(error(found, wanted) for found, wanted in zip(run(last), right, strict=True))
    return worst, time.perf_counter() - began_s


def time_beside_usual(dtype: Dtype, device: str) -> Measured:
    """Return the time of channels last as a share of the usual order's, in turn, and its seconds."""
    made = make_cases()
    orders = {"last": torch.channels_last, "usual": torch.contiguous_format}
    ways: dict[str, Callable[..., Any]] = {name: partial(run, put(made, device, dtype, order)) for name, order in orders.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for name, elapsed_s, _ in islice(measure.turns(ways, (), device, always=ways), len(ways) * ROUNDS):
        times[name].append(elapsed_s)
    return median(times["last"]) / median(times["usual"]), median(times["last"])
