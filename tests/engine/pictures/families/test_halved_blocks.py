"""On a GTX 16 a UNet's transformer blocks compute in float16 between convolutions in float32: planned once seen right, near to float32, never NaN."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.machine.verdicts import RunFailure, Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.fallbacks import next_fallback
from app.compat.planning.memory_formulas import part_bytes
from app.compat.planning.types import Choice, Plan, Precision
from app.compat.selftest.simulate import biting
from app.engine.models import catalog
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.pictures.families import placement
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import make_lora

pytest_plugins = ["tests.support.picture_fixtures"]
CARD = MACHINES["gtx-1660"]
SD15, SDXL, Z_IMAGE = (describe_need(BY_ID[name]) for name in ("sd15", "sdxl", "z-image-turbo"))
Seen = dict[Subject, Verdict]
WITHIN = 2e-2


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def see(**right: bool) -> Seen:
    subjects = {"linear": Subject.path("linear/float16", "float16"), "efficient": Subject.path("kernels/efficient", "float16")}
    return {subjects[name]: Verdict(subjects[name], passed, 1e-4 if passed else 1.0) for name, passed in right.items()}


RIGHT = see(linear=True, efficient=True)


def find_unet(plan: Plan) -> Precision:
    return next(each for each in plan.precision if each.part == "unet")


def told(plan: Plan) -> list[str]:
    return [each.sentence.key for gone in plan.rejected if gone.option == "linear: float16" for each in gone.objections]


@pytest.mark.parametrize("need", [SD15, SDXL], ids=["sd15", "sdxl"])
def test_it_is_planned_once_the_self_test_has_found_it_right(need: Any) -> None:
    plan = decide(CARD, need, verdicts=RIGHT)
    assert (find_unet(plan).compute, find_unet(plan).linear) == ("float32", "float16")
    assert next(each.sentence.key for each in plan.because if each.field == "precision") == "linear.blocks"
    assert all(each.linear is None for each in plan.precision if each.part != "unet")
    for seen, why in (
        ({}, "linear.blocks-untested"),
        (see(linear=True), "linear.blocks-untested"),
        (see(linear=False, efficient=True), "plan.failed"),
        (see(linear=True, efficient=False), "linear.blocks-attention"),
    ):
        kept = decide(CARD, need, verdicts=seen)
        assert find_unet(kept).linear is None and told(kept) == [why]


@pytest.mark.parametrize(
    ("card", "need", "choice"),
    [
        (MACHINES["gtx-1060"], SD15, Choice()), (MACHINES["t4"], SD15, Choice()), (MACHINES["cpu"], SD15, Choice()), (CARD, Z_IMAGE, Choice()),
        (CARD, SD15, Choice(dtype="float32")), (CARD, describe_need(BY_ID["starter-painter"]), Choice()),
    ],
    ids=["slow float16", "float16 throughout", "processor", "no UNet", "by hand", "small"],
)  # fmt: skip
def test_elsewhere_everything_stays(card: Hardware, need: Any, choice: Choice) -> None:
    assert all(each.linear is None for each in decide(card, need, choice, RIGHT).precision)


def test_a_run_without_numbers_takes_it_back() -> None:
    seen = dict(RIGHT)
    for _ in range(8):
        lesson = next_fallback(lambda given: decide(CARD, SD15, verdicts=given), SD15, seen, RunFailure("numbers", 1, "float16"))
        if lesson is None:
            break
        seen[lesson[1].subject] = lesson[1]
    assert find_unet(decide(CARD, SD15, verdicts=seen)).linear is None


def test_the_forecast_counts_halves() -> None:
    part = next(each for each in SD15.parts if each.name == "unet")
    whole, halved = (
        part_bytes(part, Precision("unet", "denoiser", "float32", "float32", "cuda", linear), "none") for linear in (None, "float16")
    )
    assert whole == 4 * (part.parameters + part.loras) and halved == whole - 2 * (part.linear or 0)
    stored = Precision("unet", "denoiser", "float16", "float32", "cuda", "float16")
    assert part_bytes(part, stored, "none") == part_bytes(part, replace(stored, linear=None), "none")


def make_unet() -> Any:
    torch.manual_seed(3)
    unet = tiny.MAKERS["sd15"]().unet.eval()
    for weight in unet.parameters():
        if weight.ndim > 1:
            weight.normal_(0, (2 / weight[0].numel()) ** 0.5)
    return unet


def answer(unet: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = torch.Generator().manual_seed(1)
    latents, words = torch.randn(2, 4, 16, 16, generator=made), torch.randn(2, 7, unet.config.cross_attention_dim, generator=made)
    found: torch.Tensor = unet(latents.to(dtype), 400, words.to(dtype), return_dict=False)[0]
    return found.float()


def place(unet: Any, storage: Any = "float32") -> Any:
    how = Precision("unet", "denoiser", storage, "float32", "cpu", "float16")
    placement.place_part("unet", unet, replace(tiny.make_plan(catalog.find("starter-painter")), precision=(how,)), None)
    return unet


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_on_such_a_card_it_is_near_to_float32_where_float16_gives_nan(storage: str) -> None:
    unet = make_unet()
    right, plan = answer(unet), decide(CARD, SD15, verdicts=RIGHT)
    dtypes = set[torch.dtype]()
    halved = place(copy.deepcopy(unet), storage)
    for name, layer in halved.named_modules():
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d) and "transformer_blocks" in name:
            layer.register_forward_hook(lambda _layer, given, made: dtypes.update({given[0].dtype, made.dtype}))
    with biting(CARD) as bites, applied(plan):
        assert not answer(copy.deepcopy(unet).half(), torch.float16).isfinite().all() and bites.rows == {
            "gtx16-fp16": bites.rows["gtx16-fp16"]
        }
        bites.rows.clear()
        found = answer(halved)
        assert not bites.rows, "no convolution in float16"
    assert dtypes == {torch.float16}
    assert 0 < float((found - right).abs().max() / right.abs().max()) < WITHIN


def test_a_lora_computes_with_its_block(folders: dict[str, Path], tmp_path: Path) -> None:
    """What peft adds to a layer has that layer's dtype."""
    from app.engine.pictures.families.loader import add_lora

    lora = make_lora(folders["sd15"], tmp_path / "one.safetensors", 1)
    answers = []
    for halves in (False, True):
        torch.manual_seed(3)
        pipe = tiny.MAKERS["sd15"]()
        for weight in pipe.unet.parameters():
            if weight.ndim > 1:
                weight.normal_(0, (2 / weight[0].numel()) ** 0.5)
        bare = answer(pipe.unet.eval())
        if halves:
            place(pipe.unet)
        add_lora(pipe, lora, "one")
        answers.append(answer(pipe.unet))
    assert (answers[0] - bare).abs().max() > 5 * (answers[0] - answers[1]).abs().max()
    assert float((answers[0] - answers[1]).abs().max() / answers[0].abs().max()) < WITHIN
