"""Every composition of attention against a float64 reference written here on its own: masks, groups, lengths, chunks, strides, dtypes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from app.base.trouble import Trouble
from app.compat.attention import sdpa_kernels, tile_size
from app.compat.attention.compose import compose
from app.compat.attention.prepare import find_layout
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.memory_formulas import WORKSPACE_BYTES
from app.compat.planning.types import Plan
from tests.support.combinations import combine
from tests.support.other_functions import set_in
from tests.support.plans import EVERY, plan

pytestmark = pytest.mark.long

WITHIN = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 6e-3, torch.bfloat16: 4e-2}
"""So much of the largest value may be off: a rounding or two of the dtype."""
MASKS = ("none", "bool", "additive", "per head", "broadcast", "dead row", "flat", "one key")
TORCH = torch._C._nn.scaled_dot_product_attention


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Thousands of tiny calls: threads that wait for each other take most of the time on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def reference(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    query, key, value = (each.double() for each in (query, key, value))
    groups = query.shape[-3] // key.shape[-3]
    key, value = (
        torch.cat([each[..., h : h + 1, :, :] for h in range(each.shape[-3]) for _ in range(groups)], -3) for each in (key, value)
    )
    scores = torch.einsum("...qd,...kd->...qk", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        scores = scores + mask.double()
    if causal:
        after = torch.arange(scores.shape[-1]) > torch.arange(scores.shape[-2])[:, None]
        scores = scores.masked_fill(after, -torch.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True).clamp(min=-1e300))
    total = weights.sum(-1, keepdim=True)
    return torch.einsum("...qk,...kd->...qd", weights / total.masked_fill(total == 0, 1), value)


def make_mask(kind: str, batch: int, heads: int, queries: int, keys: int, dtype: torch.dtype) -> Tensor | None:
    seen = torch.rand(batch, 1, queries, keys) > 0.4
    seen[..., 0] = True
    dead = seen.clone()
    dead[:, :, queries // 2] = False
    return {
        "none": None,
        "bool": seen,
        "additive": torch.randn(1, 1, queries, keys).to(dtype),
        "per head": torch.randn(batch, heads, queries, keys).masked_fill(torch.rand(batch, heads, queries, keys) > 0.8, -torch.inf),
        "broadcast": seen[:, :, :1],
        "dead row": dead,
        "flat": torch.randn(queries, keys).to(dtype),
        "one key": torch.randn(batch, heads, queries, 1).to(dtype),
    }[kind]


def contiguous(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape)


def permuted(shape: tuple[int, ...]) -> Tensor:
    batch, heads, length, width = shape
    return torch.randn(batch, length, heads, width).transpose(1, 2)


def last_stride_two(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(*shape[:-1], shape[-1] * 2)[..., ::2]


def stride_zero(shape: tuple[int, ...]) -> Tensor:
    batch, heads, length, width = shape
    return torch.randn(1, heads, length, width).expand(batch, -1, -1, -1)


LAYOUTS = (contiguous, permuted, last_stride_two, stride_zero)


def fused_by_tensor(batch: int, heads: int, length: int, width: int) -> tuple[Tensor, ...]:
    whole = torch.randn(batch, length + 3, 3, heads, width)[:, 3:]
    return tuple(whole[:, :, at].transpose(1, 2) for at in range(3))


def fused_by_head(batch: int, heads: int, length: int, width: int) -> tuple[Tensor, ...]:
    whole = torch.randn(batch, length, heads, 3, width)
    return tuple(whole[:, :, :, at].transpose(1, 2) for at in range(3))


def off(found: Tensor, wanted: Tensor) -> float:
    assert found.shape == wanted.shape
    return float((found.double() - wanted).abs().max() / wanted.abs().max().clamp(min=1e-9))


PLANS: dict[str, dict[str, Any]] = {
    "processor": {},
    "native": {"gqa": "native"},
    "expanded": {"gqa": "expanded"},
    "own arithmetic": {"kernels": ()},
    "math alone": {"kernels": ("math",)},
    "keys in chunks": {"chunk_k": 4},
    "an early Mac": {
        "device": "mps", "score_dtype": "float32", "contiguous": True, "explicit_mask": True, "expand_mask": True,
        "pad_value": True, "zero_masked_rows": True, "kernels": ("math",), "chunk_k": 16384,
    },
    "a Mac by itself": {"device": "mps", "score_dtype": "float32", "kernels": (), "chunk_k": 9},
    "an old card": {"device": "cuda", "kernels": ("efficient", "math")},
}  # fmt: skip
CHUNKS = (None, 1, 7, 100)


def grid(
    plans: dict[str, dict[str, Any]],
    dtypes: tuple[torch.dtype, ...],
    lengths: tuple[tuple[int, int], ...],
    groups: tuple[int, ...],
    chunks: tuple[int | None, ...],
    layouts: tuple[Callable[..., Tensor], ...],
) -> Iterator[tuple[str, float]]:
    """Each case's name and how far off it was, in tolerances of its dtype. Only what differs in the question makes a new reference."""
    torch.manual_seed(0)
    batch, heads, width = 2, 8, 16
    for dtype, (queries, keys), few, lay, kind, causal in product(dtypes, lengths, groups, layouts, MASKS, (False, True)):
        query, key, value = (
            lay((batch, count, length, width)).to(dtype) for count, length in ((heads, queries), (heads // few, keys), (heads // few, keys))
        )
        mask = make_mask(kind, batch, heads, queries, keys, dtype)
        wanted = reference(query, key, value, mask, causal)
        for (name, fields), chunk in product(plans.items(), chunks):
            attend = compose(plan(**fields, chunk_q=chunk), TORCH)
            found = attend(query, key, value, mask, 0.0, causal, enable_gqa=few > 1)
            case = f"{name}, {dtype}, {queries}x{keys}, groups of {few}, {lay.__name__}, mask {kind}, causal {causal}, chunk {chunk}"
            assert found.dtype == dtype, case
            yield case, off(found, wanted) / WITHIN[dtype]


def failures(cases: Iterator[tuple[str, float]]) -> tuple[int, list[tuple[str, float]]]:
    seen = list(cases)
    return len(seen), [each for each in seen if not each[1] <= 1]


@pytest.mark.parametrize("name", PLANS)
def test_equals_the_reference(name: str) -> None:
    cases = grid({name: PLANS[name]}, (torch.float32,), ((1, 9), (13, 6), (10, 23)), (1, 4), (None, 7), (contiguous,))
    count, wrong = failures(cases)
    assert count >= 192 and not wrong, wrong[:5]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_equals_the_reference_in_every_dtype(dtype: torch.dtype) -> None:
    count, wrong = failures(grid(PLANS, (dtype,), ((1, 9), (10, 23)), (2,), (None, 7), (contiguous,)))
    assert count >= 500 and not wrong, wrong[:5]


def test_equals_the_reference_in_every_layout() -> None:
    count, wrong = failures(grid(PLANS, (torch.float32,), ((10, 23),), (2,), (None, 7), LAYOUTS[1:]))
    assert count >= 850 and not wrong, wrong[:5]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("dtype", list(WITHIN))
def test_equals_the_reference_everywhere(dtype: torch.dtype) -> None:
    lengths = ((1, 1), (1, 40), (9, 9), (17, 5), (40, 70))
    count, wrong = failures(grid(PLANS, (dtype,), lengths, (1, 2, 4, 8), CHUNKS, LAYOUTS))
    assert count >= 40000 and not wrong, wrong[:5]


@pytest.mark.parametrize("fuse", [fused_by_tensor, fused_by_head])
@pytest.mark.parametrize("name", PLANS)
def test_views_of_one_fused_tensor(name: str, fuse: Callable[..., tuple[Tensor, ...]]) -> None:
    query, key, value = fuse(2, 4, 11, 16)
    assert find_layout(query, key, value) == fuse.__name__.replace("_", " ")
    assert off(compose(plan(**PLANS[name]), TORCH)(query, key, value), reference(query, key, value)) < 1e-5


def test_layouts_are_told_apart() -> None:
    query, key, value = fused_by_tensor(2, 4, 11, 16)
    assert find_layout(query, value, key) == "unknown"
    assert find_layout(query, key, key) == "unknown"
    assert find_layout(query, key.clone(), value) == "separate"
    copied = []
    spy = compose(plan(device="cuda"), lambda *given, **named: copied.append(given[1].is_contiguous()) or TORCH(*given, **named))
    assert off(spy(query, value, key), reference(query, value, key)) < 1e-5
    spy(query, key, value)
    assert copied == [True, False], "unknown is copied, known is left as it lies"
    row = Subject.row("fused-qkv-stride")
    for passed in (True, False):
        seen = decide(MACHINES["rtx-3060"], verdicts={row: Verdict(row, passed)})
        spy = compose(
            plan(device="cuda", retired=seen.retired),
            lambda *given, **named: copied.append(given[1].is_contiguous()) or TORCH(*given, **named),
        )
        spy(query, value, key)
    assert copied[2:] == [False, True], "nothing is copied where the self-test found such views read rightly"


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("wide", [8, 24])
def test_value_of_another_width(name: str, wide: int) -> None:
    torch.manual_seed(1)
    query, key, value = torch.randn(2, 4, 9, 16), torch.randn(2, 2, 12, 16), torch.randn(2, 2, 12, wide)
    for chunk in (None, 4):
        found = compose(plan(**PLANS[name], chunk_q=chunk), TORCH)(query, key, value, enable_gqa=True)
        assert off(found, reference(query, key, value)) < 1e-5


@pytest.mark.parametrize("name", PLANS)
def test_scale_and_dtypes_that_differ(name: str) -> None:
    torch.manual_seed(2)
    query, key, value = torch.randn(2, 4, 9, 16), torch.randn(2, 2, 12, 16).half(), torch.randn(2, 2, 12, 16).half()
    mask = torch.randn(2, 1, 9, 12)
    attend = compose(plan(**PLANS[name]), TORCH)
    found = attend(query, key, value, mask, scale=1.0)
    assert found.dtype == torch.float16
    assert off(found, reference(query, key, value, mask, scale=1.0)) < 6e-3
    assert off(attend(query, key.float(), value.float(), scale=0.0), reference(query, key, value, scale=0.0)) < 1e-3


def test_a_row_of_very_negative_numbers_is_not_a_masked_row() -> None:
    mask = torch.zeros(1, 1, 2, 3)
    mask[..., 1, :] = torch.finfo(torch.float32).min
    for dtype in (torch.bfloat16, torch.float16):
        for name in PLANS:
            value = torch.tensor([1.0, 2.0, 6.0]).view(1, 1, 3, 1).to(dtype)
            found = compose(plan(**PLANS[name]), TORCH)(torch.ones(1, 1, 2, 1).to(dtype), torch.zeros_like(value), value, mask)
            assert off(found, torch.full((1, 1, 2, 1), 3.0, dtype=torch.float64)) < 1e-2, (name, dtype)


@pytest.mark.parametrize("name", PLANS)
def test_as_many_dimensions_as_torch_takes(name: str) -> None:
    torch.manual_seed(3)
    attend = compose(plan(**PLANS[name]), TORCH)
    for shapes in (
        ((5, 8), (7, 8)), ((2, 5, 8), (2, 7, 8)), ((2, 4, 5, 8), (1, 4, 7, 8)), ((1, 4, 5, 8), (2, 4, 7, 8)),
        ((2, 4, 5, 8), (2, 1, 7, 8)), ((2, 1, 5, 8), (2, 4, 7, 8)), ((2, 4, 5, 8), (4, 7, 8)), ((2, 3, 4, 5, 8), (2, 3, 4, 7, 8)),
        ((2, 4, 5, 8), (2, 4, 0, 8)), ((2, 4, 0, 8), (2, 4, 7, 8)), ((0, 4, 5, 8), (0, 4, 7, 8)),
    ):  # fmt: skip
        query, key = (torch.randn(shape) for shape in shapes)
        wanted = TORCH(query, key, key)
        torch.testing.assert_close(attend(query, key, key), wanted)
        masks = [torch.rand(query.shape[-2], key.shape[-2]) > 0.3, torch.rand(*wanted.shape[:-1], key.shape[-2]) > 0.3]
        for mask in masks if key.shape[-2] else []:
            torch.testing.assert_close(attend(query, key, key, mask), TORCH(query, key, key, mask))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_shapes(data: st.DataObject) -> None:
    def size(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    batch, few, groups, queries, keys, width, wide = (
        size(1, 3), size(1, 3), size(1, 4), size(1, 40), size(1, 40), size(1, 20), size(1, 20),
    )  # fmt: skip
    torch.manual_seed(size(0, 99))
    lay = data.draw(st.sampled_from(LAYOUTS))
    query, key, value = (lay((batch, few * groups, queries, width)), lay((batch, few, keys, width)), lay((batch, few, keys, wide)))
    mask = make_mask(data.draw(st.sampled_from(MASKS)), batch, few * groups, queries, keys, torch.float32)
    causal, name = data.draw(st.booleans()), data.draw(st.sampled_from(list(PLANS)))
    fields = PLANS[name] | {"chunk_q": data.draw(st.none() | st.integers(1, 50)), "chunk_k": data.draw(st.none() | st.integers(1, 50))}
    found = compose(plan(**fields), TORCH)(query, key, value, mask, 0.0, causal)
    assert off(found, reference(query, key, value, mask, causal)) < 1e-5


def paths(which: Plan, *given: Any, **named: Any) -> list[str]:
    seen: list[str] = []
    compose(which, TORCH, observe=lambda path, *_: seen.append(path))(*given, **named)
    return seen


def test_each_remedy_is_named() -> None:
    query, key = torch.randn(2, 8, 10, 16), torch.randn(2, 2, 10, 16)
    assert paths(plan(), query, query, query) == ["as torch"]
    assert paths(plan(gqa="native"), query, key, key) == ["as torch"]
    assert paths(plan(), query, key, key) == ["folded"]
    assert paths(plan(gqa="expanded"), query, key, key) == ["expanded"]
    assert paths(plan(chunk_q=4), query, query, query) == ["chunked 4"]
    assert paths(plan(chunk_q=10), query, query, query) == ["as torch"]
    assert paths(plan(chunk_q=4), query, key, key, is_causal=True) == ["folded, chunked 4"]
    assert paths(plan(kernels=()), query, query, query) == ["own arithmetic"]
    assert paths(plan(chunk_k=3, chunk_q=4), query, key, key) == ["folded, chunked 4 x 3, own arithmetic"]


def test_keys_and_values_are_never_copied_to_fold() -> None:
    seen: list[tuple[int, ...]] = []

    def spy(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Tensor:
        seen.append((key.data_ptr(), key.numel(), value.data_ptr(), value.numel()))
        return TORCH(query, key, value, *rest, **named)

    query, key, value = torch.randn(2, 8, 40, 16), permuted((2, 2, 50, 16)), torch.randn(2, 2, 50, 16)
    for device, mask, causal in product(("cpu", "cuda", "mps"), MASKS, (False, True)):
        told = make_mask(mask, 2, 8, 40, 50, torch.float32)
        compose(plan(device=device, kernels=("flash", "cudnn", "efficient", "math")), spy)(query, key, value, told, 0.0, causal)
    assert set(seen) == {(key.data_ptr(), key.numel(), value.data_ptr(), value.numel())}


def pieces(which: Plan, groups: int, length: int) -> list[tuple[int, int, bool]]:
    """Of a causal call, what torch is asked: queries, keys, and whether it shall mask them itself."""
    seen: list[tuple[int, int, bool]] = []

    def spy(query: Tensor, key: Tensor, value: Tensor, mask: Any, dropout: float, causal: bool, **named: Any) -> Tensor:
        seen.append((query.shape[2], key.shape[2], causal))
        return TORCH(query, key, value, mask, dropout, causal, **named)

    query, key = torch.randn(1, 2 * groups, length, 16), torch.randn(1, 2, length, 16)
    found = compose(which, spy)(query, key, key, is_causal=True)
    assert off(found, reference(query, key, key, causal=True)) < 1e-5
    return seen


def test_chunks_read_no_key_that_a_causal_mask_hides() -> None:
    assert pieces(plan(chunk_q=4), 1, 10) == [(4, 4, False), (4, 8, False), (2, 10, False)]


def test_metal_meets_one_shape_of_chunk() -> None:
    """It keeps a graph for each."""
    assert pieces(plan(device="mps", kernels=("math",), chunk_q=4), 1, 10) == [(4, 10, False)] * 3


def test_a_long_causal_fold_goes_group_by_group() -> None:
    """So that torch's kernel can skip what is masked."""
    assert pieces(plan(native_right=False), 4, 31) == [(124, 31, False)]
    assert pieces(plan(native_right=False), 4, 32) == [(32, 32, True)] * 4


def test_own_causal_tiles_leave_out_most_of_what_is_masked() -> None:
    rows: list[int] = []
    query = torch.randn(1, 2, 512, 16)
    attend = compose(plan(kernels=()), TORCH, observe=lambda path, scores, rows_told, queries: rows.append(rows_told))
    attend(query, query, query, is_causal=True)
    attend(query, query, query)
    assert rows == [128, 512]


@pytest.mark.slow
def test_dropout_keeps_the_mean() -> None:
    torch.manual_seed(4)
    query, key, value = torch.randn(1, 4, 6, 8), torch.randn(1, 2, 12, 8), torch.rand(1, 2, 12, 8)
    for name, fields in PLANS.items():
        attend = compose(plan(**fields, chunk_q=4), TORCH)
        several = torch.stack([attend(query, key, value, None, 0.5, enable_gqa=True) for _ in range(120)])
        assert several.var(0).min() > 0, name
        assert off(several.mean(0), reference(query, key, value)) < 0.2, name
        assert attend(query, key, value, None, 1.0, enable_gqa=True).abs().max() == 0, name


@pytest.mark.parametrize("name", PLANS)
def test_gradients_flow(name: str) -> None:
    for chunk in (None, 4):
        query, key, value = (torch.randn(2, count, 9, 8, requires_grad=True) for count in (4, 2, 2))
        mask = torch.rand(2, 1, 9, 9) > 0.2
        mask[..., 0] = True
        compose(plan(**PLANS[name], chunk_q=chunk), TORCH)(query, key, value, mask).square().sum().backward()
        found = [each.grad for each in (query, key, value)]
        query, key, value = (each.detach().double().requires_grad_() for each in (query, key, value))
        reference(query, key, value, mask).square().sum().backward()
        for gradient, each in zip(found, (query, key, value), strict=True):
            assert gradient is not None and each.grad is not None and off(gradient, each.grad) < 1e-4


def test_a_true_nan_is_not_hidden() -> None:
    for name in PLANS:
        query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
        value = key.clone()
        value[0, 0, 0, 0] = torch.nan
        assert compose(plan(**PLANS[name]), TORCH)(query, key, value)[0, 0].isnan().any(), name


POISONED = (
    "own arithmetic",
    "own arithmetic in chunks of 1",
    "keys by 1",
    "keys by 4",
    "every remedy, own arithmetic",
    "processor",
    "chunks of 1",
)


@pytest.mark.parametrize("name", POISONED)
@pytest.mark.parametrize("kind", ["bool", "added", "causal"])
def test_a_masked_key_that_is_no_number_does_no_more_harm_than_under_torch(name: str, kind: str) -> None:
    """Torch adds masks to the scores, where NaN stays NaN, and multiplies values by weights of 0. Where torch's math is finite, so is Hearth;
    where Hearth is and math is not, the masked key had no part in it; and who sees the key, never is."""
    torch.manual_seed(0)
    for of in (1, 2):
        asked: list[Any] = [torch.randn(1, heads, length, 4, dtype=torch.float64) for heads, length in ((4, 5), (2, 6), (2, 6))]
        clean = [each.clone() for each in asked]
        asked[of][:, :, 3], clean[of][:, :, 3] = torch.nan, 0.0
        seen = torch.ones(5, 6, dtype=torch.bool).tril() if kind == "causal" else torch.rand(5, 6) > 0.3
        seen[0, 3], seen[4, 3] = False, True
        added = torch.zeros(5, 6, dtype=torch.float64).masked_fill(~seen, -torch.inf)
        masks: dict[str, Any] = {"causal": {"is_causal": True}, "bool": {"attn_mask": seen}, "added": {"attn_mask": added}}
        options = masks[kind] | {"enable_gqa": True}
        with sdpa_kernel(SDPBackend.MATH):
            torchs, right = (TORCH(*each, **options) for each in (asked, clean))
        found = compose(EVERY[name], TORCH)(*asked, **options)
        kept = found.isfinite()
        assert kept[torchs.isfinite()].all(), of
        assert torch.allclose(found[kept], right[kept], rtol=1e-6, atol=1e-6), of
        assert not kept[:, :, seen[:, 3]].any(), of


@pytest.mark.parametrize(
    ("shapes", "mask", "words"),
    [
        (((2, 5, 3, 8), (2, 2, 4, 8), (2, 2, 4, 8)), None, "5 query heads for 2 key/value heads"),
        (((2, 4, 3, 8), (3, 4, 4, 8), (3, 4, 4, 8)), None, "batch sizes do not broadcast"),
        (((2, 4, 3, 8), (2, 4, 4, 6), (2, 4, 4, 6)), None, "the same width"),
        (((2, 4, 3, 8), (2, 4, 4, 8), (2, 4, 5, 8)), None, "the same length"),
        (((2, 4, 3, 8), (2, 4, 3, 8), (2, 4, 3, 8)), torch.ones(2, 3, 3, 3, dtype=torch.bool), "a mask of 2x3x3x3, which does not broadcast to 4 heads"),
        (((2, 4, 3, 8), (2, 2, 4, 8), (2, 2, 4, 8)), torch.ones(4, dtype=torch.bool), "at least the last two dimensions"),
        (((2, 4, 3, 8), (2, 4, 3, 8), (2, 4, 3, 8)), torch.ones(3, 3, dtype=torch.int64), "a mask of int64"),
        (((8,), (8,), (8,)), None, "length and width"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", PLANS)
def test_a_wrong_question_gets_a_sentence(name: str, shapes: tuple[tuple[int, ...], ...], mask: Tensor | None, words: str) -> None:
    with pytest.raises(Trouble, match=words):
        compose(plan(**PLANS[name]), TORCH)(*(torch.randn(shape) for shape in shapes), mask)


def test_never_a_forbidden_kernel() -> None:
    """Told to use none but efficient, which a processor lacks, torch refuses, and Hearth does it by itself."""
    query = torch.randn(1, 2, 5, 8)
    with pytest.raises(RuntimeError, match="|".join(sdpa_kernels.NONE_TAKES_IT)), sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        TORCH(query, query, query)
    before = sdpa_kernels.switches()
    seen = []
    spy = compose(plan(device="cuda", kernels=("efficient",)), lambda *a, **n: seen.append(sdpa_kernels.switches()) or TORCH(*a, **n))
    assert off(spy(query, query, query), reference(query, query, query)) < 1e-5
    assert seen == [(False, False, True, False)] and sdpa_kernels.switches() == before


def test_a_thread_keeps_its_kernels_when_another_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had found the switches as it wanted them, set by the other one, which restored them."""
    came, left, seen = threading.Event(), threading.Event(), []

    class Lock:
        def __enter__(self) -> None:
            came.set()
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    def attend() -> None:
        with sdpa_kernels.only(["math"]):
            came.set()
            left.wait()
            seen.append(sdpa_kernels.switches())

    lock, other = threading.RLock(), threading.Thread(target=attend)
    monkeypatch.setattr(sdpa_kernels, "_ONE_AT_A_TIME", Lock())
    with sdpa_kernels.only(["math"]):
        came.clear()
        other.start()
        came.wait()
    left.set()
    other.join()
    assert seen == [(False, False, False, True)]


def test_rows_stay_whole() -> None:
    """Over every size that a model has: heads are cut first, then queries, keys only where a handful of rows is too large."""
    scores = WORKSPACE_BYTES["cpu"] // tile_size.OWN_BYTES
    for heads, groups, queries, keys, at_once in product(
        (1, 4, 16, 48), (1, 4), (1, 64, 4096, 9216, 36864), (77, 1024, 9216, 36864, 100_000), (1, 2, 16)
    ):
        tile = tile_size.tile_size(scores, heads, groups, queries=queries, keys=keys, at_once=at_once)
        case = heads, groups, queries, keys, at_once, tile
        assert 1 <= tile.heads <= heads and 1 <= tile.rows <= queries, case
        assert tile.heads * groups * tile.rows * (tile.cols or keys) <= scores, case
        assert (tile.cols is None) == (scores // (groups * keys) >= min(queries, tile_size.FEWEST_ROWS)), case
        if tile.cols is None and tile.rows < min(queries, tile_size.ENOUGH_ROWS) / 2:
            assert tile.heads == 1, case
    assert tile_size.tile_size(scores, 16, 1, queries=9216, keys=9216, at_once=2) == (2, 113, None), "not 32 rows of 5461 keys"
    assert tile_size.tile_size(scores, 16, 1, queries=9216, keys=9216, at_once=2, wanted=512) == (1, 512, 4096), (
        "by hand: the rows are kept"
    )
    assert tile_size.tile_size(1 << 27, 16, 1, queries=9216, keys=9216, at_once=2, wanted=512) == (16, 512, None)


@pytest.mark.parametrize("name", ["own arithmetic", "math alone", "an early Mac", "an old card"])
def test_small_memory_means_small_chunks(name: str) -> None:
    """With 64 KiB for scores: chunks appear, keys are cut where a row is too large, and the result stays."""
    torch.manual_seed(5)
    query, key = torch.randn(2, 8, 200, 16), torch.randn(2, 2, 300, 16)
    for causal in (False, True):
        seen: Counter[str] = Counter()
        attend = compose(plan(**PLANS[name] | {"budget_bytes": 1 << 16}), TORCH, observe=lambda path, *_, seen=seen: seen.update([path]))
        assert off(attend(query, key, key, None, 0.0, causal), reference(query, key, key, None, causal)) < 1e-5
        assert "chunked" in next(iter(seen)), seen


@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.slow)])
def test_few_queries_over_long_keys(dtype: torch.dtype) -> None:
    """Where the keys stand on the left of the product: Dia's decode."""
    torch.manual_seed(6)
    for mask in MASKS:
        query, key, value = (torch.randn(2, count, length, 128).to(dtype) for count, length in ((8, 2), (2, 2100), (2, 2100)))
        told = make_mask(mask, 2, 8, 2, 2100, dtype)
        assert paths(plan(), query, key, value, told) == ["folded, own arithmetic" if dtype == torch.float32 else "folded"]
        one = query[:, :, :1]
        assert off(compose(plan(), TORCH)(one, key, value, scale=0.3), reference(one, key, value, scale=0.3)) < WITHIN[dtype]
        assert off(compose(plan(), TORCH)(query, key, value, told), reference(query, key, value, told)) < WITHIN[dtype]


def rms(found: Tensor, wanted: Tensor) -> float:
    return float(((found.double() - wanted).square().mean() / wanted.square().mean()).sqrt())


WAYS: dict[str, dict[str, Any]] = PLANS | {
    "by torch": {"gqa": "native"},
    "a Mac by torch": {"device": "mps", "kernels": ("math",)},
    "heads one by one": {"kernels": (), "budget_bytes": 1 << 20},
}


SIZES = ((4, 4, 96, 1200, 0.0), (4, 4, 96, 1200, 50.0), (8, 2, 1, 2100, 0.0), (8, 8, 1, 1100, 0.0), (8, 2, 40, 300, 50.0))
"""Each row gives heads of queries and of keys, queries, keys, and by how much all scores are shifted: a prompt, a step over a long cache
and a step with a head for each query."""


@cache
def asked_of_torch(deviation: float, dtype: torch.dtype) -> list[tuple[tuple[Tensor, Tensor, Tensor], Tensor, float]]:
    """Questions with their answers in float64, and how far torch's own kernel is off."""
    found = []
    for seed, (heads, few, queries, keys, shift) in enumerate(SIZES):
        torch.manual_seed(seed)
        query, key, value = (torch.randn(2, count, length, 64) for count, length in ((heads, queries), (few, keys), (few, keys)))
        query, key = query * deviation, key * deviation
        if shift:  # of all scores of a row alike: softmax knows no difference, rounded scores do
            query[..., 0], key[..., 0] = shift, 8.0
        tensors = query.to(dtype), key.to(dtype), value.to(dtype)
        wanted = reference(*tensors)
        found.append((tensors, wanted, rms(TORCH(*tensors, enable_gqa=heads > few), wanted)))
    return found


@pytest.mark.parametrize(("name", "deviation", "dtype"), combine(WAYS, (1.0, 3.0, 6.0), (torch.float16, torch.bfloat16)))
def test_no_coarser_than_torch(name: str, deviation: float, dtype: torch.dtype) -> None:
    """Whole and in chunks, by torch's kernels and by hand."""
    for sizes, (tensors, wanted, torchs) in zip(SIZES, asked_of_torch(deviation, dtype), strict=True):
        for chunk in (None, 33):
            found = rms(compose(plan(**WAYS[name], chunk_q=chunk), TORCH)(*tensors), wanted)
            assert found <= 1.2 * torchs, (sizes, chunk, found / torchs)


def test_free_memory_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, clock = [], [100.0]
    monkeypatch.setattr(tile_size, "ask_free", lambda device: asked.append(device) or 5)
    set_in(monkeypatch, tile_size, "time", monotonic=lambda: clock[0])
    free = tile_size.FreeMemory()
    assert [free(torch.device("cpu")) for _ in range(50)] == [5] * 50 and len(asked) == 1
    clock[0] += 1.5
    assert free(torch.device("cpu")) == 5 and len(asked) == 2


def test_subclasses_and_modes_see_the_call() -> None:
    seen = []

    class Spy(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    attend = compose(plan(), TORCH)
    query = torch.randn(1, 2, 5, 8)
    with Spy():
        attend(query, query, query)
    assert attend in seen
    from torch.nn.attention.bias import causal_lower_right

    torch.testing.assert_close(
        F.scaled_dot_product_attention(query, query, query, causal_lower_right(5, 5)), attend(query, query, query, is_causal=True)
    )
