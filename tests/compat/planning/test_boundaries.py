"""Numbers at which a plan turns, and numbers in its sentences: exact to the byte, and those of the plan itself."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from app.base.sentence import say
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.memory_formulas import COPIES_OF_SCORES, MIB, SCORES_AT_LEAST, SCORES_AT_MOST, SCRATCH_BYTES, TIGHT, part_bytes
from app.compat.planning.quirk import Quirk, Where
from app.compat.planning.types import Choice, Dtype, ModelPart, Need, Plan, Precision, Reason

VOICE = Need(model="mine", kind="speech", parts=(ModelPart("model", "speech", 400_000_000),))
PAINTER = Need(model="mine", kind="picture", parts=(ModelPart("unet", "denoiser", 400_000_000),))


def because(plan: Plan, field: str) -> Reason:
    return next(each for each in plan.because if each.field == field)


@pytest.mark.parametrize(
    ("name", "need", "share", "half"),
    [
        ("gtx-1060", PAINTER, 2, "float16"),
        ("cpu", PAINTER, 1, "bfloat16"),
        ("gtx-1060", VOICE, 1, "float16"),
        ("cpu", VOICE, 1, "bfloat16"),
    ],
)
def test_weights_stay_wide_to_the_last_byte_that_fits(name: str, need: Need, share: int, half: str) -> None:
    """Unified memory may be filled by the weights to 85%, a card's own to half; a voice, which reads all of them for each row, may fill
    both."""
    wide_bytes = 400_000_000 * 4 + SCRATCH_BYTES[need.kind] + SCORES_AT_LEAST
    enough = share * wide_bytes if share > 1 else math.ceil(wide_bytes / TIGHT)
    found = [
        decide(replace(MACHINES[name], free_bytes=enough - less), need, Choice(dtype="float32")).precision[0].storage for less in (0, share)
    ]
    assert found == ["float32", half]


def test_a_voices_caches_are_counted_in_float32_too() -> None:
    need, cache_bytes = replace(VOICE, cache_bytes=100 * MIB), 2 * 100 * MIB
    enough = math.ceil((400_000_000 * 4 + SCRATCH_BYTES["speech"] + SCORES_AT_LEAST + cache_bytes) / TIGHT)
    found = [decide(replace(MACHINES["cpu"], free_bytes=enough - less), need, Choice(dtype="float32")) for less in (0, 1)]
    assert [plan.precision[0].storage for plan in found] == ["float32", "bfloat16"]


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("free_mib", [40, 64, 65, 1000, 3000, 4096, 9000])
def test_the_budget_sentence_holds_the_budget(name: str, free_mib: int) -> None:
    plan = decide(replace(MACHINES[name], free_bytes=free_mib * MIB))
    sentence = because(plan, "budget_bytes").sentence
    assert dict(sentence.values)["mib"] == plan.budget_bytes // MIB
    assert f"{plan.budget_bytes // MIB} MiB" in str(sentence)
    quarter = int(TIGHT * free_mib * MIB) // 4
    assert plan.budget_bytes <= min(max(quarter, SCORES_AT_LEAST), SCORES_AT_MOST)
    if sentence.key == "budget.quarter":
        assert plan.budget_bytes == min(quarter, SCORES_AT_MOST)
        assert f"at most {SCORES_AT_MOST // MIB}." in str(sentence)
    if sentence.key == "budget.least":
        assert quarter < plan.budget_bytes == SCORES_AT_LEAST


def test_the_caches_leave_the_budget_a_quarter_of_the_rest() -> None:
    cpu, cache_mib = replace(MACHINES["cpu"], free_bytes=4000 * MIB), 100
    found = [decide(cpu, replace(VOICE, cache_bytes=mib * MIB), Choice(dtype="float32")).budget_bytes for mib in (0, cache_mib)]
    assert found[0] - found[1] == 2 * cache_mib * MIB // 4, "the cache is counted in half precision"


def test_a_quarter_that_is_just_the_least_is_called_a_quarter() -> None:
    cpu, enough = MACHINES["cpu"], math.ceil(4 * SCORES_AT_LEAST / TIGHT)
    keys = [because(decide(replace(cpu, free_bytes=enough - less)), "budget_bytes").sentence.key for less in (0, 4)]
    assert keys == ["budget.quarter", "budget.least"]


@pytest.mark.parametrize("most", [32, 512])
def test_a_learned_budget_names_the_chunk_and_what_it_needs(most: int) -> None:
    need = Need(model="mine", heads=16, kv_heads=16, queries=8192, keys=8192)
    taught = Verdict(Subject.fallback("mine", "smaller-chunk"), False, seen=RunFailure("memory", 3, "float32", most))
    plan = decide(MACHINES["cpu"], need, verdicts={taught.subject: taught})
    sentence = because(plan, "budget_bytes").sentence
    enough = 3 * 16 * most * 8192 * 4
    assert plan.budget_bytes == min(max(enough, SCORES_AT_LEAST), SCORES_AT_MOST)
    assert dict(sentence.values)["mib"] == plan.budget_bytes // MIB and str(most) in str(sentence)
    by_hand = decide(MACHINES["cpu"], need, verdicts={taught.subject: taught}, chunk=4096)
    said = because(by_hand, "chunk_q").sentence
    assert by_hand.chunk_q == most and said.key == "chunk_q.bounded"
    assert (dict(said.values)["asked"], dict(said.values)["chunk"]) == (4096, most)


def test_a_row_that_limits_the_scores_is_told_with_its_limit() -> None:
    row = Quirk("small-arrays", (Where(),), say("quirk.mps-4gib", "Small arrays only."), "a test", limits=(("bytes", 100 * MIB),))
    plan = decide(MACHINES["cpu"], quirks=(row,))
    sentence = because(plan, "budget_bytes").sentence
    assert plan.budget_bytes == 100 * MIB and sentence.key == "budget.limit" and dict(sentence.values)["mib"] == 100


def test_scores_that_do_not_fit_are_told_by_their_size() -> None:
    mac = replace(MACHINES["m3-max-64gb"], free_bytes=1 << 30)
    plan = decide(mac, Need(batch=2, heads=8, kv_heads=8, head_dim=40, queries=4096, keys=4096))
    said = [
        dict(reason.sentence.values)
        for each in plan.rejected
        if (each.field, each.option) == ("chunk_q", "whole")
        for reason in each.objections
        if reason.sentence.key == "chunk_q.budget"
    ]
    assert said == [{"mib": 2 * 8 * 4096 * 4096 * 2 * COPIES_OF_SCORES // MIB, "most": plan.budget_bytes // MIB}]


@pytest.mark.parametrize(
    ("storage", "compute", "size_bytes"),
    [("float32", "float32", 4000), ("float16", "float32", 2200), ("float16", "float16", 2200), ("bfloat16", "bfloat16", 2000)],
)
def test_weights_that_stay_wide_are_counted(storage: Dtype, compute: Dtype, size_bytes: int) -> None:
    part = ModelPart("unet", "denoiser", 1000, wide=100)
    assert part_bytes(part, Precision("unet", "denoiser", storage, compute, "cpu"), "none") == size_bytes


def test_grouped_heads_are_native_from_ampere_on() -> None:
    """Without a mask; with one torch before 2.14 is slow there, too."""
    for name, masked, gqa in (("rtx-3060", False, "native"), ("rtx-3060", True, "folded"), ("t4", False, "folded")):
        assert decide(MACHINES[name], Need(model="mine", heads=16, kv_heads=4, queries=256, keys=256, masked=masked)).gqa == gqa
