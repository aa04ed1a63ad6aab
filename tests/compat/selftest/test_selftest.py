"""The self-test: right about this machine, finds what bites on pretended ones, retires what was repaired, survives a death, and is quick."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import psutil
import pytest
import torch
import torch.nn.functional as F

from app.base.sentence import Sentence
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.quirk_table import QUIRKS
from app.compat.planning.types import Need, Plan
from app.compat.selftest import operations, probes, run
from app.compat.selftest.failures import NOT_SIMULATED
from app.compat.selftest.probes import TOLERANCE
from app.compat.selftest.simulate import biting
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need

pytestmark = pytest.mark.long

SLOWEST_S = 20.0
ANYWHERE = {"sdpa-dtype", "sdpa-mask-dtype", "sdpa-heads"}
"""torch refuses these on any device."""
SHOWN = {
    "m1-8gb": {
        "mps-gqa-abort", "mps-causal-leak", "mps-value-dim", "mps-placeholder", "mps-long-k", "mps-half-softmax",
        "mps-fp16-black", "masked-rows", "mps-fp64", "conv-65536", "mps-baddbmm", "mps-scalar-view", "mps-out-slice",
    },
    "m2-16gb": {
        "mps-decode-oob", "mps-q-stride", "mps-batch-stride", "mps-causal-leak", "mps-value-dim", "mps-placeholder",
        "mps-long-k", "mps-half-softmax", "mps-fp16-black", "masked-rows", "mps-stride-zero", "mps-fp64", "conv-65536",
        "mps-baddbmm", "mps-vector-mask", "mps-scalar-view", "mps-conv-weight",
    },
    **{
        name: {
            *("mps-placeholder", "mps-half-softmax", "masked-rows", "mps-fp64", "mps-baddbmm", "mps-scalar-view", "mps-conv-weight"),
            *("mps-conv-chunk", *more),
        }
        for name, *more in (("m1-8gb-browser", "mps-long-k"), ("m1-8gb-full", "mps-long-k"), ("m3-max-64gb",))
    },
    "gtx-1060": {"cuda-flash", "fused-qkv-stride"},
    "gtx-1660": {"cuda-flash", "fused-qkv-stride", "gtx16-fp16"},
    "t4": {"cuda-flash", "fused-qkv-stride"},
    "rtx-3060": {"fused-qkv-stride"},
    "cpu": set(),
}  # fmt: skip


def silent(done: int, total: int, words: Sentence) -> None:
    pass


def bad(verdicts: Mapping[Subject, Verdict], start: str) -> set[str]:
    return {str(each.subject).removeprefix(start) for each in verdicts.values() if str(each.subject).startswith(start) and not each.passed}


def only_rows(monkeypatch: pytest.MonkeyPatch, hardware: Hardware, *wanted: str) -> None:
    here = [row for row in QUIRKS if row.applies(hardware) and row.id not in NOT_SIMULATED]
    asked = tuple(probes.rows(tuple(row for row in here if not wanted or row.id in wanted)))

    def questions(_: Hardware) -> tuple[probes.Probe, ...]:
        return asked

    questions.__module__ = run.__name__  # where a child finds all of them, and takes those that it is asked
    monkeypatch.setattr(run, "questions", questions)


def test_a_processor_gets_all_right_and_quickly() -> None:
    told: list[tuple[int, int, Sentence]] = []
    began_s = time.process_time()  # of this process on all its cores: another one's load is not ours
    verdicts = run.run(machine("cpu"), lambda *step: told.append(step))
    elapsed_s = time.process_time() - began_s
    assert bad(verdicts, "path:") == set()
    assert bad(verdicts, "row:") == ANYWHERE
    assert all(each.elapsed_s > 0 for each in verdicts.values())
    assert [done for done, _, _ in told] == list(range(len(told)))
    assert told[-1][0] == told[-1][1] and "correct on this machine" in str(told[-1][2])
    assert elapsed_s < SLOWEST_S


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name == "m1-8gb-full" else []) for name in SHOWN])
def test_it_finds_what_bites(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only_rows(monkeypatch, machine(name))
    assert bad(run.run(machine(name), silent), "row:") == SHOWN[name] | ANYWHERE


@pytest.mark.parametrize("cudnn", ["9.13", ""], ids=["known", "unknown"])
def test_a_library_without_convolutions_costs_no_dtype(cudnn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its version is not known, the self-test alone finds it; each dtype is then asked with torch's own convolutions."""
    bitten = replace(machine("gtx-1060"), cudnn="9.13")
    asked = [each for each in run.questions(replace(bitten, cudnn=cudnn)) if each.subject.name.startswith(("convolution/", "dtype/"))]
    monkeypatch.setattr(run, "questions", lambda _: asked)
    verdicts = run.run(replace(bitten, cudnn=cudnn), silent, stage=partial(biting, bitten))
    assert bad(verdicts, "path:") == {"convolution/library/float32"} and len(verdicts) == len(asked)
    plan = decide(replace(bitten, cudnn=cudnn), verdicts=verdicts)
    assert (plan.convolution, plan.dtype, torch.backends.cudnn.enabled) == ("torch", "float32", True)


