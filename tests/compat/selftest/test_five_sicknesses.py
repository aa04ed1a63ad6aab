"""The sicknesses that Hearth was built against: each with its own words or its spoiled result without the seam, and cured with it.

The fifth, FlashAttention 2 and AWQ below Ampere, is a matter of loading and is in test_from_pretrained.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention.seam import applied
from app.compat.machine.pretended import MACHINES, machine
from app.compat.planning.decide import decide
from app.compat.planning.types import AUTO, Choice, Chunk, Dtype, Need
from app.compat.selftest.failures import Aborted
from app.compat.selftest.simulate import biting
from tests.support.tiny_models import FAMILIES


def noise(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def exact(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Outside any pretended machine."""
    return F.scaled_dot_product_attention(query.double(), key.double(), value.double(), mask)


def off(found: Tensor, right: Tensor) -> float:
    """How far, relative to the largest; NaN is infinitely far."""
    worst = float((found.double() - right).abs().max() / right.abs().max())
    return worst if worst == worst else float("inf")


def test_dias_grouped_heads_kill_a_mac_with_an_old_torch() -> None:
    dia = FAMILIES["dia"]
    model = dia.build(torch.float32)
    with torch.no_grad():
        right = dia.run(model, torch.float32)
        with biting("m1-8gb"), pytest.raises(Aborted, match=r"incompatible dimensions\n.*Failed to infer result type"):
            dia.run(model, torch.float32)
        plan = decide(machine("m1-8gb"), Need(heads=4, kv_heads=1), Choice(dtype="float32"))
        with biting("m1-8gb") as bites, applied(plan) as seam:
            found = dia.run(model, torch.float32)
    assert off(found, right) < 1e-4
    assert seam.calls > 0 and not bites.escaped


@pytest.mark.parametrize("name", MACHINES)
def test_float32_queries_meet_float16_keys(name: str) -> None:
    query, key, value = noise(2, 4, 32, 64), noise(2, 4, 48, 64, seed=1).half(), noise(2, 4, 48, 64, seed=2).half()
    right = exact(query, key, value)
    says = "Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: c10::Half"
    with biting(name), pytest.raises(RuntimeError, match=says):
        F.scaled_dot_product_attention(query, key, value)
    dtype: Dtype = "float32" if name == "gtx-1660" else "float16"
    if dtype == "float32":  # the one card whose float16 is not to be trusted: all of the model is float32 there
        key, value = key.float(), value.float()
    with biting(name) as bites, applied(decide(machine(name), Need(), Choice(dtype=dtype))):
        found = F.scaled_dot_product_attention(query, key, value)
    assert found.dtype == value.dtype
    assert off(found, right) < 5e-3
    assert not bites.rows


def test_a_large_attention_with_one_mask_for_all_heads_kills_a_mac() -> None:
    query, key, value = noise(1, 2, 4096, 40), noise(1, 2, 2048, 40, seed=1), noise(1, 2, 2048, 40, seed=2)
    mask = torch.rand(1, 1, 4096, 2048, generator=torch.Generator().manual_seed(3)) > 0.3
    right = exact(query, key, value, mask)
    with biting("m1-8gb"), pytest.raises(Aborted, match="Placeholder shape mismatches"):
        F.scaled_dot_product_attention(query, key, value, mask)
    plan = decide(machine("m1-8gb"), Need(heads=2, kv_heads=2, head_dim=40), Choice(dtype="float32"))
    chunks: tuple[Chunk, ...] = (AUTO, 500)
    for chunk in chunks:
        with biting("m1-8gb") as bites, applied(replace(plan, chunk_q=chunk)):
            found = F.scaled_dot_product_attention(query, key, value, mask)
        assert off(found, right) < 1e-4
        assert not bites.rows


@pytest.mark.parametrize(("name", "dtype"), [("rtx-3060", "float16"), ("rtx-3060", "float32"), ("t4", "float16"), ("gtx-1660", "float32")])
def test_views_of_one_interleaved_tensor_are_misread(name: str, dtype: Dtype) -> None:
    """As a fused projection leaves them, with something between the queries and the keys."""
    heads = noise(2, 64, 14, 64, dtype=getattr(torch, dtype)).transpose(1, 2)
    query, key, value = heads[:, :4], heads[:, 6:10], heads[:, 10:]
    right = exact(query, key, value)
    with biting(name):
        spoiled = F.scaled_dot_product_attention(query, key, value)
    assert off(spoiled, right) > 0.2, "silently wrong"
    with biting(name) as bites, applied(decide(machine(name), Need(heads=4, kv_heads=4), Choice(dtype=dtype))):
        found = F.scaled_dot_product_attention(query, key, value)
    assert off(found, right) < (1e-4 if dtype == "float32" else 5e-3)
    assert not bites.rows


def test_few_interleaved_queries_are_misread_by_metal() -> None:
    heads = noise(2, 4, 12, 64).transpose(1, 2)
    query, key, value = heads[:, :4], heads[:, 4:8], heads[:, 8:]
    right = exact(query, key, value)
    with biting("m2-16gb"):
        assert off(F.scaled_dot_product_attention(query, key, value), right) > 0.2
    with biting("m2-16gb") as bites, applied(decide(machine("m2-16gb"), Need(), Choice(dtype="float32"))):
        assert off(F.scaled_dot_product_attention(query, key, value), right) < 1e-4
    assert not bites.rows
