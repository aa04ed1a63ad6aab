"""The tile that a call gets: what is free, what was set by hand, and what a cache holds decide it, to the exact size."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import torch

from app.compat.attention import tile_size
from app.compat.attention.call import AttentionCall
from app.compat.attention.compose import compose
from app.compat.attention.dispatch import STEP, Dispatcher
from app.compat.attention.seam import applied
from app.compat.attention.tile_size import Tile
from app.compat.attention.tiled import is_step
from app.compat.planning.quickest_way import Way
from tests.support.moved_bytes import MovedBytes
from tests.support.plans import plan

MIB = 1 << 20


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiles are at least as many heads as there are threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def call(heads: int, queries: int, keys: int, width: int, dtype: torch.dtype = torch.float32) -> AttentionCall:
    query, key = (torch.empty(1, dtype=dtype).expand(1, heads, length, width) for length in (queries, keys))
    return AttentionCall(query, key, key)


def dispatcher(**fields: object) -> Dispatcher:
    return Dispatcher(plan(kernels=("math",), **fields), torch.nn.functional.scaled_dot_product_attention)


@pytest.mark.parametrize(("free_mib", "limit_mib"), [(4000, 1000), (8000, 1024), (400, 100), (40, 16)])
def test_scores_may_take_a_quarter_of_what_is_free(monkeypatch: pytest.MonkeyPatch, free_mib: int, limit_mib: int) -> None:
    """A chunk set by hand up to the plan's budget of 1 GiB, any other up to what a cache holds."""
    monkeypatch.setattr(tile_size, "ask_free", lambda device: free_mib * MIB)
    cpu = torch.device("cpu")
    assert dispatcher().limit_bytes(cpu, by_hand=True) == limit_mib * MIB
    assert dispatcher().limit_bytes(cpu, by_hand=False) == min(limit_mib, 16) * MIB


@pytest.mark.parametrize(
    ("most", "asked", "way_rows", "wanted"),
    [(None, None, 0, None), (None, 70, 0, 70), (None, None, 80, 80), (64, None, 0, 64), (64, 70, 0, 64), (512, None, 0, None), (100, None, 0, None)],
)  # fmt: skip
def test_queries_at_a_time_are_those_set_by_hand_or_by_the_way_within_the_plan(
    most: int | None, asked: int | None, way_rows: int, wanted: int | None
) -> None:
    assert dispatcher(chunk_most=most).wanted_rows(asked, Way("torch", way_rows), 100) == wanted


@pytest.mark.parametrize(
    ("dtype", "heads"), [(torch.float32, 64), (torch.bfloat16, 16), (torch.float16, 16)], ids=["float32", "bfloat16", "float16"]
)
def test_halves_are_widened_a_few_heads_at_a_time(dtype: torch.dtype, heads: int) -> None:
    """Keys and values of 16 heads are 4 MiB in float32: 16 x 1024 x (32 + 32) x 4."""
    assert dispatcher().own_tile(call(64, 8, 1024, 32, dtype), None, None, None, 64 * MIB) == Tile(heads, 8, None)


def test_own_arithmetic_takes_eight_bytes_a_score() -> None:
    """1 MiB holds 131072 scores: 8 heads of 16 queries and 1024 keys."""
    assert dispatcher().own_tile(call(64, 16, 1024, 32), None, None, None, MIB) == Tile(8, 16, None)


def test_the_largest_call_is_told_and_forgotten() -> None:
    with applied(plan()) as seam:
        assert seam.take_largest() is None
        for queries in (3, 9, 5):
            torch.nn.functional.scaled_dot_product_attention(
                torch.randn(1, 2, queries, 8), torch.randn(1, 2, queries, 8), torch.randn(1, 2, queries, 8)
            )
        largest = seam.take_largest()
        assert largest is not None and largest.queries == 9
        assert seam.take_largest() is None


