"""Heads padded for Metal's prefill kernel: decided from what was seen, exact, less memory in the forecast, and taken back after a failed run."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention import tile_size
from app.compat.attention.seam import applied
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import next_fallback
from app.compat.planning.heads_field import PADDED, RIGHT
from app.compat.planning.memory_formulas import peak_bytes
from app.compat.planning.metal import PREFILL_DIMS, metal_path, padded_dim
from app.compat.planning.types import Choice, Dtype, Plan
from app.compat.selftest.simulate import biting
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.models.picture_families import list_calls
from tests.compat.planning.test_metal import count_chunks

M1, M3 = replace(MACHINES["m1-8gb"], torch="2.13.0"), MACHINES["m3-max-64gb"]
SD15, SDXL, DIA = (describe_need(BY_ID[name]) for name in ("sd15", "sdxl", "dia-1.6b"))
Seen = dict[Subject, Verdict]


def see(dtype: Dtype = "float16", share: float = 0.6, right: bool = True) -> Seen:
    found = (Verdict(Subject.path(RIGHT, dtype), right, 1e-4), Verdict(Subject.quicker(PADDED, dtype), share <= 0.95, share))
    return {each.subject: each for each in found}


def told(plan: Plan, option: str = "yes") -> list[str]:
    return [each.sentence.key for gone in plan.rejected if (gone.field, gone.option) == ("pad_heads", option) for each in gone.objections]


def test_heads_are_padded_once_that_was_seen_to_be_right_and_quicker() -> None:
    plan = decide(M3, SD15, verdicts=see())
    why = next(each.sentence for each in plan.because if each.field == "pad_heads")
    assert (
        plan.pad_heads
        and plan.path == "prefill"
        and why.key == "pad_heads.yes"
        and "40" in str(why)
        and "64" in str(why)
        and "60%" in str(why)
    )
    for seen, said in (
        ({}, ["pad_heads.unseen"]),
        (dict(list(see().items())[:1]), ["pad_heads.unseen"]),
        (see("bfloat16"), ["pad_heads.unseen"]),
        (see(share=0.97), ["pad_heads.slower"]),
        (see(right=False), ["plan.failed"]),
    ):
        kept = decide(M3, SD15, verdicts=seen)
        assert not kept.pad_heads and kept.path == "graph" and told(kept) == said


@pytest.mark.parametrize(
    ("machine", "model"), [("m3-max-64gb", "sdxl"), ("m3-max-64gb", "dia-1.6b"), ("m2-16gb", "sd15"), ("rtx-3060", "sd15"), ("cpu", "sd15")]
)
def test_elsewhere_there_is_nothing_to_decide(machine: str, model: str) -> None:
    """Heads that the kernel takes as they are; a torch without it; other devices."""
    plan = decide(MACHINES[machine], describe_need(BY_ID[model]), verdicts=see())
    assert not plan.pad_heads and told(plan) == []
    assert next(each.sentence.key for each in plan.because if each.field == "pad_heads") == "pad_heads.no"


def test_a_kernel_that_is_wrong_pads_nothing() -> None:
    wrong = Verdict(Subject.path("kernels/math", "float16", "prefill"), passed=False, error=0.5)
    assert told(decide(M3, SD15, verdicts=see() | {wrong.subject: wrong})) == ["pad_heads.no-kernel"]
    assert told(decide(M3, SD15, Choice(kernels=()), see())) == ["pad_heads.no-kernel"]


def test_the_forecast_knows_that_no_scores_are_stored() -> None:
    before, after = (decide(M1, SD15, verdicts=seen) for seen in ({}, see()))
    assert peak_bytes(SD15, after) <= peak_bytes(SD15, before)
    assert {each.path for each in (after, *after.others)} == {"prefill", "vector", "graph"}
    why = [next(each.sentence.key for each in plan.because if each.field == "chunk_q") for plan in (before, after)]
    assert why == ["chunk_q.automatic", "chunk_q.streams"]


@pytest.mark.parametrize(("mac", "before"), [("m1-8gb-full", 128), ("m1-8gb-browser", 32), ("m3-max-64gb", 2)])
def test_the_longest_attention_is_one_piece(mac: str, before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SD 1.5 at 512 pixels: what a Mac with a browser open took in pieces of a few heads and queries."""
    hardware = MACHINES[mac]
    monkeypatch.setattr(tile_size, "ask_free", lambda device: hardware.free_bytes)
    longest = next(call for call in list_calls("sd15", 512, 512) if call.head_dim == 40)
    assert [count_chunks(decide(hardware, SD15, verdicts=seen), longest) for seen in ({}, see())] == [before, 1]


