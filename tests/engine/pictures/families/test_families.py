"""Run every family on every pretended machine: with the seam it equals the plain library, without it at least one fails."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from app.compat.attention.seam import applied
from app.compat.machine.pretended import MACHINES, machine
from app.compat.planning.decide import decide
from app.compat.planning.types import ModelPart, Need, Plan
from app.compat.selftest.failures import DeviceLimits
from app.compat.selftest.simulate import Bites, biting
from tests.support.combinations import combine
from tests.support.tiny_models import FAMILIES, Family

pytestmark = pytest.mark.long

TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}
"""A family may be off by so much of the largest number of the plain library's result in float32, with weights rounded alike."""

SICK = [name for name in MACHINES if name != "cpu"]
ALIKE = ("m1-8gb-browser", "m1-8gb-full", "m2-16gb", "gtx-1060", "t4")
"""Each of these goes wrong as another one does."""


def limits(name: str) -> DeviceLimits:
    """Lower the limits to these models' sizes; on a card any full score matrix is too large."""
    small = DeviceLimits(decode_keys=16, softmax_keys=16, broadcast_elements=512)
    return replace(small, buffer_bytes=64) if machine(name).kind == "cuda" else small


def planned(name: str, family: Family) -> Plan:
    part = ModelPart("model", family.role, 1_000_000_000, family.half_is_safe)
    return decide(machine(name), Need(heads=4, kv_heads=1 if family.grouped else 4, parts=(part,)))


@cache
def plain(kind: str, dtype: torch.dtype) -> Tensor:
    model = FAMILIES[kind].build(dtype).to(torch.float32)
    with torch.no_grad():
        return FAMILIES[kind].run(model, torch.float32)


def error(result: Tensor, kind: str, dtype: torch.dtype) -> float:
    """Return the error; NaN counts as infinite."""
    right = plain(kind, dtype)
    assert result.shape == right.shape
    found = float((result.float() - right).abs().max() / right.abs().max())
    return found if found == found else float("inf")


def without_the_seam(name: str, kind: str, dtype: torch.dtype) -> tuple[float, Bites]:
    family = FAMILIES[kind]
    model = family.build(dtype)
    with biting(name, limits=limits(name)) as bites, torch.no_grad():
        try:
            result = family.run(model, dtype)
        except RuntimeError:
            return float("inf"), bites
    return error(result, kind, dtype), bites


@cache
def calls_without_the_seam(kind: str) -> int:
    _, bare = without_the_seam("cpu", kind, torch.float32)
    return bare.calls


@pytest.mark.parametrize(("name", "kind"), combine(MACHINES, FAMILIES))
def test_with_the_seam_it_is_right(name: str, kind: str) -> None:
    family, plan = FAMILIES[kind], planned(name, FAMILIES[kind])
    dtype = getattr(torch, plan.precision[0].compute)
    model = family.build(dtype)
    with biting(name, limits=limits(name)) as bites, applied(plan) as seam, torch.no_grad():
        result = family.run(model, dtype)
    assert error(result, kind, dtype) < TOLERANCE[dtype]
    assert set(bites.rows) <= {"masked-rows"}, "whose NaN the seam sets to zero afterwards"
    assert not bites.escaped
    assert seam.calls == calls_without_the_seam(kind) > 0


WRONG = {
    "m1-8gb": set(FAMILIES),
    "m2-16gb": set(FAMILIES),
    **{name: {"clip", "dia", "pixart", "z-image"} for name in ("m1-8gb-browser", "m1-8gb-full", "m3-max-64gb")},  # masks
    "gtx-1660": {"dia", "pixart", "sd15-unet", "sd3", "sdxl-unet", "vae"},  # convolutions
}
"""These models go wrong; on other cards only those with grouped heads do."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in ALIKE else []) for name in SICK])
def test_without_the_seam_something_goes_wrong(name: str) -> None:
    """Use float16, as on cards and Macs; on Ampere float32, where grouped heads with full scores fail."""
    dtype = torch.float32 if name == "rtx-3060" else torch.float16
    wrong = {kind for kind in FAMILIES if without_the_seam(name, kind, dtype)[0] > TOLERANCE[dtype]}
    assert wrong == WRONG.get(name, {"dia"})


def test_a_healthy_machine_needs_no_cure() -> None:
    for kind in FAMILIES:
        found, bites = without_the_seam("cpu", kind, torch.float32)
        assert found == 0
        assert not bites.rows
