"""Fallbacks as a part of deciding: every fallback and pair of fallbacks over machines, models and choices; a death's diagnosis; events folded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any, get_args

import pytest

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.machine.hardware import as_processor
from app.compat.machine.meter import Reading
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import Fault, RunFailure, Subject, Verdict
from app.compat.planning import decide as decide_module
from app.compat.planning.decide import DECIDED_FIELDS, decide
from app.compat.planning.fallbacks import (
    FALLBACKS,
    SMALLEST_CHUNK,
    Fallback,
    choices,
    count_at_once,
    describe_failure,
    learned,
    next_fallback,
)
from app.compat.planning.memory_formulas import (
    COPIES_OF_SCORES,
    GIB,
    MIB,
    TIGHT,
    gib,
    needed_bytes,
    peak_bytes,
    resident_bytes,
    round_apart,
    scores_bytes,
    vae_bytes,
    work_bytes,
)
from app.compat.planning.metal import parts_on
from app.compat.planning.options import FieldDecision, Situation
from app.compat.planning.quirk import Quirk, Where
from app.compat.planning.quirk_table import QUIRKS
from app.compat.planning.types import AUTO, Choice, Chunk, Dtype, Gqa, Kernel, Need, Offload, Plan, Quantised, Reason, Vae
from app.compat.planning.weight_fields import SMALLEST
from app.engine.jobs import events
from app.engine.jobs.progress import Progress
from app.engine.keeper.recovery import diagnose
from app.engine.models.catalog import CATALOG
from app.engine.models.model import describe_need
from tests.support.combinations import combine

pytestmark = pytest.mark.long

BY_ID = {fallback.id: fallback for fallback in FALLBACKS}
NEEDS = {model.id: describe_need(model) for model in CATALOG}
Asked = dict[str, Any]
"""A person sets it by hand: decide()'s choice and chunk."""
FORCED: tuple[Asked, ...] = (
    {}, {"chunk": 4096}, {"chunk": 64},
    *({"choice": each} for each in (Choice(dtype="float16"), Choice(dtype="bfloat16"), Choice(kernels="math"), Choice(gqa="native"))),
    {"choice": Choice(offload="none", quantised="none")}, {"choice": Choice(dtype="float16", offload="model"), "chunk": 300},
)  # fmt: skip
EIGHTHS = [0, *(pytest.param(eighth, marks=pytest.mark.slow) for eighth in range(1, 8))]
"""Where everything is asked of everything, an eighth of the models is asked on each machine, on the next one another; the rest is left to the long run."""
SEEN = {"numbers": RunFailure("numbers", 4, "float16"), "memory": RunFailure("memory", 3), "crash": RunFailure("crash", None)}


def verdict(model: str, fallback: Fallback, most: int | None = 512) -> Verdict:
    seen = SEEN[next(fault for fault in SEEN if fault in fallback.faults)]
    return Verdict(
        Subject.fallback(model, fallback.id), False, seen=replace(seen, chunk_most=most if fallback.id == "smaller-chunk" else None)
    )


def one_eighth(machine: str, eighth: int) -> dict[str, Need]:
    return dict(list(NEEDS.items())[(list(MACHINES).index(machine) + eighth) % 8 :: 8])


def known(*verdicts: Verdict) -> dict[Subject, Verdict]:
    return {each.subject: each for each in verdicts}


def fallen_back(machine: str, asked: Need, fault: Fault, **by_hand: Any) -> list[tuple[str, Plan]]:
    verdicts: dict[Subject, Verdict] = {}
    steps: list[tuple[str, Plan]] = []

    @cache
    def decided(known: frozenset[Verdict]) -> Plan:
        return decide(MACHINES[machine], asked, verdicts={each.subject: each for each in known}, **by_hand)

    while (found := next_fallback(lambda known: decided(frozenset(known.values())), asked, verdicts, SEEN[fault])) is not None:
        taken, new, plan = found
        verdicts[new.subject] = new
        steps.append((taken.fallback.id, plan))
        assert len(steps) < 20, "the fallbacks do not end"
    return steps


# What a sentence says is what the plan is: every name of an option and every number in a reason.

