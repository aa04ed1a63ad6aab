"""The self-test: right about this machine, finds what bites on pretended ones, retires what was repaired, survives a death, and is quick."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial

import pytest
import torch

from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.quirk_table import QUIRKS
from app.compat.planning.types import Need, Plan
from app.compat.selftest import probes, run
from app.compat.selftest.probes import TOLERANCE
from app.compat.selftest.simulate import biting
from app.sentence import Sentence

SLOWEST_S = 20.0
ANYWHERE = {"sdpa-dtype", "sdpa-mask-dtype", "sdpa-heads"}
"""torch refuses these on any device."""
SHOWN = {
    "m1-8gb": {
        "mps-gqa-abort", "mps-causal-leak", "mps-value-dim", "mps-placeholder", "mps-long-k", "mps-half-softmax",
        "mps-fp16-black", "masked-rows", "mps-fp64", "conv-65536", "mps-baddbmm",
    },
    "m2-16gb": {
        "mps-decode-oob", "mps-q-stride", "mps-batch-stride", "mps-causal-leak", "mps-value-dim", "mps-placeholder",
        "mps-long-k", "mps-half-softmax", "mps-fp16-black", "masked-rows", "mps-stride-zero", "mps-fp64", "conv-65536",
        "mps-baddbmm",
    },
    "m3-max-64gb": {
        "mps-placeholder", "mps-half-softmax", "mps-fp16-black", "masked-rows", "mps-fp64", "mps-baddbmm",
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
    asked = tuple(probes.rows(tuple(row for row in QUIRKS if row.applies(hardware) and (not wanted or row.id in wanted))))
    monkeypatch.setattr(run, "questions", lambda _: asked)


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


@pytest.mark.parametrize("name", SHOWN)
def test_it_finds_what_bites(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only_rows(monkeypatch, machine(name))
    assert bad(run.run(machine(name), silent), "row:") == SHOWN[name] | ANYWHERE


def test_a_repaired_machine_retires_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    hardware, gone = machine("m2-16gb"), {"mps-causal-leak", "mps-decode-oob"}
    only_rows(monkeypatch, hardware)
    verdicts = run.run(hardware, silent, stage=partial(biting, hardware, repaired=gone))
    assert bad(verdicts, "row:") == (SHOWN["m2-16gb"] | ANYWHERE) - gone
    before, after = decide(hardware), decide(hardware, verdicts=verdicts)
    assert {each.field for each in after.retired} == gone
    assert before.explicit_mask and not after.explicit_mask
    assert before.kernels == () and after.kernels == ("math",)


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


def test_verdicts_alone_keep_a_mac_from_its_defects(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one dtype, so that it is quick; the other machines in all of theirs are slow tests."""
    monkeypatch.setattr(probes, "DTYPES", {"mps": ("float16",)})
    worst, allowed, met = wrong_without_rows("m2-16gb")
    assert worst < allowed and met <= {"masked-rows"}


def planned_without_rows(name: str) -> Plan:
    verdicts = run.run(machine(name), silent)
    assert not {each for each in bad(verdicts, "path:kernels/own") if each != "/float64"} - {"/float16"}
    return decide(machine(name), Need(kv_heads=2), verdicts=verdicts, rows=())


def test_a_machine_that_kills_leaves_a_verdict_and_the_rest_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In children, as on a real Mac: one question in float32 and float16 that each end in an abort, with others around them."""
    hardware, wanted = machine("m1-8gb"), ("mps-gqa-abort", "mps-causal-leak", "masked-rows")
    only_rows(monkeypatch, hardware, *wanted)
    verdicts = run.run(hardware, silent, isolated=True)
    assert bad(verdicts, "row:") == set(wanted)
    assert "Failed to infer result type" in verdicts[Subject("row", "mps-gqa-abort")].words
    assert not verdicts[Subject("row", "masked-rows")].words and verdicts[Subject("row", "masked-rows")].error == math.inf


def test_a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LONGEST_ANSWER_S", 0.1)
    only_rows(monkeypatch, machine("cpu"), "sdpa-heads")
    verdicts = run.run(machine("cpu"), silent, isolated=True)
    assert bad(verdicts, "row:") == {"sdpa-heads"}