def test_a_repaired_machine_retires_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    hardware, gone = machine("m2-16gb"), {"mps-causal-leak", "mps-decode-oob"}
    only_rows(monkeypatch, hardware)
    verdicts = run.run(hardware, silent, stage=partial(biting, hardware, repaired=gone))
    assert bad(verdicts, "row:") == (SHOWN["m2-16gb"] | ANYWHERE) - gone
    before, after = decide(hardware), decide(hardware, verdicts=verdicts)
    assert {each.field for each in after.retired} == gone
    assert before.explicit_mask and not after.explicit_mask
    of_steps = [next(each for each in (plan, *plan.others) if each.path == "vector") for plan in (before, after)]
    named = [" ".join(str(why.sentence) for each in plan.rejected for why in each.objections) for plan in of_steps]
    assert ["reads past its buffer" in words for words in named] == [True, False] and before.kernels == ("math",)


def wrong_without_rows(name: str) -> tuple[float, float, set[str]]:
    """The worst error of a plan made of verdicts alone, what its dtype allows, and the defects that it met."""
    plan = planned_without_rows(name)
    with biting(name) as bites, torch.inference_mode():
        shapes = tuple(each for each in probes.ALL if each.loud <= 1)
        worst, _ = probes.through(plan, plan.dtype, shapes)("cpu")
    return worst, TOLERANCE[plan.dtype], set(bites.rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in SHOWN if each != "cpu"])
def test_verdicts_alone_lead_to_a_plan_that_is_right(name: str) -> None:
    worst, allowed, met = wrong_without_rows(name)
    assert worst < allowed and met <= {"masked-rows"}


