"""The questions about channels last: which cards are asked, and that a wrong, slow or refused convolution is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention import measure
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.order_field import LAST, RIGHT
from app.compat.selftest import channels_last, run
from app.compat.selftest.probes import Probe
from app.engine.session import machine_check
from tests.support.separate_memory import separate_memory

T4 = replace(MACHINES["t4"], pretended="")
RTX20 = replace(T4, name="NVIDIA GeForce RTX 2060")
CONVOLVE: Any = F.conv2d


def is_last(weight: Tensor) -> bool:
    return weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real sizes take a processor minutes in float16."""
    monkeypatch.setattr(channels_last, "SIZES", ((64, 8), (128, 4)))


def ask(subject: Subject) -> Verdict:
    probes: dict[Subject, Probe] = {each.subject: each for each in channels_last.questions(RTX20)}
    with separate_memory():
        found = run.answer_one(probes[subject], RTX20, nullcontext)
    assert found is not None
    return found


def test_they_are_asked_of_cards_with_tensor_cores_alone() -> None:
    asked = {name: [each.dtype for each in channels_last.questions(replace(its, pretended=""))] for name, its in MACHINES.items()}
    asked = {name: dtypes for name, dtypes in asked.items() if dtypes}
    assert asked == {"t4": ["float16"] * 2, "rtx-3060": ["float16", "float16", "bfloat16", "bfloat16"]}
    assert len(channels_last.questions(RTX20)) == 2 == len(channels_last.questions(replace(T4, name="Tesla V100", capability=(7, 0))))
    assert not channels_last.questions(replace(T4, name="NVIDIA GeForce GTX 1650")), "it has no tensor cores"
    assert not any(channels_last.questions(machine) for machine in MACHINES.values()), "it is this processor that would answer"
    assert {each.subject for each in channels_last.questions(T4)} <= {each.subject for each in machine_check.questions(T4)}


def test_right_convolutions_are_found_right() -> None:
    verdict = ask(Subject.path(RIGHT, "float16"))
    assert verdict.passed and 0 < verdict.error < 5e-3 and verdict.subject.matters, verdict


WRONG: dict[str, Callable[[Tensor], Tensor]] = {
    "not a number": lambda made: made * math.nan,
    "a little too large": lambda made: made * 1.02,
    "exchanged channels": lambda made: made.roll(1, 1),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_convolutions_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are wrong channels last alone."""

    def convolve(given: Tensor, weight: Tensor, *rest: Any) -> Tensor:
        made: Tensor = CONVOLVE(given, weight, *rest)
        return WRONG[fault](made) if is_last(weight) else made

    monkeypatch.setattr(F, "conv2d", convolve)
    verdict = ask(Subject.path(RIGHT, "float16"))
    assert not verdict.passed and not verdict.words


@pytest.mark.parametrize("subject", [Subject.path(RIGHT, "float16"), Subject.quicker(LAST, "float16")], ids=str)
def test_what_a_library_refuses_fails(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    def convolve(given: Tensor, weight: Tensor, *rest: Any) -> Tensor:
        if is_last(weight):
            raise RuntimeError("FIND was unable to find an engine to execute this computation")
        made: Tensor = CONVOLVE(given, weight, *rest)
        return made

    monkeypatch.setattr(F, "conv2d", convolve)
    verdict = ask(subject)
    assert not verdict.passed and "unable to find an engine" in verdict.words


@pytest.mark.parametrize(("last_s", "quicker"), [(0.7, True), (0.96, True), (0.98, False), (1.3, False)])
def test_quicker_is_what_takes_less_time(last_s: float, quicker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times are given: real ones are those of whatever else runs on this computer."""
    orders: dict[str, set[tuple[bool, torch.dtype]]] = {"last": set(), "usual": set()}
    now = ""

    def convolve(given: Tensor, weight: Tensor, *rest: Any) -> Tensor:
        if now:
            orders[now].add((is_last(weight), weight.dtype))
        made: Tensor = CONVOLVE(given, weight, *rest)
        return made

    def take_turns(ways: dict[str, Callable[..., object]], *_: object, **__: object) -> Iterator[tuple[str, float, None]]:
        nonlocal now
        for now, way in ways.items():  # noqa: B007 - read by convolve
            way()
        while True:
            yield from (("last", last_s, None), ("usual", 1.0, None))

    monkeypatch.setattr(F, "conv2d", convolve)
    monkeypatch.setattr(measure, "turns", take_turns)
    verdict = ask(Subject.quicker(LAST, "float16"))
    assert verdict.passed == quicker and verdict.error == last_s and not verdict.subject.matters
    assert orders == {"last": {(True, torch.float16)}, "usual": {(False, torch.float16)}}
