"""Whether it fits and how long it takes: honest where nothing is known, right about what would make it fit."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.base.languages import templates
from app.base.paths import home
from app.base.sentence import say
from app.compat.machine.chunk_curve import read_curve
from app.compat.machine.hardware import Hardware, with_room
from app.compat.machine.meter import Reading
from app.compat.machine.pretended import machine
from app.compat.planning.decide import decide
from app.compat.planning.memory_formulas import peak_bytes
from app.compat.planning.types import AUTO, Choice, Chunk, Plan
from app.engine.jobs.control import Control
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import Finished
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.engine.jobs.tasks import Tune
from app.engine.kinds import kind_of
from app.engine.models import catalog, fit
from app.engine.models.forecast import Forecast, _vary_size, list_alike, make_forecast
from app.engine.models.model import Model, describe_need
from app.engine.models.planned import Setup
from app.engine.pictures.steps import compare_few_steps, estimate_seconds
from app.engine.session.session import Session
from app.ui.tabs.paint_view import fit_html

GIB = 1 << 30
SDXL, SD15, DIA = (catalog.find(name) for name in ("sdxl", "sd15", "dia-1.6b"))


def card(gib: float, name: str = "rtx-3060") -> Any:
    """A real one: nothing stands in for it."""
    return replace(machine(name), free_bytes=int(gib * GIB), pretended="")


def forecast(request: Any, model: Any, hardware: Any, choice: Choice, verdicts: Any, chunk: Chunk = AUTO) -> Forecast:
    return make_forecast(Setup(home(), hardware, choice, chunk, verdicts), request, model)


@pytest.mark.parametrize(
    ("ram_gib", "fit", "words"),
    [(32, "fits", "forecast.sent"), (20, "tight", "forecast.sent"), (16, "no", "forecast.no-main"), (0, "fits", "forecast.sent")],
)
def test_weights_that_wait_beside_a_card_have_to_fit_into_main_memory(ram_gib: int, fit: str, words: str) -> None:
    """FLUX.1 in GGUF fits a GTX 1060 layer by layer, and needs 17.6 GiB beside it."""
    flux, hardware = catalog.find("flux1-schnell"), replace(machine("gtx-1060"), ram_bytes=ram_gib * GIB)
    found = forecast(PictureRequest("a boat"), flux, hardware, Choice(quantised="gguf"), {})
    assert (found.fit, found.sentence.key) == (fit, words), str(found.sentence)
    if fit == "tight":
        assert "17.6 of the computer's 20.0 GB" in str(found.sentence)
    assert all("quantised" not in each.sentence.key for each in found.cures), "bitsandbytes would make them on the card"


def made(rate: float, settings: Mapping[str, Any], model: str = "sd15", **plan: Any) -> Creation:
    return Creation(
        1, "j", "", "picture", model, "", Path("x.png"), 0.0, rate, "steps", 1.0, 0, True, False, 0.0, False, "", dict(settings), plan
    )


def seconds(request: Any, *past: Creation, frames: float = 0.0) -> float | None:
    model = SD15 if isinstance(request, PictureRequest) else DIA
    plan = forecast(request, model, card(11), Choice(), {}).plan
    assert plan is not None
    return kind_of(request).estimate_seconds(request, model, list_alike(past, plan), None, frames)


def test_what_was_never_measured_is_unknown() -> None:
    assert seconds(PictureRequest("a")) is None and seconds(SpeechRequest("[S1] a"), frames=100) is None
    strange = [made(rate, {}) for rate in (0.0, -1.0, math.nan, math.inf)]
    assert seconds(PictureRequest("a"), *strange, made(2.0, {}, model="sdxl")) is None


def test_seconds_follow_steps_size_batch_guidance_and_strength() -> None:
    past = made(2.0, {"width": 512, "height": 512, "guidance": 7.0, "scheduler": "Euler"})
    asked = PictureRequest("a", width=512, height=512, steps=20, guidance=7.0)
    assert seconds(asked, past) == 10
    assert seconds(replace(asked, width=1024), past) == 20
    assert seconds(replace(asked, batch=3), past) == 30
    assert seconds(replace(asked, guidance=1.0), past) == 5
    assert seconds(replace(asked, image="x.png", strength=0.5), past) == 5
    assert seconds(replace(asked, quicker="little"), past) == 7.5
    assert seconds(asked, replace(past, settings={**past.settings, "steps": 20, "quicker": "much"})) == pytest.approx(10 / 0.6)
    assert seconds(asked, replace(past, settings={**past.settings, "quicker": "of a newer Hearth"})) is None
    assert seconds(asked, past, made(1.0, past.settings), made(2.0, past.settings)) == 10
    assert seconds(SpeechRequest("[S1] a"), made(50.0, {}, model="dia-1.6b"), frames=100) == 2


def test_a_batch_that_shares_calls_is_forecast_so() -> None:
    """Four at once take 0.72 of one by one on the processor, two what lies between; a call takes no more than four."""
    starter = catalog.find("starter-painter")
    plan = forecast(PictureRequest("a"), starter, machine("cpu"), Choice(), {}).plan
    assert plan is not None and plan.device == "cpu"
    sole = made(2.0, {"batch": 1}, starter.id, device="cpu", chunk_q=AUTO)

    def seconds(past: Creation, how: Plan = plan, **settings: Any) -> float | None:
        return estimate_seconds(PictureRequest("a", steps=20, **settings), starter, [past], plan=how)

    assert seconds(sole) == 10
    assert seconds(sole, batch=4) == pytest.approx(0.72 * 40)
    assert seconds(sole, batch=8) == pytest.approx(0.72 * 80)
    assert seconds(sole, batch=2) == pytest.approx(20 - 0.28 * 40 / 3)
    assert seconds(sole, batch=5) == pytest.approx(0.72 * 40 + 10)
    four = replace(sole, settings={"batch": 4})
    assert seconds(four, batch=4) == pytest.approx(40) and seconds(four) == pytest.approx(10 / 0.72)
    assert seconds(replace(four, plan={"device": "cpu", "chunk_q": 128})) == 10
    assert seconds(sole, batch=4, width=512, height=512) == pytest.approx(160)
    assert seconds(sole, replace(plan, device="cuda"), batch=4) == seconds(sole, replace(plan, chunk_q=128), batch=4) == 40


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({}, 6 / 25),
        ({"steps": 12, "width": 768, "quicker": "much"}, 12 / 25),
        ({"scheduler": "LCM", "guidance": 1.0}, 0.5 * 6 / 25),
        ({"scheduler": "Euler"}, 1.0),
    ],
)
def test_what_a_few_steps_lora_saves(settings: dict[str, Any], left: float) -> None:
    assert compare_few_steps(PictureRequest("a", **settings), SD15) == pytest.approx(left)
    assert compare_few_steps(PictureRequest("a", **settings), SDXL) == 1.0


@pytest.mark.parametrize(
    ("model", "settings", "left"),
    [
        ("sdxl-lightning", {}, 8 / 50),
        ("sdxl-lightning", {"steps": 4}, 4 / 50),
        ("sdxl-lightning", {"scheduler": "Euler"}, 1.0),
        ("ssd-1b-lcm", {}, 6 / 50),
        ("ssd-1b-lcm", {"guidance": 1.5}, 6 / 25),
        ("ssd-1b-lcm", {"scheduler": "Euler"}, 1.0),
    ],
)
def test_what_few_steps_without_guidance_save(model: str, settings: dict[str, Any], left: float) -> None:
    """Guidance doubles each step."""
    assert compare_few_steps(PictureRequest("a", **settings), catalog.find(model)) == pytest.approx(left)


def test_the_window_tells_what_saves_time() -> None:
    found = Forecast("fits", say("test.fits", "It fits."), None)
    assert "few-steps LoRA saves about 76% of" in fit_html(found, 9.0, 1.0, 0.24, "en")
    both = fit_html(found, 9.0, 0.6, 0.24, "zh")
    assert "76%" in both and "40%" in both
    assert "%" not in fit_html(found, 9.0, 1.0, 1.0, "en")


def test_what_another_card_did_says_nothing_here() -> None:
    elsewhere = made(9.0, {"width": 512, "height": 512}, device="mps", runs_on="mps")
    assert seconds(PictureRequest("a"), elsewhere) is None
    assert seconds(PictureRequest("a"), replace(elsewhere, plan={"device": "cuda", "runs_on": "cuda"})) is not None


def test_what_ran_in_another_precision_says_nothing_of_this_one() -> None:
    """float16 chosen by hand was promised 28 s, measured in float32, and took five minutes."""
    plan = forecast(PictureRequest("a"), SD15, machine("gtx-1060"), Choice(dtype="float16"), {}).plan
    assert plan is not None
    wide, half, old = (made(2.0, {}, device="cuda", **more) for more in ({"dtype": "float32"}, {"dtype": "float16"}, {}))
    moved = made(2.0, {}, device="cuda", dtype="float16", offload="sequential")
    assert list_alike([wide, half, old, moved], plan) == [half, old]


@pytest.mark.parametrize("gib", [0.25, 2, 4, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 3, 6))])
@pytest.mark.parametrize("name", ["rtx-3060", "gtx-1060", "m1-8gb", "cpu"])
@pytest.mark.parametrize(
    ("choice", "chunk"),
    [(Choice(), AUTO), (Choice(dtype="float32"), AUTO), (Choice(offload="none", quantised="none"), AUTO), (Choice(kernels=()), 4096)],
    ids=["automatic", "float32", "as it is", "a large chunk"],
)
def test_a_change_that_is_offered_makes_it_fit(gib: float, name: str, choice: Choice, chunk: Chunk) -> None:
    hardware = card(gib, name)
    for model, request in ((SDXL, PictureRequest("a", width=1024, height=1024)), (DIA, SpeechRequest("[S1] a"))):
        found = forecast(request, model, hardware, choice, {}, chunk)
        assert (found.fit == "no") >= bool(found.cures)
        assert len({cure.sentence.key for cure in found.cures}) == len(found.cures)
        for cure in found.cures:
            assert (cure.request, cure.setup.choice, cure.setup.chunk) != (request, choice, chunk)
            again = forecast(cure.request, model, hardware, cure.setup.choice, {}, cure.setup.chunk)
            assert again.fit != "no", (cure.sentence, again.sentence)


def test_what_was_forced_can_be_left_to_hearth() -> None:
    found = forecast(PictureRequest("a"), SDXL, card(6), Choice(offload="none", quantised="none", dtype="float32"), {})
    assert found.fit == "no" and found.cures[0].sentence.key == "cure.automatic" and found.cures[0].setup.choice == Choice()


def test_a_picture_far_too_large_can_be_smaller() -> None:
    found = forecast(PictureRequest("a", width=4096, height=4096), SD15, card(6), Choice(kernels=()), {}, 4096)
    assert found.fit == "no" and "cure.size" in [cure.sentence.key for cure in found.cures]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rtx-3060", "gtx-1060", "m1-8gb", "cpu"])
def test_parts_wait_where_this_machine_can_have_them(name: str) -> None:
    """On a card's own memory they wait in the computer's; where there is only one, in a file. Neither is said of the other."""
    keys: set[str] = set()
    as_it_is = Choice(dtype="float32", offload="none", quantised="none")
    for model, request in ((SDXL, PictureRequest("a")), (DIA, SpeechRequest("[S1] a"))):
        plan = forecast(request, model, card(64, name), as_it_is, {}).plan
        assert plan is not None
        whole = peak_bytes(describe_need(model), plan) / GIB
        for gib in (whole * percent / 100 for percent in range(20, 100, 2)):
            found = forecast(request, model, card(gib, name), as_it_is, {})
            offered = [cure for cure in found.cures if cure.sentence.key.startswith("cure.offload")]
            assert len(offered) <= 1 and all(cure.setup.choice.offload != "none" for cure in offered)
            assert not (offered and model is DIA and machine(name).unified), "nothing of a voice waits"
            keys |= {cure.sentence.key for cure in offered}
    assert keys == {"cure.offload-file" if machine(name).unified else "cure.offload"}


def test_what_is_loaded_already_counts_as_free_and_changes_no_plan() -> None:
    empty = forecast(PictureRequest("a"), SDXL, card(11), Choice(), {})
    now = Reading(device_bytes=7 * GIB, allocated_bytes=7 * GIB, free_bytes=4 * GIB)
    loaded = forecast(PictureRequest("a"), SDXL, with_room(card(11), now, held_bytes=7 * GIB), Choice(), {})
    assert loaded.plan == empty.plan and loaded.sentence == empty.sentence


@pytest.mark.parametrize(
    ("kind", "reading", "held_gib", "free_gib"),
    [
        ("cuda", Reading(process_bytes=9 << 30, device_bytes=3 << 30, free_bytes=5 << 30), 0, 5),
        ("cuda", Reading(process_bytes=9 << 30, device_bytes=3 << 30, free_bytes=2 << 30), 3, 5),
        ("cuda", Reading(process_bytes=9 << 30, device_bytes=3 << 30, free_bytes=7 << 30), 3, 8),  # never more than there is
        ("cuda", Reading(process_bytes=9 << 30, free_bytes=12 << 30), 0, 4),  # the card was not in use yet
        ("mps", Reading(process_bytes=9 << 30, device_bytes=3 << 30, free_bytes=6 << 30), 0, 6),
        ("cpu", Reading(process_bytes=2 << 30, free_bytes=7 << 30), 0, 7),
        ("cpu", Reading(), 0, 4),
    ],
)
def test_the_memory_that_is_free_now_is_of_the_right_device(kind: Any, reading: Reading, held_gib: int, free_gib: int) -> None:
    hardware = Hardware(kind, memory_bytes=8 << 30, free_bytes=4 << 30)
    assert with_room(hardware, reading, held_gib << 30).free_bytes == free_gib << 30
    assert with_room(dataclasses.replace(hardware, pretended="m1-8gb"), reading, 0).free_bytes == 4 << 30


def test_a_machine_that_does_not_say_what_is_free_is_taken_for_a_small_one() -> None:
    silent = replace(machine("cpu"), free_bytes=0, limit_bytes=0, memory_bytes=0)
    assert "of the 4.0 GB that are free" in str(forecast(PictureRequest("a"), SD15, silent, Choice(), {}).sentence)


def test_a_chunk_by_hand_is_counted_as_it_is_kept() -> None:
    asked = describe_need(SDXL)
    peaks = [peak_bytes(asked, decide(machine("m2-16gb"), asked, Choice(kernels=()), chunk=chunk)) for chunk in (64, 512, 4096)]
    assert peaks[0] < peaks[1] < peaks[2]


@pytest.mark.slow
def test_tune_offers_its_knee_and_forces_nothing(tmp_path: Path) -> None:
    """It was the chunk of all calls of the model from then on, past the ways that were measured."""
    session = Session(home(tmp_path / "home").create())
    plans: list[Any] = []

    def run(request: Any) -> None:
        job = tmp_path / str(len(plans))
        events = list(session.run(request, Choice(), Control(), job, lambda _, plan: plans.append(plan)))
        assert isinstance(events[-1], Finished), events[-1]

    card: dict[str, Any] = {"prompt": "a red circle on a white background", "model": "starter-painter", "steps": 1, "preview_every": 0}
    run(PictureRequest(**card))
    run(Tune("starter-painter"))
    run(PictureRequest(**card))
    assert read_curve(session.home, "starter-painter") is not None
    assert [plan.chunk_q for plan in plans] == [AUTO, AUTO]
    session.free()


def test_a_smaller_picture_is_smaller() -> None:
    for width, height in ((1024, 1024), (512, 768)):
        found = [request for _, request in _vary_size(PictureRequest("a", width=width, height=height), SDXL)]
        sizes = [(each.width, each.height) for each in found if isinstance(each, PictureRequest)]
        assert sizes and all(across * down < width * height for across, down in sizes)  # type: ignore[operator]


@pytest.mark.parametrize(("model", "kind"), [(DIA, SpeechRequest), (SDXL, PictureRequest)])
def test_a_model_is_judged_by_what_it_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model, kind: type) -> None:
    asked: list[Request] = []
    monkeypatch.setattr(fit, "make_forecast", lambda _, request, *rest, **more: asked.append(request))
    fit.forecast_recommended(Setup(home(tmp_path), machine("cpu")), model)
    assert [type(each) for each in asked] == [kind] and asked[0].model == model.id


def test_what_is_sent_to_the_card_at_each_step_is_said_with_what_fits() -> None:
    """SDXL "fits" a GTX 1060 like anything else on the list: that 2 GB travel at each step was only in the plan."""
    gtx = machine("gtx-1060")
    told = forecast(PictureRequest("a boat", width=1024, height=1024), SDXL, gtx, Choice(), {})
    assert told.fit == "fits" and told.plan is not None and told.plan.offload == "group"
    assert re.fullmatch(
        r"Takes about [\d.]+ of the [\d.]+ GB that are free\. (1\.\d|2\.\d) GB of its weights are sent to the card at each step, which takes longer\.",
        str(told.sentence),
    )
    assert "每一步" in told.sentence.translate(templates("zh"))
    for model, hardware in ((SD15, gtx), (SDXL, card(11)), (SDXL, machine("cpu"))):
        assert "sent" not in str(forecast(PictureRequest("a boat"), model, hardware, Choice(), {}).sentence)