@pytest.mark.slow
def test_verdicts_alone_keep_a_mac_from_its_defects(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one dtype, so that it is quick; the other machines in all of theirs are slow tests."""
    monkeypatch.setattr(probes, "DTYPES", {"mps": ("float16",)})
    worst, allowed, met = wrong_without_rows("m2-16gb")
    assert worst < allowed and met <= {"masked-rows"}


def planned_without_rows(name: str) -> Plan:
    verdicts = run.run(machine(name), silent)
    assert not {each for each in bad(verdicts, "path:kernels/own") if each != "/float64"} - {"/float16"}
    return decide(machine(name), Need(kv_heads=2), verdicts=verdicts, quirks=())


@pytest.mark.slow
def test_a_machine_that_kills_leaves_a_verdict_and_the_rest_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In children, as on a real Mac: one question in float32 and float16 that each end in an abort, with others around them."""
    hardware, wanted = machine("m1-8gb"), ("mps-gqa-abort", "mps-causal-leak", "masked-rows")
    only_rows(monkeypatch, hardware, *wanted)
    verdicts = run.run(hardware, silent, isolated=True)
    assert bad(verdicts, "row:") == set(wanted)
    assert "Failed to infer result type" in verdicts[Subject("row", "mps-gqa-abort")].words
    assert not verdicts[Subject("row", "masked-rows")].words and verdicts[Subject("row", "masked-rows")].error == math.inf


@pytest.mark.parametrize("spills", [True, False])
def test_a_driver_that_gives_more_memory_than_the_card_has_is_found(spills: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(size: int, **_: object) -> torch.Tensor:
        assert size > 2 << 30
        if not spills:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.50 GiB.")
        return torch.ones(1)

    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (2 << 30, 4 << 30))
    monkeypatch.setattr(torch, "empty", allocate)
    row = next(row for row in QUIRKS if row.id == "windows-spill")
    (answer,) = (run.answer_one(each, machine("gtx-1060"), nullcontext) for each in probes.rows((row,)))
    assert answer is not None and answer.passed is not spills


def ask_row(row: str) -> Verdict:
    """Ask a processor about one row, whose defect it is not known to have."""
    probe, *_ = probes.rows(tuple(each for each in QUIRKS if each.id == row))
    answer = run.answer_one(probe, machine("cpu"), nullcontext)
    assert answer is not None
    return answer


STEPS = [(F, each) for each in ("conv2d", "group_norm", "silu", "interpolate", "layer_norm", "gelu", "linear")] + [(torch, "softmax")]


@pytest.mark.parametrize("row", ["mps-graph-26", "mps-graph-27"])
@pytest.mark.parametrize(("library", "step"), STEPS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_system_with_one_wrong_layer_is_found(row: str, library: ModuleType, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It exchanges numbers, which a norm after it does not hide as it would a factor."""
    assert ask_row(row).passed
    right = getattr(library, step)
    monkeypatch.setattr(library, step, lambda *given, **named: right(*given, **named).roll(1, -1))
    assert not ask_row(row).passed


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_linear_layer_that_is_wrong_now_and_then_is_found(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask_row("mps-m5-linear").passed
    calls, right = [0], F.linear

    def multiply(*given: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return right(*given) * (1.1 if calls[0] == wrong else 1)

    monkeypatch.setattr(F, "linear", multiply)
    assert not ask_row("mps-m5-linear").passed


def test_a_device_that_two_threads_disturb_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sum of four hundred is wrong, in either thread, and only while both compute."""
    assert ask_row("mps-threads").passed
    right, both = torch.arange, threading.Barrier(2, timeout=30)
    seen = set[str]()

    def count(*given: int, **named: Any) -> torch.Tensor:
        name = threading.current_thread().name
        if name in seen:
            return right(*given, **named)
        seen.add(name)
        return right(*given, **named) + both.wait()

    monkeypatch.setattr(torch, "arange", count)
    assert not ask_row("mps-threads").passed and len(seen) == 2


@pytest.mark.parametrize(("kept", "passed"), [(1, True), (64, False)])
def test_a_device_that_keeps_what_attention_took_is_found(kept: int, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of the first calls alone are an allocator's; those of every call a leak."""
    held, right = list[int](), F.scaled_dot_product_attention

    def attend(*given: Any) -> torch.Tensor:
        held.append(3 * 4 * 512 * 512 * 4)
        return right(*given)

    monkeypatch.setattr(F, "scaled_dot_product_attention", attend)
    monkeypatch.setattr(operations, "held_bytes", lambda _: sum(held[: 1 + kept]))
    assert ask_row("mps-leak").passed is passed


def hanging(hardware: Hardware) -> tuple[probes.Probe, ...]:
    """Two questions for a child: one is answered, the other never."""

    def hang(device: str) -> tuple[float, float]:
        time.sleep(600)
        return 0.0, 0.0

    looks = {"prompt": lambda device: (0.0, 0.1), "hangs": hang, "after it": lambda device: (0.0, 0.2)}
    return tuple(probes.Probe(Subject("row", name), "float32", look) for name, look in looks.items())


def killed(hardware: Hardware) -> tuple[probes.Probe, ...]:
    """As where the system ends the child for want of memory."""

    def end(device: str) -> tuple[float, float]:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0.0, 0.0

    return (replace(hanging(hardware)[1], look=end), hanging(hardware)[2])


def broken(hardware: Hardware) -> tuple[probes.Probe, ...]:
    raise ImportError("the environment is broken")


@pytest.mark.slow
def test_a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LONGEST_ANSWER_S", 0.5)
    verdicts = run.run(machine("cpu"), silent, hanging, isolated=True)
    assert [(each.subject.name, each.passed) for each in verdicts.values()] == [("prompt", True), ("hangs", False), ("after it", True)]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_a_child_that_was_killed_says_nothing_of_the_machine() -> None:
    verdicts = run.run(machine("cpu"), silent, killed, isolated=True)
    assert [str(each) for each in verdicts] == ["row:after it"]


@pytest.mark.slow
def test_a_child_that_cannot_start_is_no_verdict() -> None:
    asked = hanging(machine("cpu"))
    with pytest.raises(RuntimeError, match="the environment is broken"):
        list(run.answer_all(machine("cpu"), asked, broken, isolated=True))


@pytest.mark.slow
def test_whoever_has_something_better_to_do_ends_the_child() -> None:
    """A job arrives while a question is under way."""
    before = psutil.Process().children()
    answers = run.answer_all(machine("cpu"), hanging(machine("cpu")), hanging, isolated=True)
    seen = [next(answers) for _ in range(2)]
    while seen[-1] == "waiting" and len(seen) < 600:
        seen.append(next(answers))
    assert isinstance(seen[-1], Verdict)
    children = [each for each in psutil.Process().children() if each not in before]
    assert next(answers) == "waiting" and children
    began_s = time.monotonic()
    answers.close()
    assert time.monotonic() - began_s < 30 and not any(each.is_running() for each in children)


def asked_apart(name: str) -> dict[Subject, Verdict]:
    """Ask only about float16's linear layers and convolutions."""
    hardware = machine(name)
    wanted = {Subject.path(f"{each}/float16", "float16") for each in ("linear", "convolution")}
    asked = [each for each in probes.paths(hardware, decide(hardware)) if each.subject in wanted]
    answers = {each.subject: run.answer_one(each, hardware, nullcontext) for each in asked}
    return {subject: answer for subject, answer in answers.items() if answer is not None}


def test_a_card_that_is_sick_in_convolutions_alone_may_multiply_in_half(monkeypatch: pytest.MonkeyPatch) -> None:
    right = F.conv2d
    monkeypatch.setattr(F, "conv2d", lambda *given: right(*given) * math.nan)
    verdicts = asked_apart("gtx-1660")
    assert bad(verdicts, "path:") == {"convolution/float16/float16"} and len(verdicts) == 2
    plan = decide(machine("gtx-1660"), describe_need(BY_ID["dia-1.6b"]), verdicts=verdicts)
    assert (plan.dtype, plan.precision[0].linear) == ("float32", "float16")


def test_a_card_that_sums_in_half_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def sum_in_half(given: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(len(given), len(weight), dtype=given.dtype)
        for left, right in zip(given.split(64, -1), weight.split(64, -1), strict=True):
            total = (total.float() + left.float() @ right.float().T).to(given.dtype)
        return total

    monkeypatch.setattr(F, "linear", sum_in_half)
    verdicts = asked_apart("gtx-1060")
    assert "linear/float16/float16" in bad(verdicts, "path:") and "convolution/float16/float16" not in bad(verdicts, "path:")
    assert decide(machine("gtx-1060"), describe_need(BY_ID["dia-1.6b"]), verdicts=verdicts).precision[0].linear is None
