"""A part that float16 overflows stays in it where only float32 would be left, if its layers can be scaled; a run that fails takes it back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, Verdicts
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import next_fallback
from app.compat.planning.memory_formulas import part_bytes
from app.compat.planning.types import Dtype, Plan
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need

Z_IMAGE = describe_need(BY_ID["z-image-turbo"])
T4 = MACHINES["t4"]
V100 = replace(T4, name="Tesla V100", capability=(7, 0))
RX_6800 = Hardware("rocm", "AMD Radeon RX 6800", None, 16 << 30, 15 << 30, False, torch="2.13.0+rocm7.2", gfx="gfx1030")


def denoiser(machine: Hardware, verdicts: Verdicts = {}) -> Dtype:  # noqa: B006 - only read
    how = decide(machine, Z_IMAGE, verdicts=verdicts).of("denoiser")
    assert how is not None
    return how.compute


def why(plan: Plan) -> str:
    return next(each.sentence.key for each in plan.because if each.field == "precision")


@pytest.mark.parametrize(
    ("machine", "dtype"),
    [
        (T4, "float16"), (V100, "float16"), (RX_6800, "float16"), (MACHINES["rtx-3060"], "bfloat16"), (MACHINES["m3-max-64gb"], "bfloat16"),
        (MACHINES["gtx-1060"], "float32"), (MACHINES["cpu"], "float32"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.name,
)  # fmt: skip
def test_float16_is_taken_where_bfloat16_is_slow(machine: Hardware, dtype: Dtype) -> None:
    plan = decide(machine, Z_IMAGE)
    assert denoiser(machine) == dtype
    assert (why(plan) == "precision.scaled") == (dtype == "float16")


def test_a_part_that_cannot_be_scaled_is_widened_as_before() -> None:
    """PixArt's decoder."""
    plan = decide(T4, describe_need(BY_ID["pixart-sigma"]))
    assert {each.role: each.compute for each in plan.precision}["vae"] == "float32" and why(plan) != "precision.scaled"


def test_its_weights_take_half_of_the_memory() -> None:
    part = next(each for each in Z_IMAGE.parts if each.role == "denoiser")
    how = decide(T4, Z_IMAGE).of("denoiser")
    assert how is not None and part_bytes(part, how, "none") == 2 * part.parameters


def test_a_run_that_gives_no_numbers_widens_the_denoiser_first() -> None:
    lesson = next_fallback(lambda seen: decide(T4, Z_IMAGE, verdicts=seen), Z_IMAGE, {}, RunFailure("numbers", 1, "float16"))
    assert lesson is not None and lesson[0].fallback.id == "wide-denoiser"
    after = lesson[2].of("denoiser")
    assert after is not None and after.compute == "float32"
    told = [each.sentence.key for gone in lesson[2].rejected if gone.option == "transformer: float16" for each in gone.objections]
    assert told == ["learned"]
    other = describe_need(BY_ID["sd15"])
    none = next_fallback(lambda seen: decide(T4, other, verdicts=seen), other, {}, RunFailure("numbers", 1, "float16"))
    assert none is not None and none[0].fallback.id != "wide-denoiser"


def test_float32_that_was_found_wrong_is_no_way_out() -> None:
    wrong = Verdict(Subject.part("denoiser", "float32"), False, 0.5)
    assert denoiser(T4, {wrong.subject: wrong}) == "float16"