def test_a_failed_run_takes_it_back() -> None:
    lesson = next_fallback(lambda seen: decide(M3, SD15, verdicts=seen), SD15, see(), RunFailure("numbers", 3, "float16"))
    assert lesson is not None and lesson[0].fallback.id == "heads-as-they-are" and not lesson[2].pad_heads
    none = next_fallback(lambda seen: decide(M3, SD15, verdicts=seen), SD15, {}, RunFailure("numbers", 3, "float16"))
    assert none is not None and none[0].fallback.id != "heads-as-they-are"


@pytest.mark.parametrize(
    ("size", "padded"), [(1, 32), (40, 64), (64, 64), (65, 72), (80, 80), (160, 256), (256, 256), (257, 257), (512, 512)]
)
def test_sizes_grow_to_the_next_that_the_kernel_has(size: int, padded: int) -> None:
    assert padded_dim(size) == padded
    assert metal_path(("prefill", "graph"), 1024, 1024, size, size, True) == ("prefill" if padded in PREFILL_DIMS else "graph")


@pytest.mark.parametrize(
    ("queries", "keys", "path"), [(1024, 1024, "prefill"), (1024, 1023, "graph"), (4096, 77, "graph"), (8, 1 << 20, "graph")]
)
def test_short_calls_stay_as_they_are(queries: int, keys: int, path: str) -> None:
    assert metal_path(("prefill", "graph"), queries, keys, 40, 40, True) == path
    assert metal_path(("prefill", "graph"), queries, keys, 40, 41, True) == "graph", "values of another size than keys"


def ask(
    plan: Plan, dim: int, causal: bool = False, masked: bool = False, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, dict[str, int]]:
    """Attention over 1,100 tokens on a pretended Mac, as it should be, and the kernels that the Mac took."""
    made = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 1100, 2, dim, generator=made).transpose(1, 2).to(dtype) for _ in range(3))
    mask = torch.rand(1, 1, 1100, 1100, generator=made) > 0.5 if masked else None
    right = F.scaled_dot_product_attention(query.double(), key.double(), value.double(), mask, is_causal=causal)
    with torch.inference_mode(), biting(M3) as bites, applied(plan):
        found = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal)
    assert not bites.rows and found.dtype == dtype
    return found.double(), right, dict(bites.kernels)


@pytest.mark.parametrize(
    ("dim", "causal", "masked"), [(40, False, False), (40, True, False), (40, False, True), (160, False, False), (48, False, True)]
)
def test_padded_heads_reach_the_kernel_and_change_no_result(dim: int, causal: bool, masked: bool) -> None:
    plan = decide(M3, SD15, Choice(dtype="float32"), see("float32"))
    found, right, kernels = ask(plan, dim, causal, masked)
    assert kernels == {"prefill": 1}
    torch.testing.assert_close(found, right, rtol=0, atol=2e-6)
    found, _, kernels = ask(decide(M3, SD15, Choice(dtype="float32")), dim, causal, masked)
    assert set(kernels) == {"graph"}
    torch.testing.assert_close(found, right, rtol=0, atol=2e-6)


def test_in_half_precision_they_are_as_near() -> None:
    found, right, kernels = ask(decide(M3, SD15, verdicts=see()), 40, dtype=torch.float16)
    assert kernels == {"prefill": 1} and float((found - right).abs().max() / right.abs().max()) < 5e-3
