"""The questions about padded heads: where they are asked, and that a wrong or slow kernel is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention import measure
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.heads_field import PADDED, RIGHT
from app.compat.planning.metal import PREFILL_DIMS
from app.compat.selftest import padded_heads, run
from app.compat.selftest.probes import Probe
from app.engine.session import machine_check
from tests.support.separate_memory import separate_memory

MAC = replace(MACHINES["m3-max-64gb"], pretended="")
TORCH: Any = F.scaled_dot_product_attention


def ask(subject: Subject) -> Verdict:
    probes: dict[Subject, Probe] = {each.subject: each for each in padded_heads.questions(MAC)}
    with separate_memory("mps"):
        found = run.answer_one(probes[subject], MAC, nullcontext)
    assert found is not None
    return found


def test_they_are_asked_of_macs_with_the_kernel_alone() -> None:
    asked = {name: len(padded_heads.questions(replace(its, pretended=""))) for name, its in MACHINES.items()}
    assert {name for name, count in asked.items() if count} == {"m1-8gb-browser", "m1-8gb-full", "m3-max-64gb"} and set(asked.values()) == {
        0,
        6,
    }
    assert not any(padded_heads.questions(machine) for machine in MACHINES.values()), "it is this processor that would answer"
    assert {each.subject for each in padded_heads.questions(MAC)} <= {each.subject for each in machine_check.questions(MAC)}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_right_kernel_is_found_right(dtype: str) -> None:
    verdict = ask(Subject.path(RIGHT, dtype))
    assert verdict.passed and 0 < verdict.error < 5e-3 and verdict.subject.matters


WRONG: dict[str, Callable[[Tensor], Tensor]] = {
    "not a number": lambda made: made * math.nan,
    "a little too large": lambda made: made * 1.02,
    "exchanged rows": lambda made: made.roll(1, -2),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_kernel_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is wrong where the heads were padded."""
    widths = set[int]()

    def attend(query: Tensor, *given: Any, **named: Any) -> Tensor:
        widths.add(query.shape[-1])
        made: Tensor = TORCH(query, *given, **named)
        return WRONG[fault](made) if query.shape[-1] in PREFILL_DIMS else made

    monkeypatch.setattr(F, "scaled_dot_product_attention", attend)
    verdict = ask(Subject.path(RIGHT, "float32"))
    assert not verdict.passed and widths == {64, 256}


@pytest.mark.parametrize(
    ("padded_s", "quicker"),
    [pytest.param(0.5, True, marks=pytest.mark.slow), (0.94, True), (0.97, False), pytest.param(2.0, False, marks=pytest.mark.slow)],
)
def test_quicker_is_what_takes_less_time(padded_s: float, quicker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times are given: real ones are those of whatever else runs on this computer."""
    widths: dict[str, set[int]] = {"padded": set(), "plain": set()}
    now = ""

    def attend(query: Tensor, *given: Any, **named: Any) -> Tensor:
        widths[now].add(query.shape[-1])
        made: Tensor = TORCH(query, *given, **named)
        return made

    def take_turns(
        ways: dict[str, Callable[..., Tensor]], given: tuple[Tensor, ...], *_: object, **__: object
    ) -> Iterator[tuple[str, float, None]]:
        nonlocal now
        for now, way in ways.items():  # noqa: B007 - read by attend
            way(*(None if each is None else each[:1, :1] for each in given))
        while True:
            yield from (("padded", padded_s, None), ("plain", 1.0, None))

    monkeypatch.setattr(F, "scaled_dot_product_attention", attend)
    monkeypatch.setattr(measure, "turns", take_turns)
    verdict = ask(Subject.quicker(PADDED, "float32"))
    assert verdict.passed == quicker and verdict.error == padded_s and not verdict.subject.matters
    assert widths == {"padded": {64, 256}, "plain": {40, 160}}