OPTIONS: dict[str, tuple[str, ...]] = {
    "dtype": get_args(Dtype), "gqa": get_args(Gqa), "offload": get_args(Offload), "quantised": get_args(Quantised), "kernels": get_args(Kernel),
}  # fmt: skip


def positive(plan: Plan, reason: Reason) -> bool:
    """Whether it speaks for the option itself, not against one that was not taken."""
    against = {each.sentence for rejected in plan.rejected if rejected.field == reason.field for each in rejected.objections}
    return reason.sentence not in against


def says_what_is(plan: Plan, asked: Need) -> None:
    assert [each.field for each in plan.because] == list(DECIDED_FIELDS)
    for reason in plan.because:
        field, words = reason.field, str(reason.sentence)
        if field in OPTIONS and positive(plan, reason) and reason.sentence.key != "plan.overruled":
            own = getattr(plan, field)
            named = {option for option in OPTIONS[field] if re.search(rf"\b{re.escape(option)}\b", words)}
            assert named <= (set(own) if isinstance(own, tuple) else {own}), (field, own, words)
        for name, value in reason.sentence.values:
            expected = numbers(plan, asked, reason).get(name)
            if isinstance(value, int | float) and positive(plan, reason):
                assert expected is not None and value in expected, (field, name, value, expected, words)
    for rejected in plan.rejected:
        assert rejected.objections and rejected.option != str(getattr(plan, rejected.field)), rejected


