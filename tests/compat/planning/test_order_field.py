"""Channels last: decided from what was seen on a card with tensor cores, without effect on a forecast, taken back after a failed run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, learn, load
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import choices, next_fallback
from app.compat.planning.memory_formulas import peak_bytes
from app.compat.planning.order_field import LAST, RIGHT
from app.compat.planning.types import HALVES, Choice, Dtype, Plan
from app.engine.models.catalog import BY_ID
from app.engine.models.loading.loaded import same_placement
from app.engine.models.model import describe_need

T4 = MACHINES["t4"]
RTX20 = replace(T4, name="NVIDIA GeForce RTX 2060", memory_bytes=6 << 30, free_bytes=5 << 30)
SD15, SDXL = (describe_need(BY_ID[name]) for name in ("sd15", "sdxl"))
Seen = dict[Subject, Verdict]


def see(dtype: Dtype = "float16", share: float = 0.8, right: bool = True) -> Seen:
    found = (
        Verdict(Subject.path(RIGHT, dtype), right, 1e-3 if right else 0.5),
        Verdict(Subject.quicker(LAST, dtype), share <= 0.97, share),
    )
    return {each.subject: each for each in found}


EVERYWHERE = {subject: each for dtype in HALVES for subject, each in see(dtype).items()}


def told(plan: Plan) -> list[str]:
    return [
        each.sentence.key for gone in plan.rejected if (gone.field, gone.option) == ("channels_last", "yes") for each in gone.objections
    ]


@pytest.mark.parametrize("card", [T4, RTX20], ids=["t4", "rtx-2060"])
@pytest.mark.parametrize("need", [SD15, SDXL], ids=["sd15", "sdxl"])
def test_it_is_chosen_once_it_was_seen_to_be_right_and_quicker(card: object, need: object) -> None:
    plan = decide(card, need, verdicts=see())  # type: ignore[arg-type]
    why = next(each.sentence for each in plan.because if each.field == "channels_last")
    assert plan.channels_last and why.key == "channels_last.yes" and "80%" in str(why) and told(plan) == []
    refused = Verdict(Subject.quicker(LAST, "float16"), False, float("inf"), words="no engine")
    for seen, said in (
        ({}, ["channels_last.unseen"]),
        (dict(list(see().items())[:1]), ["channels_last.unseen"]),
        (see("bfloat16"), ["channels_last.unseen"]),
        (see(share=0.98), ["channels_last.slower"]),
        (see(share=1.4), ["channels_last.slower"]),
        (see(right=False), ["plan.failed"]),
        (see() | {refused.subject: refused}, ["plan.untimed"]),
    ):
        kept = decide(card, need, verdicts=seen)  # type: ignore[arg-type]
        assert not kept.channels_last and told(kept) == said


def test_newer_cards_are_judged_in_the_dtype_that_computes() -> None:
    card = MACHINES["rtx-3060"]
    dtype = decide(card, SDXL).dtype
    assert dtype in HALVES and decide(card, SDXL, verdicts=see(dtype)).channels_last
    assert not decide(card, SDXL, verdicts=see("float16" if dtype == "bfloat16" else "bfloat16")).channels_last


@pytest.mark.parametrize(
    ("machine", "model", "choice"),
    [
        ("gtx-1660", "sdxl", Choice()), ("gtx-1060", "sdxl", Choice()), ("m3-max-64gb", "sdxl", Choice()), ("cpu", "sdxl", Choice()),
        ("t4", "dia-1.6b", Choice()), ("t4", "z-image-turbo", Choice()), ("t4", "starter-painter", Choice()), ("t4", "sdxl", Choice(dtype="float32")),
    ],
)  # fmt: skip
def test_elsewhere_there_is_nothing_to_decide(machine: str, model: str, choice: Choice) -> None:
    """No tensor cores; no card; no UNet; nothing in half precision."""
    plan = decide(MACHINES[machine], describe_need(BY_ID[model]), choice, EVERYWHERE)
    assert not plan.channels_last and told(plan) == []
    assert next(each.sentence.key for each in plan.because if each.field == "channels_last") == "channels_last.no"


def test_a_gtx_16_whose_float16_was_seen_to_be_right_still_has_no_tensor_cores() -> None:
    retired = Verdict(Subject.row("gtx16-fp16"), True)
    plan = decide(MACHINES["gtx-1660"], SDXL, verdicts=EVERYWHERE | {retired.subject: retired})
    assert plan.dtype == "float16" and not plan.channels_last and told(plan) == []


@pytest.mark.parametrize("card", [T4, RTX20], ids=["t4", "rtx-2060"])
def test_nothing_else_of_a_plan_changes(card: object) -> None:
    usual, last = (decide(card, SDXL, verdicts=seen) for seen in ({}, see()))  # type: ignore[arg-type]
    assert choices(replace(last, channels_last=False)) == choices(usual)
    assert peak_bytes(SDXL, last) == peak_bytes(SDXL, usual)
    assert not same_placement(usual, last), "a loaded model is loaded anew"


def test_a_failed_run_takes_it_back() -> None:
    lesson = next_fallback(lambda seen: decide(T4, SDXL, verdicts=seen), SDXL, see(), RunFailure("crash", 3, "float16"))
    assert lesson is not None and lesson[0].fallback.id == "usual-order" and not lesson[2].channels_last
    none = next_fallback(lambda seen: decide(T4, SDXL, verdicts=seen), SDXL, {}, RunFailure("crash", 3, "float16"))
    assert none is not None and none[0].fallback.id != "usual-order"


def test_another_torch_takes_it_back(tmp_path: Path) -> None:
    for each in see().values():
        learn(tmp_path, T4, each)
    assert decide(T4, SDXL, verdicts=load(tmp_path, T4)).channels_last
    newer = replace(T4, torch="2.14.0+cu126")
    assert told(decide(newer, SDXL, verdicts=load(tmp_path, newer))) == ["channels_last.unseen"]
