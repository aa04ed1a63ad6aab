"""What the check of a machine found wrong: a dtype, a decoder, a codec or the whole device is avoided, for the models it concerns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware, as_processor
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, Need, Plan
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need

MAC = replace(MACHINES["m3-max-64gb"], pretended="")
CARD = replace(MACHINES["rtx-3060"], pretended="")
HALVES = ("float16", "bfloat16")
ALL = (*HALVES, "float32")
PICTURE, VOICE = (describe_need(BY_ID[each]) for each in ("sd15", "dia-1.6b"))


def wrong(part: str, *dtypes: str) -> dict[Subject, Verdict]:
    subjects = [Subject.path(f"{part}/{each}", each) if part in ("linear", "convolution") else Subject.part(part, each) for each in dtypes]
    return {each: Verdict(each, False, error=0.8) for each in subjects}


def why(plan: Plan, field: str) -> str:
    return next(str(each.sentence) for each in plan.because if each.field == field)


@pytest.mark.parametrize("part", ["text", "denoiser", "convolution", "linear"])
def test_a_part_of_a_picture_wrong_in_a_dtype(part: str) -> None:
    plan = decide(MAC, PICTURE, verdicts=wrong(part, "float16"))
    assert (plan.device, plan.dtype) == ("mps", "bfloat16") and "wrongly: up to 80% off" in why(plan, "dtype")
    assert decide(MAC, PICTURE, verdicts=wrong(part, *HALVES)).dtype == "float32"
    both = decide(MAC, PICTURE, verdicts=wrong(part, *ALL))
    assert (both.device, both.runs_on) == ("cpu", "cpu") and "In float32 this machine computes" in why(both, "device")
    assert [each.sentence.key for each in both.warnings] == ["device.wrong"]


@pytest.mark.parametrize(
    ("part", "concerned"), [("voice-row", VOICE), ("voice-text", VOICE), ("denoiser", PICTURE), ("convolution", PICTURE)]
)
def test_the_other_kind_of_model_stays_on_the_device(part: str, concerned: Need) -> None:
    verdicts = wrong(part, *ALL)
    devices = {need.model: decide(CARD, need, verdicts=verdicts).device for need in (PICTURE, VOICE)}
    assert devices == {need.model: "cpu" if need is concerned else "cuda" for need in (PICTURE, VOICE)}


def test_a_decoder_that_is_wrong_in_half_computes_wider() -> None:
    plan = decide(MAC, PICTURE, verdicts=wrong("vae", "float16"))
    assert plan.dtype == "float16" and {each.role: each.compute for each in plan.precision}["vae"] == "float32"
    computes = {each.role: each.compute for each in decide(MAC, PICTURE, verdicts=wrong("vae", "float16", "float32")).precision}
    assert computes["vae"] == "bfloat16"
    assert decide(MAC, PICTURE, verdicts=wrong("vae", *ALL)).device == "cpu"


def test_a_codec_that_is_wrong_goes_to_the_processor_alone() -> None:
    plan = decide(CARD, VOICE, verdicts=wrong("codec", "float32"))
    assert "the starter voice's codec wrongly" in why(plan, "precision")
    assert {each.role: each.device for each in plan.precision} == {"speech": "cuda", "codec": "cpu"}
    assert {each.role: each.device for each in decide(CARD, VOICE).precision} == {"speech": "cuda", "codec": "cuda"}


@pytest.mark.parametrize("hardware", [MAC, CARD], ids=["mac", "card"])
@pytest.mark.parametrize("need", [PICTURE, VOICE], ids=["picture", "voice"])
def test_the_processors_plan_knows_nothing_of_the_device(hardware: Hardware, need: Need) -> None:
    """Verdicts about the device's kernels do not bind the processor; what runs of the model taught does."""
    seen = wrong("linear", *ALL) | wrong("convolution", *ALL)
    seen |= {each: Verdict(each, False, 1.0) for each in (Subject.path("kernels/own", "float32"), Subject.row("masked-rows"))}
    lesson = Subject.fallback(need.model, "smaller-chunk")
    taught = {lesson: Verdict(lesson, False, seen=RunFailure("memory", 3, chunk_most=256))}
    plan, alone = decide(hardware, need, verdicts=seen | taught), decide(as_processor(hardware), need, verdicts=taught)
    assert alone.chunk_most == 256

    def others(each: Plan) -> Plan:
        return replace(each, because=tuple(reason for reason in each.because if reason.field != "device"), rejected=(), warnings=())

    assert others(plan) == others(alone)


def test_a_dtype_asked_for_that_is_wrong_is_refused_with_the_reason() -> None:
    with pytest.raises(Trouble, match="wrongly: up to 80% off"):
        decide(MAC, PICTURE, Choice(dtype="float16"), wrong("denoiser", "float16"))


def test_a_card_too_small_for_a_voice_is_told_as_well() -> None:
    small = replace(MACHINES["gtx-1060"], pretended="", memory_bytes=2 << 30, free_bytes=(2 << 30) - (800 << 20))
    plan = decide(small, VOICE)
    assert plan.device == "cpu" and [each.sentence.key for each in plan.warnings] == ["device.small"]


def test_a_processor_is_never_given_up() -> None:
    assert decide(MACHINES["cpu"], PICTURE, verdicts=wrong("denoiser", *ALL)).device == "cpu"