def test_only_grouped_heads_take_the_step_of_speech() -> None:
    key = torch.empty(2, 4, 3072, 128)
    found = [is_step(torch.empty(2, heads, 1, 128), key, key, {torch.float32}) for heads in (4, 8, 16, 18, 512)]
    assert found == [False, True, True, False, False]


def test_the_step_of_speech_reads_a_longer_cache_where_it_lies() -> None:
    """A cache has room for the rows to come, so its heads lie apart; the short way must not be missed for that, nor copy."""
    query, (keys, values) = torch.randn(2, 16, 1, 128), torch.randn(2, 2, 4, 3072, 128)
    cut, apart = keys[:, :, :3000], keys.transpose(1, 2).contiguous().transpose(1, 2)[:, :, :3000]
    assert [is_step(query, each, each, {torch.float32}) for each in (cut, apart)] == [True, False]
    with applied(plan()) as seam, MovedBytes() as moved:
        found = torch.nn.functional.scaled_dot_product_attention(query, cut, values[:, :, :3000], enable_gqa=True)
    assert set(seam.paths) == {STEP}
    assert moved.cast_bytes == 0 and moved.product_bytes > cut.nbytes
    wanted = torch.nn.functional.scaled_dot_product_attention(query.double(), cut.double(), values[:, :, :3000].double(), enable_gqa=True)
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("heads", [4, 2])
def test_keys_without_a_batch_are_those_of_every_row(heads: int) -> None:
    """As many heads as queries have rows, so that their shapes look alike."""
    query, key = torch.randn(heads, 4, 3, 8), torch.randn(heads, heads, 8)
    every = key.repeat_interleave(4 // heads, 0).expand(heads, 4, heads, 8)
    wanted = torch.nn.functional.scaled_dot_product_attention(query, every, every)
    with applied(plan()):
        found = torch.nn.functional.scaled_dot_product_attention(query, key, key, enable_gqa=heads < 4)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(("few", "wide"), [(2, 4), (4, 2), (1, 2)])
def test_keys_and_values_may_have_different_numbers_of_heads(few: int, wide: int) -> None:
    query, key, value = (torch.randn(2, heads, 5, 8) for heads in (4, few, wide))
    keys, values = (each.repeat_interleave(4 // each.shape[1], 1) for each in (key, value))
    wanted = torch.nn.functional.scaled_dot_product_attention(query, keys, values)
    with applied(plan()):
        found = torch.nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(found, wanted)


def test_a_step_of_speech_is_short_only_where_heads_are_folded() -> None:
    found = [
        dispatcher(**fields).steps
        for fields in ({}, {"gqa": "native"}, {"gqa": "expanded"}, {"chunk_k": 64}, {"contiguous": True}, {"device": "mps"})
    ]
    assert found == [{torch.float32}, set(), set(), set(), set(), set()]


@pytest.mark.parametrize(
    ("dtype", "computed"), [(torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.float64, torch.float64)]
)
def test_float16_is_computed_in_float32_by_a_processor(dtype: torch.dtype, computed: torch.dtype) -> None:
    prepared = dispatcher().prepare(call(4, 3, 5, 8, dtype))[0]
    assert [each.dtype for each in (prepared.query, prepared.key, prepared.value)] == [computed] * 3


def test_a_chunk_that_was_read_from_a_file_is_automatic_too() -> None:
    paths: list[str] = []
    attend = compose(plan(chunk_q=json.loads('"auto"')), observe=lambda path, *rest: paths.append(path))
    attend(*(torch.randn(1, 2, 100, 8) for _ in range(3)))
    assert paths == ["as torch"]


@pytest.mark.parametrize("keys", [0, 1])
def test_the_smallest_call_is_a_call(keys: int) -> None:
    with applied(plan()) as seam:
        torch.nn.functional.scaled_dot_product_attention(torch.ones(1, 1, 1, 8), torch.ones(1, 1, keys, 8), torch.ones(1, 1, keys, 8))
        assert seam.take_largest() is not None
