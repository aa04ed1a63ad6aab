"""When a pretended machine fails: at the very sizes, dtypes and layouts at which the real ones do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from app.compat.machine.pretended import MACHINES
from app.compat.selftest.failures import ATTENTION, DeviceCall, DeviceFacts, DeviceLimits, kernel

MAC, MAC_2_8, MAC_2_13, T4, RTX = (DeviceFacts(MACHINES[name]) for name in ("m1-8gb", "m2-16gb", "m3-max-64gb", "t4", "rtx-3060"))
WHEN = {each.row: each.when for each in ATTENTION}
HALF, BRAIN, FULL = torch.float16, torch.bfloat16, torch.float32


def call(
    queries: int = 8,
    keys: int = 8,
    dim: int = 64,
    dtype: torch.dtype = HALF,
    batch: int = 1,
    heads: int = 2,
    few: int = 2,
    strided: bool = False,
    mask: tuple[int, ...] | None = None,
    gqa: bool = False,
) -> DeviceCall:
    query, key = torch.zeros(batch, heads, queries, dim, dtype=dtype), torch.zeros(batch, few, keys, dim, dtype=dtype)
    query = query.transpose(1, 2).contiguous().transpose(1, 2) if strided else query
    return DeviceCall(query, key, key, None if mask is None else torch.zeros(mask), gqa=gqa)


@pytest.mark.parametrize(
    ("row", "facts", "fails", "works"),
    [
        ("mps-decode-oob", MAC_2_8, [{"keys": 1024}], [{"keys": 1023}, {"keys": 1024, "queries": 9}, {"keys": 1024, "dtype": FULL}]),
        ("mps-batch-stride", MAC_2_8, [{"batch": 2, "strided": True}],
         [{"batch": 2}, {"strided": True}, {"batch": 2, "strided": True, "queries": 9}]),
        ("mps-vector-mask", MAC_2_8, [{"batch": 2, "mask": (2, 1, 8, 8)}],
         [{"batch": 2, "mask": (2, 2, 8, 8)}, {"batch": 2, "mask": (1, 1, 8, 8)}, {"batch": 2, "queries": 9, "mask": (2, 1, 9, 8)}]),
        ("mps-q-stride", MAC_2_8, [{"strided": True}, {"strided": True, "dim": 96}], [{}, {"strided": True, "dim": 80}, {"strided": True, "queries": 9}]),
        ("mps-fp16-black", MAC, [{"queries": 9}], [{"queries": 8}, {"queries": 9, "dtype": FULL}, {"queries": 9, "dtype": BRAIN}]),
        ("mps-half-softmax", MAC_2_13, [{"queries": 9, "keys": 3069, "dim": 40, "dtype": BRAIN}],
         [{"queries": 9, "keys": 3068, "dim": 40, "dtype": BRAIN}, *({"queries": 9, "keys": 3069, "dim": 40, "dtype": each} for each in (FULL, HALF))]),
        ("mps-half-softmax", MAC_2_8, [{"queries": 9, "keys": 3069, "dtype": each} for each in (BRAIN, HALF)],
         [{"queries": 9, "keys": 3069, "dtype": FULL}]),
        ("mps-fp64", MAC, [{"dtype": torch.float64}], [{"dtype": FULL}]),
        ("mps-gqa-abort", MAC, [{"heads": 4, "gqa": True}], [{"heads": 4}, {"batch": 4, "gqa": True}]),
        ("bias-overflow", replace(T4, limits=DeviceLimits(bias_pairs=100)), [{"queries": 11, "keys": 10, "mask": (11, 10)}],
         [{"queries": 10, "keys": 10, "mask": (10, 10)}, {"queries": 11, "keys": 10}]),
        ("mps-4gib", replace(MAC, limits=DeviceLimits(ndarray_bytes=2 * 90 * 10 * 2)), [{"queries": 91, "keys": 10}], [{"queries": 90, "keys": 10}]),
    ],
)  # fmt: skip
def test_a_defect_shows_where_it_was_reported(
    row: str, facts: DeviceFacts, fails: list[dict[str, Any]], works: list[dict[str, Any]]
) -> None:
    assert [bool(WHEN[row](call(**each), facts)) for each in (*fails, *works)] == [True] * len(fails) + [False] * len(works)


def test_metal_has_a_kernel_of_its_own_for_some_widths() -> None:
    """Since 2.8 for up to 8 queries, since 2.13 for more too; all else goes through a graph."""
    found = {
        (torch_version, queries): [
            dim
            for dim in range(8, 300)
            if kernel(call(queries, 8, dim), DeviceFacts(replace(MAC.hardware, torch=torch_version))) != "graph"
        ]
        for torch_version, queries in (("2.7.1", 8), ("2.8.0", 8), ("2.8.0", 9), ("2.13.0", 8), ("2.13.0", 9), ("2.14.0", 9))
    }
    few, many = [64, 96, 128], [32, 64, 72, 80, 96, 128, 256]
    assert list(found.values()) == [[], few, [], [*few, 256], many, many]


def test_cudnn_takes_halves_from_ampere_on() -> None:
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
        found = [kernel(call(dtype=dtype, gqa=gqa), facts) for facts in (T4, RTX) for dtype in (HALF, FULL) for gqa in (False, True)]
    assert found == ["", "", "", "", "cudnn", "", "", ""]


@pytest.mark.parametrize(
    ("mask", "broadcast"), [(None, False), ((3, 5), True), ((1, 1, 3, 5), True), ((2, 4, 3, 5), False), ((2, 1, 3, 5), True)]
)
def test_a_mask_is_broadcast_unless_every_score_has_its_own(mask: tuple[int, ...] | None, broadcast: bool) -> None:
    asked = call(3, 5, batch=2, heads=4, mask=mask)
    assert asked.broadcast_mask is broadcast
    assert (asked.elements, asked.score_bytes) == (2 * 4 * 3 * 5, 2 * 4 * 3 * 5 * 2)
