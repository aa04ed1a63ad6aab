"""The questions about Hearth's own ways of multiplying few lines: where they are asked, wrong and slow ones found, and what a plan makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from torch import Tensor

from app.compat.attention import measure
from app.compat.kernels import few_lines
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Subject, Verdict, learn, load
from app.compat.planning.decide import decide
from app.compat.planning.product_field import Weights, quicker_subject, right_subject
from app.compat.planning.types import Choice, Dtype, Plan
from app.compat.selftest import run
from app.compat.selftest.probes import Probe
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.session import few_lines_check, machine_check
from tests.support import stand_in_kernels
from tests.support.separate_memory import separate_memory

OLD = replace(MACHINES["gtx-1060"], pretended="")
MAC = replace(MACHINES["m3-max-64gb"], pretended="")
ALL: tuple[Weights, ...] = ("half", "int8", "int4")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_lines_check, "TIMED", ((64, 64, 1), (64, 128, 2)))
    monkeypatch.setattr(measure, "BETWEEN_BYTES", 1 << 10)


def ask(way: str, weights: Weights, dtype: Dtype, hardware: Hardware = MAC) -> dict[str, Verdict]:
    """Answer the questions of a machine on a pretended device, whose work this processor does."""
    subjects = {"right": right_subject(way, weights, dtype), "quicker": quicker_subject(way, weights, dtype)}  # type: ignore[arg-type]
    probes: dict[Subject, Probe] = {each.subject: each for each in few_lines_check.questions(hardware)}
    with separate_memory(hardware.kind):
        found = {name: run.answer_one(probes[subject], hardware, nullcontext) for name, subject in subjects.items()}
    assert all(found.values())
    return found  # type: ignore[return-value]


def test_they_are_asked_where_the_table_has_a_way() -> None:
    asked = {name: [str(each.subject) for each in few_lines_check.questions(replace(its, pretended=""))] for name, its in MACHINES.items()}
    assert len(asked["gtx-1060"]) == 14 and {"path:product/kernel-int8/float32", "quicker:int8/float32"} <= set(asked["gtx-1060"])
    assert len(asked["rtx-3060"]) == 21 and len(asked["m3-max-64gb"]) == 16 and len(asked["m1-8gb"]) == 4 and not asked["cpu"]
    assert not any(few_lines_check.questions(machine) for machine in MACHINES.values()), "it is this processor that would answer"
    assert {each.subject for each in few_lines_check.questions(OLD)} <= {each.subject for each in machine_check.questions(OLD)}


@pytest.mark.parametrize("weights", ALL)
def test_a_right_kernel_is_found_right(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins = stand_in_kernels.put(monkeypatch)
    verdict = ask("kernel", weights, "float16")["right"]
    assert verdict.passed and 0 < verdict.error < 1e-3 and verdict.subject.matters
    timed = 2 * few_lines_check.ROUNDS  # of each layer, twice a round; and a first call
    assert {lines: count for (_, lines), count in stand_ins.launched.items()} == {1: 12 + 1 + timed, 2: 12 + timed, 3: 12, 4: 12}


WRONG: dict[str, Callable[[Tensor], Tensor]] = {
    "exchanged rows": lambda made: made.roll(1, -1),
    "exchanged lines": lambda made: made.flip(0) if len(made) > 1 else made,
    "the last row left out": lambda made: torch.cat([made[:, :-1], torch.zeros_like(made[:, -1:])], -1),
    "not a number": lambda made: made * math.nan,
    "a little too large": lambda made: made * 1.02,
}


@pytest.mark.slow
@pytest.mark.parametrize("weights", ALL)
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_kernel_is_found_and_the_machine_goes_on_as_before(fault: str, weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_kernels.put(monkeypatch, WRONG[fault])
    verdict = ask("kernel", weights, "float16")["right"]
    assert not verdict.passed and (verdict.error > 0.01 or verdict.error == math.inf)
    seen = {each.subject: each for each in (verdict, Verdict(quicker_subject("kernel", weights, "float16"), True, 0.3))}
    assert_as_before(MAC, seen, "kernel", "plan.failed", weights)


def test_a_kernel_that_does_not_compile_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise few_lines.KernelRefused("SyntaxError: program_source:4: unknown type name 'uchar'")

    monkeypatch.setattr(few_lines, "find_kernel", refuse)
    found = ask("kernel", "half", "float16")
    for verdict in found.values():
        assert not verdict.passed and "unknown type name" in verdict.words
    assert_as_before(MAC, {each.subject: each for each in found.values()}, "kernel", "plan.failed", "half")


def test_a_way_that_is_left_to_torch_is_not_taken_for_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_lines_check, "multiply", lambda *_: None)
    for verdict in ask("kernel", "half", "float16").values():
        assert not verdict.passed and "does not take this" in verdict.words


@pytest.mark.parametrize(
    ("own_s", "quicker"),
    [pytest.param(0.4, True, marks=pytest.mark.slow), (0.88, True), (0.95, False), pytest.param(2.0, False, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("weights", ALL)
def test_quicker_is_what_takes_less_time(weights: Weights, own_s: float, quicker: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times are given: real ones are those of whatever else runs on this computer."""
    stand_ins = stand_in_kernels.put(monkeypatch)

    def take_turns(
        ways: dict[str, Callable[..., Tensor]], given: list[Tensor], *_: object, **__: object
    ) -> Iterator[tuple[str, float, None]]:
        for way in ways.values():
            way(*given)
        while True:
            yield from (("own", own_s, None), ("torch", 1.0, None))

    monkeypatch.setattr(measure, "turns", take_turns)
    found = ask("kernel", weights, "float16")
    assert found["quicker"].passed == quicker and found["quicker"].error == own_s and not found["quicker"].subject.matters
    bits = few_lines.BITS[weights]
    assert (stand_ins.launched[bits, 1], stand_ins.launched[bits, 2]) == (12 + 1 + 1, 12 + 1), "each layer's product is the kernel's"
    seen = {each.subject: each for each in found.values()}
    if quicker:
        assert plan_for(MAC, seen, weights).product == "kernel"
    else:
        assert_as_before(MAC, seen, "kernel", "product.slower", weights)


