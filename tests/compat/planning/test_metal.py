"""Metal: rows speak of the kernel that takes a call, pictures take few pieces, a row of speech copies nothing of the rows behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from app.compat.attention import tile_size
from app.compat.attention.call import AttentionCall
from app.compat.attention.dispatch import Dispatcher
from app.compat.attention.seam import applied
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.attention_calls import DIA, Call
from app.compat.planning.decide import decide
from app.compat.planning.metal import metal_path, metal_paths
from app.compat.planning.types import Choice, Dtype, Need, Path, Plan, Role
from app.compat.selftest import operations
from app.compat.selftest.failures import DeviceCall, DeviceFacts, DeviceLimits, kernel
from app.compat.selftest.simulate import biting
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.models.picture_families import list_calls

M1, M2, M3 = MACHINES["m1-8gb"], MACHINES["m2-16gb"], MACHINES["m3-max-64gb"]
MACS = {
    "M1 on 14.5": replace(M1, torch="2.13.0"),
    "M2 Pro on 15": replace(M2, name="Apple M2 Pro", torch="2.13.0", cores=10),
    "M4 Max on 26": replace(M3, name="Apple M4 Max"),
    "M1 on 14.5 with torch 2.6": M1,
}
CALLS: dict[str, tuple[Call, ...]] = {
    "sd15": list_calls("sd15", 512, 512),
    "sdxl": list_calls("sdxl", 1024, 1024),
    "flux1-schnell": list_calls("flux", 1024, 1024),
    "dia-1.6b": DIA,
}


def plans(plan: Plan) -> dict[Path | None, Plan]:
    return {each.path: each for each in (plan, *plan.others)}


def shaped(call: Call, dtype: torch.dtype) -> AttentionCall:
    """The call's tensors, without memory of their own."""
    query, key = (
        torch.empty(1, dtype=dtype).expand(call.batch, heads, length, call.head_dim)
        for heads, length in ((call.heads, call.queries), (call.kv_heads, call.keys))
    )
    mask = torch.ones(1, 1, 1, 1, dtype=torch.bool).expand(1, 1, 1, call.keys) if call.masked else None
    return AttentionCall(query, key, key, mask, 0.0, call.causal)


def count_chunks(plan: Plan, call: Call) -> int:
    """How many times torch, or own arithmetic, is called for it."""
    role: Role = "vae" if call.name == "VAE" else "speech" if plan.of("speech") else "denoiser"
    its = plan.of(role)
    assert its is not None
    dispatch = Dispatcher(plan, F.scaled_dot_product_attention)
    given = shaped(call, getattr(torch, its.compute))
    dispatch = dispatch.others.get(dispatch.find_path(given), dispatch)
    given = shaped(call, dispatch.compute_dtype(given.value.dtype))
    way = dispatch.choose_way(given)
    tile = dispatch.choose_tile(given, None, way)
    pieces = math.ceil(call.queries / tile.rows)
    if way.by == "own" or tile.heads < given.kv_heads or tile.cols:
        pieces *= math.ceil(given.kv_heads / tile.heads) * math.ceil(call.keys / (tile.cols or call.keys))
    return pieces


CHUNKS: dict[tuple[str, str], dict[str, int]] = {
    ("M1 on 14.5", "sd15"): {"itself, 8 px a token": 8},
    ("M1 on 14.5", "sdxl"): {"VAE": 8},
    ("M1 on 14.5", "flux1-schnell"): {"VAE": 4},
    ("M1 on 14.5", "dia-1.6b"): {"a step over 3072": 3},
    ("M2 Pro on 15", "sd15"): {"itself, 8 px a token": 2},
    ("M2 Pro on 15", "sdxl"): {"VAE": 2},
    ("M2 Pro on 15", "flux1-schnell"): {"VAE": 4},
    ("M4 Max on 26", "sd15"): {"itself, 8 px a token": 2},
    ("M4 Max on 26", "sdxl"): {"VAE": 2},
    ("M4 Max on 26", "flux1-schnell"): {"VAE": 4},
    ("M1 on 14.5 with torch 2.6", "sd15"): {"itself, 8 px a token": 16},
    ("M1 on 14.5 with torch 2.6", "sdxl"): {"itself, 16 px a token": 192, "text, 16 px a token": 8,
        "itself, 32 px a token": 32, "text, 32 px a token": 4, "VAE": 256},
    ("M1 on 14.5 with torch 2.6", "flux1-schnell"): {"picture and text": 256, "VAE": 256},
    ("M1 on 14.5 with torch 2.6", "dia-1.6b"): {"a step over 3072": 3},
}  # fmt: skip
"""These calls take more than one chunk; before, an M4 Max took 49, 61 and 83 for the widest of the three pictures, and 4 with scores in
float32."""


