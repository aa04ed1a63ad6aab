"""The questions about packed weights: where they are asked, wrong kernels found, and what counts as quicker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from app.compat.attention import measure
from app.compat.machine.hardware import probe
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.quantisation_field import QUICKER
from app.compat.planning.types import Choice
from app.compat.selftest import run
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.session import machine_check, packed_weights_check

HERE = replace(probe(), pretended="")


def answer(subject: Subject) -> Verdict:
    (probe,) = (each for each in packed_weights_check.questions(HERE) if each.subject == subject)
    verdict = run.answer_one(probe, HERE, nullcontext)
    assert verdict is not None
    return verdict


def test_they_are_asked_where_torch_has_the_kernels() -> None:
    asked = {
        name: {str(each.subject) for each in packed_weights_check.questions(replace(machine, pretended=""))}
        for name, machine in MACHINES.items()
    }
    assert {name for name, its in asked.items() if its} == {name for name, its in MACHINES.items() if its.kind in ("cpu", "mps")}
    assert {"path:quantised/int4/float16", "quicker:int8/bfloat16"} <= asked["m2-16gb"] and len(asked["m2-16gb"]) == 9
    assert not any(packed_weights_check.questions(machine) for machine in MACHINES.values()), "it is this processor that would answer"
    assert {each.subject for each in packed_weights_check.questions(HERE)} <= {each.subject for each in machine_check.questions(HERE)}


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_torchs_kernels_are_right_here_and_wrong_ones_are_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject.path(f"quantised/{kind}", "float32")
    assert answer(subject).passed
    name = {"int8": "_weight_int8pack_mm", "int4": "_weight_int4pack_mm_for_cpu"}[kind]
    right = getattr(torch.ops.aten, name)
    monkeypatch.setattr(torch.ops.aten, name, lambda *given: right(*given).roll(1, -1))
    verdict = answer(subject)
    assert not verdict.passed and verdict.error > 0.1 and subject.matters


def test_both_ways_are_timed_as_often_and_in_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[tuple[str, int]] = Counter()

    def pack(weight: torch.Tensor, *_: object) -> object:
        def multiply(lines: torch.Tensor, name: str = "packed") -> torch.Tensor:
            counted[name, torch.get_num_threads()] += 1
            time.sleep(0.03 * (name == "plain"))
            return lines

        monkeypatch.setattr(F, "linear", lambda lines, weight: multiply(lines, "plain"))
        return multiply

    monkeypatch.setattr(packed_weights_check, "pack_linear", pack)
    monkeypatch.setattr(packed_weights_check, "THREADS", 2)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert packed_weights_check.time_beside_plain("int8", "float32", "cpu")[0] < 0.5
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert counted == {(name, 2): 2 * packed_weights_check.ROUNDS for name in ("packed", "plain")}


@pytest.mark.parametrize(("packed_s", "quicker"), [(0.5, True), (1.5, False)])
def test_quicker_is_what_takes_less_time(packed_s: float, quicker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times are given: real ones are those of whatever else runs on this computer."""

    def take_turns(*_: object, **__: object) -> Iterator[tuple[str, float, None]]:
        while True:
            yield from (("packed", packed_s, None), ("plain", 1.0, None))

    monkeypatch.setattr(measure, "turns", take_turns)
    monkeypatch.setattr(packed_weights_check, "pack_linear", lambda *_: None)
    verdict = answer(Subject.quicker("int8", "float32"))
    assert verdict.passed == quicker == (verdict.error < QUICKER) and not verdict.subject.matters
    right = Subject.path("quantised/int8", "float32")
    voice, seen = describe_need(BY_ID["dia-1.6b"]), {verdict.subject: verdict, right: Verdict(right, True)}
    slow = replace(HERE, fast_bf16=False, free_bytes=16 << 30, memory_bytes=16 << 30)
    assert decide(slow, voice, Choice(), seen).quantised == ("int8" if quicker else "none")
