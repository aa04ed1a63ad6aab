"""Compare attention on a card with float64, using only an old card's kernels, and check that no other kernel runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from app.compat.attention.compose import compose
from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.selftest.run import run
from tests.compat.attention.test_attention import LAYOUTS, TORCH, contiguous, failures, fused_by_head, fused_by_tensor, grid, off, reference
from tests.support.plans import plan

pytestmark = pytest.mark.card
WAYS: dict[str, dict[str, Any]] = {
    "efficient and math": {"kernels": ("efficient", "math")},
    "math alone": {"kernels": ("math",)},
    "own arithmetic": {"kernels": ()},
    "native groups": {"kernels": ("efficient", "math"), "gqa": "native"},
    "expanded groups": {"kernels": ("efficient", "math"), "gqa": "expanded"},
    "scores in float32": {"kernels": ("efficient", "math"), "score_dtype": "float32"},
    "keys in pieces": {"kernels": ("efficient", "math"), "chunk_k": 4},
    "all that this card has": {"kernels": ("flash", "efficient", "cudnn", "math")},
}
DTYPES = (torch.float32, torch.float16)


@pytest.fixture(autouse=True)
def on_the_card() -> Iterator[None]:
    torch.set_default_device("cuda")
    yield
    torch.set_default_device(None)


@pytest.mark.parametrize("way", WAYS)
def test_equals_the_reference_on_the_card(way: str) -> None:
    ways = {way: {"device": "cuda", **WAYS[way]}}
    seen, wrong = 0, list[Any]()
    for lengths, groups, lays in ((((1, 9), (13, 6), (40, 70)), (1, 4), (contiguous,)), (((10, 23),), (2,), LAYOUTS)):
        count, failed = failures(grid(ways, DTYPES, lengths, groups, (None, 7), lays))
        seen, wrong = seen + count, wrong + failed
    print(f"{way}: {seen} cases, {len(wrong)} wrong")
    assert seen >= 600 and not wrong, wrong[:8]


@pytest.mark.parametrize("fuse", [fused_by_tensor, fused_by_head])
@pytest.mark.parametrize("way", WAYS)
def test_views_of_one_fused_tensor_on_the_card(way: str, fuse: Any) -> None:
    for dtype, within in ((torch.float32, 1e-5), (torch.float16, 6e-3)):
        query, key, value = views(fuse, dtype)
        attend = compose(plan(device="cuda", **WAYS[way]), TORCH)
        assert off(attend(query, key, value), reference(query, key, value)) < within


def views(fuse: Any, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Make views of one tensor in that dtype: `.to` would copy each."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return fuse(2, 4, 300, 64)
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(
    ("name", "shape", "kv_heads", "keys"),
    [
        ("SD 1.5", (2, 8, 4096, 40), 8, 4096), ("SDXL", (2, 10, 4096, 64), 10, 4096), ("a decoder", (1, 1, 4096, 512), 1, 4096),
        ("Dia's step", (2, 16, 1, 128), 4, 900), ("Dia's prompt", (2, 16, 700, 128), 4, 700), ("words", (2, 10, 4096, 64), 10, 77),
    ],
)  # fmt: skip
def test_sizes_of_real_models(name: str, shape: tuple[int, ...], kv_heads: int, keys: int) -> None:
    torch.manual_seed(0)
    batch, heads, _, width = shape
    causal = name == "Dia's prompt"
    for dtype, within in ((torch.float32, 1e-5), (torch.float16, 6e-3)):
        query = torch.randn(shape).to(dtype)
        key, value = (torch.randn(batch, kv_heads, keys, width).to(dtype) for _ in range(2))
        wanted = reference(query, key, value, None, causal)
        for way, fields in WAYS.items():
            for chunk in (None, 512) if way != "keys in pieces" else ():
                seen: list[str] = []
                attend = compose(plan(device="cuda", **fields, chunk_q=chunk), TORCH, observe=seen.append)
                error = off(attend(query, key, value, None, 0.0, causal, enable_gqa=heads > kv_heads), wanted)
                assert error < within, (name, way, dtype, chunk, seen, error)


def ran(plan_: Any, dtype: torch.dtype) -> str:
    """Return the names of the kernels that the card ran for one attention."""
    query, key, value = (torch.randn(2, 8, 1024, 64).to(dtype) for _ in range(3))
    with applied(plan_), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        F.scaled_dot_product_attention(query, key, value)
        torch.cuda.synchronize()
    return " ".join(each.key for each in profile.key_averages())


def test_kernels_that_are_forbidden_do_not_run() -> None:
    every = ran(plan(device="cuda", kernels=("flash",)), torch.float16)
    assert "flash" in every.lower(), every
    some = ran(plan(device="cuda", kernels=("efficient", "math")), torch.float16)
    assert "flash" not in some.lower() and "fmha" in some.lower(), some
    for fields in ({"kernels": ("math",)}, {"kernels": ()}):
        none = ran(plan(device="cuda", **fields), torch.float16)
        assert "flash" not in none.lower() and "fmha" not in none.lower(), none


def test_this_card_passes_its_own_self_test() -> None:
    torch.set_default_device(None)
    hardware = probe()
    verdicts = run(hardware, lambda *_: None)
    bad = {name: (each.error, each.words) for name, each in verdicts.items() if not each.passed}
    print(f"{hardware.name}, torch {hardware.torch}: {len(verdicts) - len(bad)} of {len(verdicts)} right; {bad}")
    assert not {name for name in bad if name.kind == "path"}, bad