def numbers(plan: Plan, asked: Need, reason: Reason) -> dict[str, tuple[Any, ...]]:
    """Every number that a reason of this field may hold, out of the plan."""
    most: tuple[Any, ...] = (plan.chunk_most,)
    return {
        "budget_bytes": {"mib": (plan.budget_bytes // MIB,), "chunk": most},
        "chunk_q": {"chunk": (plan.chunk_q,)},
        "chunk_most": {"chunk": most},
        "chunk_k": {"keys": (plan.chunk_k,)},
        "vae": {"pixels": (plan.vae.tile_pixels,)},
    }.get(reason.field, {})


def every_plan(machine: str, model: str, count: int) -> Iterator[tuple[tuple[Fallback, ...], Asked, Plan]]:
    asked = NEEDS[model]
    for by_hand in FORCED if count < 2 else FORCED[:4:3]:
        refused = False
        for fallbacks in itertools.combinations(FALLBACKS, count):
            try:
                plan = decide(MACHINES[machine], asked, verdicts=known(*(verdict(model, fallback) for fallback in fallbacks)), **by_hand)
            except Trouble:
                refused = True
                continue
            yield fallbacks, by_hand, plan
        if refused:  # A choice that cannot work here cannot without the fallbacks either.
            with pytest.raises(Trouble):
                decide(MACHINES[machine], asked, **by_hand)


@pytest.fixture
def decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one machine, where all verdicts are lessons: plans that differ in none of them are the same plan, made once."""
    made: dict[object, Any] = {}
    make = decide_module._make_plan

    def remembered(situation: Situation, where: FieldDecision) -> Any:
        key = situation.need, situation.choice, situation.chunk, situation.learned, where.option
        if key not in made:
            made[key] = make(situation, where)
        return made[key]

    monkeypatch.setattr(decide_module, "_make_plan", remembered)


@pytest.mark.slow
@pytest.mark.usefixtures("decided_once")
@pytest.mark.parametrize("eighth", EIGHTHS)
@pytest.mark.parametrize(("machine", "count"), combine(MACHINES, (0, 1, 2)))
def test_no_reason_names_another_value_than_the_fields(machine: str, count: int, eighth: int) -> None:
    walked = 0
    for model, asked in one_eighth(machine, eighth).items():
        for _, _, plan in every_plan(machine, model, count):
            says_what_is(plan, asked)
            walked += 1
    assert walked >= 2 * (1, 8, 35)[count]


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_each_field_that_a_fallback_changes_says_so_with_what_was_seen(machine: str) -> None:
    changed = 0
    for model, asked in NEEDS.items():
        plain = decide(MACHINES[machine], asked)
        for fallback in FALLBACKS:
            plan = decide(MACHINES[machine], asked, Choice(), known(verdict(model, fallback)))
            for field in (each.partition("/")[0] for each in fallback.against):
                if field not in DECIDED_FIELDS or getattr(plan, field) == getattr(plain, field):
                    continue
                changed += 1
                seen = str(describe_failure(verdict(model, fallback).seen))  # type: ignore[arg-type]
                reason = next(each for each in plan.because if each.field == field)
                assert seen in str(reason.sentence) and str(fallback.sentence) in str(reason.sentence), (field, reason)
                before = getattr(plain, field)
                options = [str(each) for each in before] if isinstance(before, tuple) else [before]
                gone = {
                    each.option for each in plan.rejected if each.field == field and any(seen in str(o.sentence) for o in each.objections)
                }
                names = {
                    "whole" if each == plain.vae else "kernel" if each is None else "no" if each is False else each for each in options
                }
                assert gone & names, (field, before, gone)
    assert changed > 10


@pytest.mark.slow
@pytest.mark.parametrize("eighth", EIGHTHS)
@pytest.mark.parametrize(("machine", "fault"), combine(MACHINES, get_args(Fault)))
def test_the_fallbacks_end_and_every_fallback_changes_the_plan(
    machine: str, fault: Fault, eighth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the fields are asked here. What each fallback replaced costs a plan a fallback, and has tests of its own below.
    monkeypatch.setattr(decide_module, "_replaced_by_fallbacks", lambda *_: ())
    taken = 0
    for asked in one_eighth(machine, eighth).values():
        for by_hand in FORCED:
            try:
                before = decide(MACHINES[machine], asked, **by_hand)
            except Trouble:
                continue
            for _, after in fallen_back(machine, asked, fault, **by_hand):
                assert choices(before) != choices(after)
                before = after
                taken += 1
    assert taken > 10


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "chunk"), combine(MACHINES, (AUTO, 4096, 512, 33)))
def test_each_smaller_chunk_really_runs_fewer_queries_at_a_time(machine: str, chunk: Any) -> None:
    """With 4096 asked for, "smaller chunks" was once said seven times while 4096 ran each time."""
    for model in ("sd15", "sdxl", "dia-1.6b"):
        asked = NEEDS[model]
        try:
            rows = count_at_once(decide(MACHINES[machine], asked, chunk=chunk), asked)
        except Trouble:
            continue
        for fallback, plan in fallen_back(machine, asked, "memory", chunk=chunk):
            if fallback == "smaller-chunk":
                assert count_at_once(plan, asked) < rows
                rows = count_at_once(plan, asked)
        assert rows <= (64 if asked.kind == "speech" else SMALLEST_CHUNK) or rows <= SMALLEST_CHUNK


def test_what_is_asked_what_runs_and_why_they_differ() -> None:
    asked = NEEDS["sd15"]
    fallback = BY_ID["smaller-chunk"]
    plan = decide(MACHINES["rtx-3060"], asked, verdicts=known(verdict("sd15", fallback)), chunk=4096)
    (why,) = [each.sentence for each in plan.because if each.field == "chunk_q"]
    assert plan.chunk_q == plan.chunk_most == 512
    assert str(why) == "You asked for 4096; 512 is used. Memory ran out at step 3."
    assert ("chunk_q", "4096") in [(each.field, each.option) for each in plan.rejected]
    assert decide(MACHINES["rtx-3060"], asked, verdicts=known(verdict("sd15", fallback)), chunk=64).chunk_q == 64
    automatic = decide(MACHINES["rtx-3060"], asked, Choice(), known(verdict("sd15", fallback)))
    assert automatic.chunk_q == AUTO and automatic.chunk_most == 512


def test_float32_after_float16_says_what_was_seen() -> None:
    fallback = BY_ID["float32"]
    plan = decide(MACHINES["m3-max-64gb"], NEEDS["sd15"], Choice(), known(verdict("sd15", fallback)))
    (why,) = [each.sentence for each in plan.because if each.field == "dtype"]
    assert plan.dtype == "float32"
    assert str(why) == "The whole model computes in float32. float16 produced NaN or infinity at step 4."
    (asked,) = [
        each.sentence
        for each in decide(MACHINES["m3-max-64gb"], NEEDS["sd15"], Choice(dtype="float16"), known(verdict("sd15", fallback))).because
        if each.field == "dtype"
    ]
    assert "You asked for float16" in str(asked) and "NaN" in str(asked)


def test_every_lowered_field_says_what_lowered_it() -> None:
    for machine in MACHINES.values():
        for model, asked in NEEDS.items():
            plain, bounded = (decide(machine, asked), decide(machine, asked, Choice(), known(verdict(model, BY_ID["smaller-chunk"], 64))))
            if plain.budget_bytes != bounded.budget_bytes:
                (why,) = [each for each in bounded.because if each.field == "budget_bytes"]
                assert "Memory ran out at step 3." in str(why.sentence)
                assert ("budget_bytes", str(plain.budget_bytes)) in [(each.field, each.option) for each in bounded.rejected]
    plan = decide(MACHINES["m2-16gb"], NEEDS["sdxl-turbo"], Choice(), known(verdict("sdxl-turbo", BY_ID["smaller-chunk"], 64)))
    (why,) = [each for each in plan.because if each.field == "chunk_most"]
    assert plan.chunk_most == 64 and str(why.sentence) == "Attention processes at most 64 queries at a time. Memory ran out at step 3."


def test_a_budget_that_the_machine_itself_limits_is_not_blamed_on_memory() -> None:
    """A limit of the machine's that is lower than what memory once allowed is what lowered it."""
    asked, fallback = NEEDS["sd15"], known(verdict("sd15", BY_ID["smaller-chunk"], 512))
    roomy = replace(MACHINES["rtx-3060"], free_bytes=10 * GIB)
    limited = Quirk(
        id="a-limit",
        where=(Where(kinds=("cuda",)),),
        sentence=say("test.limit", "No more than 96 MiB."),
        source="test",
        limits=(("bytes", 96 * MIB),),
    )
    bounded = decide(roomy, asked, Choice(), fallback)
    assert why(bounded) == "budget.learned" and bounded.budget_bytes > 96 * MIB
    by_limit = decide(roomy, asked, Choice(), fallback, (*QUIRKS, limited))
    assert by_limit.budget_bytes == 96 * MIB and why(by_limit) == "budget.limit"
    (said,) = [each for each in by_limit.because if each.field == "budget_bytes"]
    assert "No more than 96 MiB." in str(said.sentence) and "quarter" not in str(said.sentence) and said.source == "test"
    (gone,) = [each for each in by_limit.rejected if each.field == "budget_bytes"]
    assert [str(each.sentence) for each in gone.objections] == ["No more than 96 MiB."]
    loose = replace(limited, limits=(("bytes", 4 * GIB),))
    assert why(decide(roomy, asked, Choice(), {}, (*QUIRKS, loose))) == "budget.quarter", "a limit that does not bite is no reason"


def why(plan: Plan) -> str:
    return next(each.sentence.key for each in plan.because if each.field == "budget_bytes")


def test_the_last_fallback_is_the_one_that_is_told() -> None:
    verdicts = known(*(verdict("sd15", BY_ID[each]) for each in ("offload", "offload-all")))
    (why,) = [each for each in decide(MACHINES["t4"], NEEDS["sd15"], Choice(), verdicts).because if each.field == "offload"]
    assert "layer by layer" in str(why.sentence)


def test_what_one_model_broke_of_says_nothing_of_another() -> None:
    verdicts = known(*(verdict("sd15", fallback) for fallback in FALLBACKS))
    assert decide(MACHINES["t4"], NEEDS["sdxl"], Choice(), verdicts) == decide(MACHINES["t4"], NEEDS["sdxl"])
    assert [each.fallback.id for each in learned(verdicts, "sd15")] == [fallback.id for fallback in FALLBACKS]


@pytest.mark.slow
def test_numbers_in_reasons_are_the_plans_own() -> None:
    """The budget, the forecast of offloading and tiling: each GiB and MiB worked out again from what it speaks of."""
    checked: set[str] = set()
    for machine in MACHINES.values():
        for asked in NEEDS.values():
            for share, most in ((1, None), (2, 512), (5, 32), (5, None)):
                hardware = replace(machine, free_bytes=machine.free_bytes // share)
                fallbacks = {} if most is None else known(verdict(asked.model, BY_ID["smaller-chunk"], most))
                plan = decide(hardware, asked, Choice(), fallbacks)
                its = as_processor(hardware) if plan.device == "cpu" else hardware  # a voice too large for its card
                for reason in objected(plan):
                    checked.add(checks(reason, plan, asked, its.free_bytes))
    assert checked >= {
        "offload.swap",
        "offload.full",
        "vae.room",
        "chunk_q.budget",
        "budget.quarter",
        "budget.least",
        "budget.learned",
        "budget.learned-least",
    }, checked


def beside(plan: Plan, asked: Need, free: int) -> int:
    """What is left of 85% beside the model: its weights, its caches and its work are taken off. On a Mac, of the parts whose attention
    this plan is for."""
    parts = parts_on([each.path for each in (plan, *plan.others) if each.path], plan.path, asked, plan.pad_heads)
    taken = (
        resident_bytes(asked, plan.precision, plan.quantised, plan.offload, part) + work_bytes(asked, part, how, plan.quantised)
        for part, how in zip(asked.parts, plan.precision, strict=True)
        if part in parts
    )
    return int(TIGHT * free) - max(taken, default=0)


def objected(plan: Plan) -> Iterator[tuple[str, Sentence]]:
    for rejected in plan.rejected:
        yield from ((rejected.option, each.sentence) for each in rejected.objections)
    yield from (("", each.sentence) for each in (*plan.because, *plan.warnings))


def checks(reason: tuple[str, Sentence], plan: Plan, asked: Need, free: int) -> str:
    option, sentence = reason
    said = dict(sentence.values)
    vae = next(((part, how) for part, how in zip(asked.parts, plan.precision, strict=True) if part.role == "vae"), None)
    match sentence.key:
        case "offload.swap" | "offload.full" if option:
            needed = needed_bytes(asked, plan.precision, plan.quantised, option, SMALLEST)  # type: ignore[arg-type]
            assert (said["gib"], said["free"]) == round_apart(needed, free) and needed > int(TIGHT * free)
        case "vae.room" if option and vae:
            tile = 0 if option == "whole" else int(option)
            room = int(TIGHT * free) - resident_bytes(asked, plan.precision, plan.quantised, plan.offload, vae[0])
            assert said["gib"] == gib(vae_bytes(asked.width, asked.height, vae[1].compute, Vae(True, tile), vae[1].device))
            assert said["room"] == gib(max(0, room))
        case "chunk_q.budget" if option:
            rows = asked.queries if option == "whole" else min(int(option), asked.queries)
            keys = min(asked.keys, plan.chunk_k or asked.keys)
            size = scores_bytes(asked.batch, asked.heads, rows, keys, plan.score_dtype or plan.dtype)
            assert said["mib"] == -(-size * COPIES_OF_SCORES // MIB) and size * COPIES_OF_SCORES > plan.budget_bytes
            assert said["most"] == plan.budget_bytes // MIB
        case "budget.quarter":
            assert said["mib"] == plan.budget_bytes // MIB
            assert plan.budget_bytes == min(beside(plan, asked, free) // 4, 1024 * MIB), "a quarter, at most 1024"
        case "budget.least":
            assert said["mib"] == plan.budget_bytes // MIB == 16
            assert beside(plan, asked, free) // 4 < plan.budget_bytes, "a quarter is less"
        case "budget.learned" | "budget.learned-least":
            rows = int(str(said["chunk"]))
            need_bytes = scores_bytes(asked.batch, asked.heads, rows, asked.keys, plan.score_dtype or plan.dtype) * COPIES_OF_SCORES
            assert said["mib"] == plan.budget_bytes // MIB and rows == plan.chunk_most
            if sentence.key == "budget.learned":
                assert plan.budget_bytes == need_bytes, "no more than so many need"
            else:
                assert need_bytes < plan.budget_bytes == 16 * MIB, "so many need less"
        case _:
            return ""
    return sentence.key


def named(plan: Plan) -> dict[str, str]:
    """Each field that is one option of several, as `rejected` names it."""
    return {
        "dtype": plan.dtype,
        "score_dtype": plan.score_dtype or "kernel",
        "gqa": plan.gqa,
        "offload": plan.offload,
        "chunk_q": "automatic" if plan.chunk_q == AUTO else str(plan.chunk_q),
        "chunk_most": str(plan.chunk_most or "none"),
        "chunk_k": str(plan.chunk_k or "automatic"),
        "budget_bytes": str(plan.budget_bytes),
        "quantised": plan.quantised,
        "row": plan.row,
        "vae": str(plan.vae.tile_pixels or "whole"),
        "contiguous": "yes" if plan.contiguous else "no",
        "explicit_mask": "yes" if plan.explicit_mask else "no",
        "expand_mask": "yes" if plan.expand_mask else "no",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "fault"), combine(("rtx-3060", "m2-16gb", "gtx-1060"), get_args(Fault)))
def test_what_was_before_each_fallback_stands_among_what_was_given_up(machine: str, fault: Fault) -> None:
    """The second smaller chunk once took the place of the first, as if 512 had never been."""
    gone: set[str] = set()
    chunks: tuple[Chunk, ...] = (AUTO, 4096)
    for model, chunk in itertools.product(("sd15", "sdxl", "dia-1.6b"), chunks):
        try:
            before = decide(MACHINES[machine], NEEDS[model], chunk=chunk)
        except Trouble:
            continue
        for fallback, after in fallen_back(machine, NEEDS[model], fault, chunk=chunk):
            was, now = named(before), named(after)
            for field in (each for each in was if was[each] != now[each]):
                rejected = [each for each in after.rejected if (each.field, each.option) == (field, was[field])]
                assert len(rejected) == 1 and rejected[0].objections, (model, fallback, field, was[field])
                gone.add(field)
            before = after
    assert gone >= {"memory": {"chunk_most", "budget_bytes"}, "numbers": {"dtype", "score_dtype"}, "crash": {"chunk_most"}}[fault] - (
        {"dtype", "score_dtype"} if machine == "gtx-1060" else set()
    ), gone


def test_what_was_given_up_says_which_fallback_and_what_was_seen() -> None:
    plans = [plan for fallback, plan in fallen_back("gtx-1060", NEEDS["sd15"], "memory") if fallback == "smaller-chunk"]
    assert [plan.chunk_most for plan in plans[:3]] == [512, 256, 128]
    gone = {each.option: str(each.objections[0].sentence) for each in plans[2].rejected if each.field == "chunk_most"}
    assert gone == {"none": "Memory ran out at step 3.", "256": "Attention works in smaller chunks. Memory ran out at step 3."}


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("fault", ["numbers", "crash"])
def test_own_arithmetic_is_not_offered_where_it_already_runs(name: str, fault: Fault) -> None:
    need, choice, verdicts = NEEDS["sd15"], Choice(kernels=()), dict[Subject, Verdict]()
    while found := next_fallback(lambda given: decide(MACHINES[name], need, choice, given), need, verdicts, RunFailure(fault, 3)):
        assert found[0].fallback.id != "own-arithmetic"
        verdicts[found[1].subject] = found[1]


def test_scores_in_float32_are_not_offered_where_a_processor_has_them_anyway() -> None:
    fast, need, verdicts = replace(MACHINES["cpu"], fast_bf16=True), NEEDS["sd15"], dict[Subject, Verdict]()
    while found := next_fallback(
        lambda given: decide(fast, need, Choice(dtype="bfloat16"), given), need, verdicts, RunFailure("numbers", 3)
    ):
        assert found[0].fallback.id != "float32-scores"
        verdicts[found[1].subject] = found[1]
    assert verdicts


@pytest.mark.slow
def test_a_memory_fallback_never_plans_for_more_memory() -> None:
    """Room that offloading won once went to larger tiles: 4.23 GiB before the fallback, 4.47 after it."""
    ends: dict[str, int] = {}
    for name, share, model in itertools.product(("rtx-3060", "gtx-1060", "m1-8gb"), (1.0, 0.4), ("sdxl", "sd15", "starter-voice")):
        machine = replace(MACHINES[name], free_bytes=int(MACHINES[name].free_bytes * share))
        for choice in (Choice(), Choice(quantised="torchao-int8"), Choice(offload="group")):
            asked, verdicts = NEEDS[model], dict[Subject, Verdict]()

            def decided(known: Any, machine: Any = machine, asked: Any = asked, choice: Any = choice) -> Plan:
                return decide(machine, asked, choice, known)

            try:
                before = decided(verdicts)
            except Trouble:
                continue
            while (found := next_fallback(decided, asked, verdicts, SEEN["memory"])) is not None:
                taken, new, after = found
                case = (name, share, model, choice, taken.fallback.id)
                assert peak_bytes(asked, after) <= peak_bytes(asked, before), case
                assert (after.vae.tile_pixels or 1 << 20) <= (before.vae.tile_pixels or 1 << 20), case
                verdicts[new.subject], before = new, after
            if model == "sdxl" and name == "rtx-3060":
                ends[before.offload] = ends.get(before.offload, 0) + 1
    assert ends == {"sequential": 6}, "the last fallbacks were lost"


def test_memory_shrinks_chunks_before_it_offloads() -> None:
    steps = fallen_back("rtx-3060", NEEDS["sd15"], "memory")
    ids = [id_ for id_, _ in steps]
    assert ids[0] == "smaller-chunk" and ids[-1] == "offload-all" and ids.index("tiled-decoder") < ids.index("offload")
    last = steps[-1][1]
    assert last.chunk_most == SMALLEST_CHUNK and last.offload == "sequential" and last.vae.tile_pixels > 0


@pytest.mark.parametrize("machine", ["cpu", "m1-8gb"])
def test_where_memory_is_shared_a_pictures_parts_wait_in_files_and_a_voices_nowhere(machine: str) -> None:
    steps = fallen_back(machine, NEEDS["sd15"], "memory")
    assert steps[-1][0] == "offload" and steps[-1][1].offload == "model"
    assert [id_ for id_, _ in fallen_back(machine, NEEDS["dia-1.6b"], "memory")] == ["smaller-chunk"]


@pytest.mark.slow
def test_the_fallbacks_of_a_voice_never_speak_of_pictures() -> None:
    for machine in MACHINES:
        for fault in get_args(Fault):
            for fallback, _ in fallen_back(machine, NEEDS["dia-1.6b"], fault):
                assert "icture" not in str(BY_ID[fallback].sentence) and "ecoder" not in str(BY_ID[fallback].sentence)


def test_a_broken_decoder_is_helped_before_anything_else() -> None:
    asked = NEEDS["sd15"]

    def first(where: Any) -> str:
        found = next_fallback(lambda known: decide(MACHINES["t4"], asked, Choice(), known), asked, {}, RunFailure("memory"), where=where)
        assert found is not None
        return found[0].fallback.id

    assert first("vae") == "tiled-decoder" and first("denoiser") == first(None) == "smaller-chunk"


def test_where_the_weights_did_not_fit_only_what_holds_them_otherwise_is_tried() -> None:
    asked = NEEDS["sdxl"]
    found = next_fallback(lambda known: decide(MACHINES["rtx-3060"], asked, Choice(), known), asked, {}, RunFailure("memory"), loading=True)
    assert found is not None and found[0].fallback.id == "offload"


def test_a_tile_is_smaller_than_the_picture() -> None:
    tiles = [plan.vae.tile_pixels for fallback, plan in fallen_back("rtx-3060", NEEDS["sd15"], "memory") if "tile" in fallback]
    assert tiles == [256]
    assert [plan.vae.tile_pixels for fallback, plan in fallen_back("m3-max-64gb", NEEDS["sdxl"], "memory") if "tile" in fallback] == [
        512,
        256,
    ]


def test_every_fallback_has_a_sentence_of_its_own() -> None:
    assert len({fallback.sentence.key for fallback in FALLBACKS}) == len(FALLBACKS) == len(BY_ID)
    fields_of_plan = {each.name for each in fields(Plan)}
    for fallback in FALLBACKS:
        assert {each.partition("/")[0] for each in fallback.against} <= fields_of_plan | {"decoder", "linear", "scaled"}


@pytest.mark.parametrize(
    ("code", "words", "wedged", "fault", "key"),
    [
        (-9, "", False, "memory", "engine.killed"),
        (-6, "", False, "crash", "engine.aborted"),
        (-11, "", False, "crash", "engine.signal"),
        (1, "Traceback", False, "crash", "engine.exit"),
        (None, "", True, "crash", "engine.wedged"),
    ],
)
def test_a_death_is_told_by_its_code(code: int | None, words: str, wedged: bool, fault: Fault, key: str) -> None:
    death = diagnose(code, words, wedged)
    assert (death.fault, death.sentence.key, death.quirk) == (fault, key, "")


@pytest.mark.parametrize(
    ("free_gib", "key", "fault"), [(18, "engine.outside", None), (2, "engine.killed", "memory"), (0, "engine.killed", "memory")]
)
def test_memory_is_blamed_only_where_it_was_short(free_gib: int, key: str, fault: Any) -> None:
    """0.6 of 19 GB were taken, and the person was told to close other programs."""
    last = Reading(system_bytes=19 * GIB, system_free_bytes=free_gib * GIB)
    death = diagnose(-9, "", last=last)
    assert (death.sentence.key, death.fault) == (key, fault)
    assert diagnose(-15, "", last=last).fault is None, "who is asked to end did not fail"


def test_last_words_that_are_known_name_their_row() -> None:
    words = (
        "/AppleInternal/MPSNDArray.mm:89: failed assertion `[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32'"
    )
    death = diagnose(-6, "some noise\n" + words)
    assert death.quirk == "mps-4gib" and death.sentence == next(row.sentence for row in QUIRKS if row.id == "mps-4gib")


STEP = events.Step(1, 10, 2.0, "frames", 4.5, Reading(), part=0, parts=2)
SENTENCE = say("test.word", "A word.")


def test_progress_told_to_somebody_late_folds_to_the_same() -> None:
    happened: list[events.Event] = [
        events.Loading("m", SENTENCE), events.Note(SENTENCE), STEP, events.Sound(0, "a.wav", 0, 1), events.Adjusted("r", SENTENCE),
        events.PartDone(0, 2, "0.wav", "one", 1, 3.0), events.Sound(1, "b.wav", 0, 1), replace(STEP, done=7, part=1), events.Preview(2, "p.jpg"),
    ]  # fmt: skip
    progress = Progress()
    for each in happened:
        progress = progress.add(each)
    assert [part.index for part in progress.parts] == [0] and [sound.part for sound in progress.sounds] == [1]
    late = Progress()
    for each in progress.replay():
        late = late.add(each)
    assert late == progress
    ended = progress.add(events.Finished(("x",), 1, 1, "frames", 0))
    assert ended.end is not None and ended.add(events.PartDone(0, 2, "new.wav", "one", 2, 1.0)).parts[0].path == "new.wav"


@pytest.mark.parametrize("fault", ["numbers", "crash"])
@pytest.mark.parametrize("choice", [Choice(), Choice(quantised="int4")])
def test_packed_weights_are_the_first_to_go(fault: Fault, choice: Choice) -> None:
    seen = {each: Verdict(each, True, 0.5) for each in (Subject.path("quantised/int8", "float16"), Subject.quicker("int8", "float16"))}
    need = describe_need(next(each for each in CATALOG if each.id == "dia-1.6b"))
    assert decide(MACHINES["m2-16gb"], need, choice, seen).quantised in ("int8", "int4")
    taken = next_fallback(lambda verdicts: decide(MACHINES["m2-16gb"], need, choice, verdicts), need, seen, RunFailure(fault, 3))
    assert taken is not None and taken[0].fallback.id == "whole-weights" and taken[2].quantised == "none"
