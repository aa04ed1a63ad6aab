"""Short calls go to torch at once: natively grouped only where that is right and quick, folded elsewhere, and the rest is left to the route."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention.call import AttentionCall
from app.compat.attention.compose import compose
from app.compat.attention.dispatch import Dispatcher
from app.compat.machine.pretended import MACHINES, machine
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.quickest_way import BRIEF_NUMBERS
from app.compat.planning.types import Choice, Need, Plan
from app.engine.models.pretended_device import use_real_device
from tests.support.plans import plan

TORCH = F.scaled_dot_product_attention
Asked = tuple[int, int, int]
"""torch is asked with so many query heads, so many queries, and whether it groups."""
DIA = Need(heads=16, kv_heads=4)


def asked(which: Plan, queries: int, keys: int, dtype: torch.dtype = torch.float32, few: int = 4, **named: Any) -> list[Asked]:
    seen: list[Asked] = []

    def spy(query: Tensor, *rest: Any, **told: Any) -> Tensor:
        seen.append((query.shape[1], query.shape[2], bool(told.get("enable_gqa"))))
        return TORCH(query, *rest, **told)

    query, key = torch.randn(2, 16, queries, 128).to(dtype), torch.randn(2, few, keys, 128).to(dtype)
    found = compose(which, spy)(query, key, key, **named)
    wanted = TORCH(query.double(), key.double(), key.double(), enable_gqa=True, **named)
    torch.testing.assert_close(found.double(), wanted, atol=0.02 if dtype == torch.bfloat16 else 1e-5, rtol=0)
    return seen


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The queries of each call that the route is asked about."""
    met: list[int] = []
    held = Dispatcher.__call__

    def spy(self: Dispatcher, call: AttentionCall, *rest: Any) -> Tensor:
        met.append(call.query.shape[2])
        return held(self, call, *rest)

    monkeypatch.setattr(Dispatcher, "__call__", spy)
    return met


@pytest.mark.parametrize("keys", [1, 64, 256])
def test_a_short_step_is_torchs_own(keys: int) -> None:
    assert asked(plan(), 1, keys) == [(16, 1, True)]
    assert asked(plan(native_right=False), 1, keys) == [(4, 4, False)]
    assert asked(plan(), 1, keys, torch.bfloat16) == [(4, 4, False)]
    assert asked(plan(), 2, keys) == [(4, 8, False)]


def test_a_longer_step_is_folded() -> None:
    """256 keys of 2 x 4 heads of width 128 are the most."""
    assert BRIEF_NUMBERS == 2 * 4 * 256 * 128
    assert asked(plan(), 1, 257) == [(4, 4, False)]


def test_whoever_cuts_the_keys_is_not_passed_by() -> None:
    assert asked(plan(chunk_k=7), 1, 64) == [], "own arithmetic"


def test_heads_that_are_not_grouped_stay_as_they_are() -> None:
    assert asked(plan(), 3, 64, few=16) == asked(plan(native_right=False), 3, 64, few=16) == [(16, 3, False)]


@pytest.mark.parametrize("name", MACHINES)
def test_only_a_processor_takes_both(name: str) -> None:
    """Where a card or a Mac folds, it is because torch's own goes wrong there: also where a processor plays it."""
    told = decide(MACHINES[name], DIA)
    assert told.native_right == (MACHINES[name].kind == "cpu")
    if told.gqa == "folded" and not told.native_right:
        shapes = asked(use_real_device(told), 1, 64) + asked(use_real_device(told), 128, 128, is_causal=True)
        assert not any(native for _, _, native in shapes)


def test_what_the_self_test_found_wrong_is_not_taken() -> None:
    wrong = Verdict(Subject("path", "gqa/native/float32"), passed=False)
    told = decide(machine("cpu"), DIA, Choice(dtype="float32"), {wrong.subject: wrong})
    assert told.gqa == "folded" and not told.native_right
    assert asked(told, 1, 64) == [(4, 4, False)]
    assert not any(native for _, _, native in asked(told, 128, 128, is_causal=True))


def test_who_asks_for_folding_has_it() -> None:
    told = decide(machine("cpu"), DIA, Choice(dtype="float32", gqa="folded"))
    assert asked(told, 1, 64) == [(4, 4, False)]


@pytest.mark.parametrize(
    ("dtype", "queries", "keys", "few", "told"),
    [
        (torch.float32, 1, 64, 4, {}), (torch.bfloat16, 1, 64, 4, {}), (torch.bfloat16, 1, 2048, 4, {}), (torch.float32, 8, 64, 4, {}),
        (torch.float32, 1, 64, 16, {}), (torch.float32, 64, 64, 16, {"is_causal": True}), (torch.float32, 1, 511, 16, {}),
        (torch.float32, 128, 170, 16, {}),
    ],
)  # fmt: skip
def test_a_short_call_never_meets_the_route(
    dtype: torch.dtype, queries: int, keys: int, few: int, told: dict[str, Any], met: list[int]
) -> None:
    asked(plan(), queries, keys, dtype, few, **told)
    assert met == []


@pytest.mark.parametrize(
    ("dtype", "queries", "keys", "few", "told"),
    [
        (torch.bfloat16, 1, 2049, 4, {}),
        (torch.float32, 8, 64, 4, {"is_causal": True}),
        (torch.float32, 1, 512, 16, {}),
        (torch.float32, 128, 171, 16, {}),
    ],
)
def test_whatever_needs_a_choice_has_it(
    dtype: torch.dtype, queries: int, keys: int, few: int, told: dict[str, Any], met: list[int]
) -> None:
    asked(plan(), queries, keys, dtype, few, **told)
    assert met == [queries]
