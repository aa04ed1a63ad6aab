"""A denoiser on a card of 6 GB: as much of it stays on the card as fits, which the plan tells and the forecast counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.base.trouble import Trouble
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.memory_formulas import GIB, held_bytes, part_bytes, peak_bytes, sent_bytes, usable_bytes
from app.compat.planning.types import Choice
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need

SDXL = describe_need(BY_ID["sdxl"])
SD_3 = describe_need(BY_ID["sd35-medium"])
RTX_2060 = replace(MACHINES["t4"], name="NVIDIA GeForce RTX 2060", memory_bytes=6 * GIB, free_bytes=6 * GIB - (600 << 20), packages=())


def test_two_thirds_of_sdxls_denoiser_stay_on_a_card_of_6_gb() -> None:
    """Of 5.1 GB that were sent at each step 1.5 are left."""
    hardware = RTX_2060
    plan = decide(hardware, SDXL)
    how, part = plan.of("denoiser"), next(each for each in SDXL.parts if each.role == "denoiser")
    assert how is not None and plan.offload == "group"
    whole = part_bytes(part, how, "none")
    assert whole / 1e9 == pytest.approx(5.13, abs=0.02) and (whole - how.kept_bytes) / 1e9 == pytest.approx(1.53, abs=0.1)
    assert peak_bytes(SDXL, plan) <= usable_bytes(hardware)
    why = next(each.sentence for each in plan.because if each.field == "offload")
    assert why.key == "offload.kept-steps" and "3.4 of 4.8 GiB" in str(why)
    assert held_bytes(SDXL, plan) == 0, "between pictures nothing stays"


def test_what_stays_follows_the_free_memory_and_the_forecast_with_it() -> None:
    plans = [decide(replace(RTX_2060, free_bytes=int(free * GIB)), SDXL) for free in (5.4, 4.0, 2.0)]
    kept = [plan.of("denoiser").kept_bytes for plan in plans]  # type: ignore[union-attr]
    assert kept[0] > kept[1] > kept[2]
    peaks = [peak_bytes(SDXL, plan) for plan in plans]
    assert peaks[0] > peaks[1] > peaks[2] and peaks[2] <= 0.85 * 2.0 * GIB


def test_after_memory_ran_out_half_as_much_stays() -> None:
    lesson = Verdict(Subject.fallback("sdxl", "offload"), False, seen=RunFailure("memory", 2, "float16"))
    before, after = (decide(RTX_2060, SDXL, Choice(offload="group"), seen).of("denoiser") for seen in ({}, {lesson.subject: lesson}))
    assert before is not None and after is not None and 0 < after.kept_bytes <= before.kept_bytes // 2 + (1 << 20)


@pytest.mark.parametrize("machine", ["gtx-1060", "gtx-1660"])
def test_where_layers_are_widened_to_compute_less_of_them_stays(machine: str) -> None:
    """Wide copies and results take twice as much."""
    how, other = (decide(hardware, SDXL).of("denoiser") for hardware in (MACHINES[machine], RTX_2060))
    assert how is not None and other is not None and how.storage != how.compute
    assert 0.8 * other.kept_bytes < how.kept_bytes < other.kept_bytes


@pytest.mark.parametrize("machine", ["gtx-1060", "gtx-1660"])
def test_the_lora_of_lightning_is_sent_as_narrow_as_it_is_stored(machine: str) -> None:
    """Wide it made 2.73 GiB a step."""
    lightning = describe_need(BY_ID["sdxl-lightning"])
    plan = decide(MACHINES[machine], lightning)
    how = plan.of("denoiser")
    assert how is not None and (how.storage, how.compute) == ("float16", "float32")
    assert sent_bytes(lightning, plan) / GIB == pytest.approx(2.33, abs=0.01) and peak_bytes(lightning, plan) <= usable_bytes(
        MACHINES[machine]
    )


@pytest.mark.parametrize("machine", ["gtx-1060", "gtx-1660"])
@pytest.mark.parametrize(
    ("model", "whole_gb", "sent_gb"),
    [("flux1-schnell", 6.77, 3.86), ("chroma1-hd", 5.43, 2.39), ("z-image-turbo", 5.00, 1.92), ("flux2-klein", 2.61, 0.0)],
)
def test_of_a_denoiser_in_gguf_stays_what_fits_too(model: str, whole_gb: float, sent_gb: float, machine: str) -> None:
    """All of it was sent at each step, though half of the card was free."""
    hardware, need = MACHINES[machine], describe_need(BY_ID[model])
    plan = decide(hardware, need)
    how, part = plan.of("denoiser"), next(each for each in need.parts if each.role == "denoiser")
    assert how is not None and (plan.quantised, plan.offload) == ("gguf", "group")
    assert part_bytes(part, how, plan.quantised) / 1e9 == pytest.approx(whole_gb, abs=0.01)
    assert sent_bytes(need, plan) / 1e9 == pytest.approx(sent_gb, abs=0.01)
    assert how.kept_bytes < peak_bytes(need, plan) <= usable_bytes(hardware)
    assert next(each.sentence.key for each in plan.because if each.field == "offload") == "offload.kept-steps"


def test_so_does_one_of_nf4_that_is_to_be_sent() -> None:
    plan = decide(MACHINES["rtx-3060"], SD_3, Choice(quantised="bnb-nf4", offload="group"))
    how = plan.of("denoiser")
    assert how is not None and how.kept_bytes > 1e9 and sent_bytes(SD_3, plan) < 1 << 20


@pytest.mark.parametrize(("free_gib", "taken"), [(11.4, "bnb-nf4"), (7.0, "none")])
def test_bitsandbytes_weights_are_made_on_a_card_that_has_room_for_all(free_gib: float, taken: str) -> None:
    """They arrive there part by part, and are sent away only once all are made. Full weights would not fit in main memory well."""
    hardware = replace(MACHINES["t4"], free_bytes=int(free_gib * GIB))
    assert decide(hardware, SD_3).quantised == taken
    if taken == "none":
        with pytest.raises(Trouble) as refused:
            decide(hardware, SD_3, Choice(quantised="bnb-nf4"))
        assert "quantised.bnb-room" in {each.key for each in refused.value.objections}


@pytest.mark.parametrize("machine", ["t4", "rtx-3060", "m3-max-64gb", "cpu"])
def test_where_all_of_it_fits_nothing_is_kept_apart(machine: str) -> None:
    how = decide(MACHINES[machine], SDXL).of("denoiser")
    assert how is not None and how.kept_bytes == 0