def test_on_a_card_8_bits_by_torch_are_timed_beside_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = list[list[str]]()

    def take_turns(
        ways: dict[str, Callable[..., Tensor]], given: list[Tensor], *_: object, **__: object
    ) -> Iterator[tuple[str, float, None]]:
        layers.extend([type(each).__name__ for each in way.args[0]] for way in ways.values())  # type: ignore[attr-defined]
        while True:
            yield from (("own", 4.0, None), ("torch", 0.5, None))

    monkeypatch.setattr(measure, "turns", take_turns)
    (probe,) = (each for each in few_lines_check.questions(OLD) if each.subject == Subject.quicker("int8", "float32"))
    with separate_memory("cuda"):
        error, _ = few_lines_check.time_packed("float32", "cuda")
    assert error == 8 and not probe.judge(error) and layers == [["Int8Linear"] * 2, ["FewLinesLinear"] * 2]


def test_line_by_line_is_asked_too() -> None:
    verdict = ask("lines", "half", "float16")["right"]
    assert verdict.passed and 0 < verdict.error < 1e-3


def plan_for(machine: Hardware, seen: dict[Subject, Verdict], weights: Weights) -> Plan:
    return decide(machine, describe_need(BY_ID["dia-1.6b"]), Choice(quantised="none" if weights == "half" else weights), seen)


def assert_as_before(machine: Hardware, seen: dict[Subject, Verdict], way: str, why: str, weights: Weights) -> None:
    """Nothing of the plan changes but what is said of this way."""
    before, after = plan_for(machine, {}, weights), plan_for(machine, seen, weights)
    assert after.product == "torch"
    assert replace(after, because=(), rejected=(), warnings=(), others=()) == replace(
        before, because=(), rejected=(), warnings=(), others=()
    )
    told = [
        each.key
        for gone in after.rejected
        if (gone.field, gone.option) == ("product", way)
        for each in [o.sentence for o in gone.objections]
    ]
    assert told == [why]


def test_another_torch_or_system_asks_anew(tmp_path: Path) -> None:
    subject = right_subject("kernel", "half", "float16")
    learn(tmp_path, MAC, Verdict(subject, True, 1e-4))
    assert subject in load(tmp_path, MAC)
    for other in (replace(MAC, torch="2.14.1"), replace(MAC, system_version="27.0"), replace(MAC, name="Apple M2")):
        assert subject not in load(tmp_path, other)