@pytest.mark.parametrize("mac", MACS)
@pytest.mark.parametrize("model", CALLS)
def test_attention_takes_few_pieces(mac: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hardware = MACS[mac]
    monkeypatch.setattr(tile_size, "ask_free", lambda device: hardware.free_bytes)
    plan = decide(hardware, describe_need(BY_ID[model]))
    counted = {call.name: count_chunks(plan, call) for call in CALLS[model] if not call.name.startswith("prompt")}
    assert {name: chunks for name, chunks in counted.items() if chunks > 1} == CHUNKS.get((mac, model), {})


def test_a_kernel_may_take_what_is_left_beside_the_parts_that_use_it() -> None:
    """FLUX's transformer is away while its VAE decodes; before torch 2.13 one kernel takes both, so the larger counts."""
    need = describe_need(BY_ID["flux1-schnell"])
    budgets = [{path: each.budget_bytes >> 20 for path, each in plans(decide(mac, need)).items()} for mac in (MACS["M1 on 14.5"], M1)]
    assert budgets == [{"prefill": 16, "vector": 16, "graph": 830}, {"vector": 16, "graph": 16}]
    xl = describe_need(BY_ID["sdxl"])  # nothing is away
    assert len({each.budget_bytes for each in plans(decide(MACS["M4 Max on 26"], xl)).values()}) == 1


SHAPES = [
    (queries, keys, dim) for queries in (1, 4, 8, 9, 64) for keys in (2, 8, 64) for dim in (32, 40, 64, 72, 80, 96, 128, 160, 256, 512)
]


@pytest.mark.parametrize("torch_version", ["2.6.0", "2.8.0", "2.12.1", "2.13.0"])
def test_the_plan_and_the_pretended_mac_agree_on_the_kernel(torch_version: str) -> None:
    """Each has the conditions by itself. Before torch 2.8 the vector kernel's calls take the graph, and the plan computes them itself."""
    facts = DeviceFacts(replace(M3, torch=torch_version))
    paths = metal_paths(facts.hardware)
    for queries, keys, dim in SHAPES:
        for value_dim in (dim, dim + 1):
            call = DeviceCall(torch.empty(1, 1, queries, dim), torch.empty(1, 1, keys, dim), torch.empty(1, 1, keys, value_dim))
            found = metal_path(paths, queries, keys, dim, value_dim)
            expected = "graph" if found == "vector" and torch_version == "2.6.0" else found
            assert kernel(call, facts) == expected, (queries, keys, dim)


def test_a_torch_that_nobody_knows_has_no_prefill_kernel() -> None:
    assert "prefill" not in metal_paths(replace(M3, torch="")) and metal_paths(MACHINES["cpu"]) == ()


def test_remedies_are_for_the_kernel_that_needs_them() -> None:
    for model, scores in (("flux1-schnell", "float32"), ("sd15", None)):  # FLUX's VAE overflows in float16, and computes in bfloat16
        its = plans(decide(M3, describe_need(BY_ID[model])))
        remedies = {path: (each.score_dtype, each.expand_mask, each.kernels) for path, each in its.items()}
        assert remedies == {"prefill": (None, False, ("math",)), "vector": (None, False, ("math",)), "graph": (scores, True, ("math",))}
    assert {path: each.kernels for path, each in plans(decide(M2)).items()} == {"vector": (), "graph": ("math",)}


@pytest.mark.parametrize("path", ["prefill", "graph"])
def test_what_one_kernel_gets_wrong_says_nothing_of_the_others(path: Path) -> None:
    verdict = Verdict(Subject.path("kernels/math", "float16", path), passed=False, error=math.inf)
    its = plans(decide(M3, verdicts={verdict.subject: verdict}))
    assert {name for name, each in its.items() if not each.kernels} == {path}


def test_a_choice_by_hand_holds_for_every_kernel() -> None:
    assert {each.kernels for each in plans(decide(M3, choice=Choice(kernels=()))).values()} == {()}


def test_a_mask_for_all_heads_stays_one_in_the_prefill_kernel() -> None:
    """Expanded it would take as much memory as the scores."""
    seen: list[tuple[int, ...]] = []
    plan = decide(M3, Need(heads=4, kv_heads=4, queries=64, keys=64))
    query, mask = torch.randn(2, 4, 64, 64), torch.rand(2, 1, 64, 64) > 0.3
    wanted, torch_attention = F.scaled_dot_product_attention(query, query, query, mask), F.scaled_dot_product_attention

    def spy(*given: Any, **named: Any) -> Tensor:
        seen.append(tuple(given[3].shape))
        return torch_attention(*given, **named)

    found = Dispatcher(plan, spy)(AttentionCall(query, query, query, mask), None, lambda *_: None)
    torch.testing.assert_close(found, wanted)
    assert seen == [(2, 1, 64, 64)]


class Allocated(TorchDispatchMode):
    """Lists the bytes of every new tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {each.untyped_storage().data_ptr() for each in tensors((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        self.sizes += [each.untyped_storage().nbytes() for each in tensors(result) if each.untyped_storage().data_ptr() not in given]
        return result


def tensors(tree: Any) -> Iterable[Tensor]:
    return (each for each in tree_leaves(tree) if isinstance(each, Tensor))


ROWS_BEHIND = (1100, 2000, 3000)
SPEECH_MACS = {
    **MACS,
    "M2 with torch 2.8": M2,
    "M3 Max with torch 2.11": replace(M3, torch="2.11.0"),
    "M3 Max with torch 2.12": replace(M3, torch="2.12.1"),
}


@pytest.mark.parametrize(
    "mac", [pytest.param(mac, marks=[] if place % 3 == 0 else pytest.mark.slow) for place, mac in enumerate(SPEECH_MACS)]
)
@pytest.mark.parametrize("dtype", ["float16", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_a_row_of_speech_allocates_the_same_however_many_lie_behind(mac: str, dtype: Dtype) -> None:
    """As Dia's decoder hands them over: a slice of a cache that has its place."""
    hardware = SPEECH_MACS[mac]
    plan = decide(hardware, describe_need(BY_ID["dia-1.6b"]), Choice(dtype=dtype))
    made = torch.Generator().manual_seed(0)
    query, *caches = (torch.randn(2, *sizes, 128, generator=made).to(getattr(torch, dtype)) for sizes in ((16, 1), (4, 3072), (4, 3072)))
    allocated = []
    with torch.inference_mode(), biting(hardware) as bites, applied(plan):
        for rows in ROWS_BEHIND:
            key, value = (each[:, :, :rows] for each in caches)
            with Allocated() as counted:
                found = F.scaled_dot_product_attention(query, key, value, enable_gqa=True, scale=1.0)
            allocated.append(counted.sizes)
            right = exact(query, key, value)
            assert float((found.double() - right).abs().max() / right.abs().max()) < (5e-3 if dtype == "float16" else 2e-2)
    assert not bites.rows
    assert len({frozenset(each) for each in allocated}) == 1, "Metal keeps memory of every size"
    first, *others = (sum(each) for each in allocated)
    # Own arithmetic takes each further piece of 1024 keys in the memory of the first, but for its sums: 50 KB.
    assert all(each <= first * (1 if "vector" in plan_kernels(plan) else 1.01) for each in others), allocated


def plan_kernels(plan: Plan) -> set[Path | None]:
    return {path for path, each in plans(plan).items() if each.kernels}


def exact(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """By einsum, which no pretended Mac spoils in float64."""
    key, value = (each.double().repeat_interleave(4, 1) for each in (key, value))
    weights = torch.softmax((query.double() * key).sum(-1), -1)
    return (weights.unsqueeze(-1) * value).sum(2, keepdim=True)


QUESTIONS = [
    operations.expanded_rows, operations.weight_in_weight, operations.half_of_channels, operations.product_in_place,
    operations.number_in_list, operations.two_threads, operations.small_model, operations.growing_sizes, operations.repeated_attention,
]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_a_processor_answers_every_question_rightly(question: Any) -> None:
    with torch.inference_mode():
        error, elapsed_s = question("float32", "cpu")
    assert error < 1e-3 and elapsed_s > 0


def test_a_band_of_nan_in_a_large_product_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is as large as the defect; here both are small."""
    rows, summed, columns = operations.LARGE
    assert 4 * (rows + 2 * summed) * columns > DeviceLimits().product_bytes
    monkeypatch.setattr(operations, "LARGE", (8, 32, 64))
    small = DeviceLimits(product_bytes=4 * (8 + 2 * 32) * 64 - 1)
    with torch.inference_mode():
        assert operations.large_product("float32", "cpu")[0] < 1e-6
        with biting(replace(M1, torch="2.13.0"), limits=small) as bites:
            assert operations.large_product("float32", "cpu")[0] == math.inf
        with biting(replace(M1, torch="2.13.0"), limits=replace(small, product_bytes=small.product_bytes + 1)) as spared:
            assert operations.large_product("float32", "cpu")[0] < 1e-6
    assert bites.rows == {"mps-large-product": 1} and not spared.rows


def test_a_large_product_is_not_asked_for_where_memory_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "ask_free", lambda device: 2 * 4 * 1280 * 240_000 - 1)
    with pytest.raises(MemoryError):
        operations.large_product("float32", "cpu")


def test_memory_that_keeps_every_size_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Metal's allocator: what was once asked for counts for ever."""
    kept: dict[int, int] = {}
    ones = torch.ones

    def keeping(size: int, **named: Any) -> Tensor:
        kept[size] = size * 6
        return ones(size, **named)

    monkeypatch.setattr(operations, "held_bytes", lambda device: sum(kept.values()))
    monkeypatch.setattr(torch, "ones", keeping)
    assert operations.growing_sizes("float32", "cpu")[0] > 10
