"""Channels last through the real loading code: which weights are ordered, that the picture stays, and that offloads, kept layers and LoRAs keep it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from app.compat.planning.types import Dtype, Plan
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.pictures.families import placement
from app.engine.pictures.run import painter
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, list_parts, make_lora, read_pixels
from tests.support.separate_memory import separate_memory

pytest_plugins = ["tests.support.picture_fixtures"]
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
CONVOLVE = nn.Conv2d._conv_forward
WITHIN = 4 / 255
"""Two orders of the same sums in float16 differ by so much of a picture's range at most."""


def is_last(weight: Tensor) -> bool:
    return weight.is_contiguous(memory_format=torch.channels_last)


def is_usual(weight: Tensor) -> bool:
    """Tell it of weights of which the orders differ: those of one pixel have both."""
    return weight.is_contiguous() and not is_last(weight)


def make_plan(folder: Path, last: bool, kept_bytes: int = 0, **changes: Any) -> Plan:
    """Return a card's plan in float16, as for SDXL on a T4: the VAE computes in float32 where that is asked."""
    made = tiny.make_plan(
        catalog.find(str(folder)), "float16", device="cuda", runs_on="cuda", kernels=("efficient", "math"), channels_last=last, **changes
    )
    how = (replace(each, device="cuda", kept_bytes=kept_bytes if each.role == "denoiser" else 0) for each in made.precision)
    return replace(made, precision=tuple(how))


class Painted:
    """A picture painted on a pretended card."""

    def __init__(self, folder: Path, job: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, loras: tuple[Lora, ...] = ()) -> None:
        self.weights: list[Tensor] = []
        """Each convolution multiplied by this one, on the card."""
        model = catalog.find(str(folder))

        def convolve(layer: nn.Conv2d, given: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
            self.weights.append(weight)
            return CONVOLVE(layer, given, weight, bias)

        with separate_memory():
            paints = painter.load(folder, model, plan, {}, job / "scratch")
            monkeypatch.setattr(nn.Conv2d, "_conv_forward", convolve)
            asked = PictureRequest(**{"prompt": "a red ball", **SMALL, "guidance": 3.0, "loras": loras})
            events = list(paints.run(asked, Control(), None, job))
            monkeypatch.undo()
            assert isinstance(events[-1], Finished), events[-1]
            self.pixels: np.ndarray = read_pixels(list_parts(events)[0].path)
            paints.close()


@pytest.fixture(scope="module")
def usual(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """What is painted in the usual order."""
    folder = folders["sd15"]
    with pytest.MonkeyPatch.context() as patch:
        made = Painted(folder, tmp_path_factory.mktemp("usual"), make_plan(folder, False), patch)
    assert made.weights and all(map(torch.Tensor.is_contiguous, made.weights)) and any(map(is_usual, made.weights))
    return made.pixels


HOW: dict[str, dict[str, Any]] = {
    "whole": {},
    "a part at a time": {"offload": "model"},
    "in groups": {"offload": "group"},
    "in groups, some of them kept": {"offload": "group", "kept_bytes": 1_000_000},
    "layer by layer": {"offload": "sequential"},
}


@pytest.mark.parametrize("how", ["whole", *(pytest.param(each, marks=pytest.mark.slow) for each in HOW if each != "whole")])
def test_the_same_picture_is_painted_however_weights_are_held(
    how: str, folders: dict[str, Path], usual: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = Painted(folders["sd15"], tmp_path, make_plan(folders["sd15"], True, **HOW[how]), monkeypatch)
    assert last.weights and all(map(is_last, last.weights))
    assert abs(last.pixels - usual).max() < WITHIN


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_a_lora_that_comes_later_changes_no_order(
    how: str, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worn = (Lora(str(make_lora(folders["sd15"], tmp_path / "one.safetensors", 1))),)
    plain = Painted(folders["sd15"], tmp_path / "plain", make_plan(folders["sd15"], False, **HOW[how]), monkeypatch, worn)
    last = Painted(folders["sd15"], tmp_path / "last", make_plan(folders["sd15"], True, **HOW[how]), monkeypatch, worn)
    assert last.weights and all(map(is_last, last.weights)) and abs(last.pixels - plain.pixels).max() < WITHIN


@pytest.mark.parametrize(("family", "vae"), [("sdxl", "float32"), ("sd15", "float16")])
def test_only_convolutions_that_compute_as_measured_are_ordered(family: str, vae: Dtype, folders: dict[str, Path], tmp_path: Path) -> None:
    """The encoders have none, and SDXL's VAE computes in float32 where float16 overflows."""
    plan = make_plan(folders[family], True)
    plan = replace(
        plan, precision=tuple(replace(each, storage=vae, compute=vae) if each.role == "vae" else each for each in plan.precision)
    )
    with separate_memory():
        paints = painter.load(folders[family], catalog.find(str(folders[family])), plan, {}, tmp_path)
        parts = placement.list_modules(paints.pipe)
        orders = {name: [each for each in part.parameters() if each.ndim == 4] for name, part in parts.items()}
        paints.close()
    assert all(map(is_last, orders["unet"])) and any(not each.is_contiguous() for each in orders["unet"])
    assert all(map(is_last if vae == "float16" else torch.Tensor.is_contiguous, orders["vae"])) and len(orders["vae"]) > 10
    assert not any(orders[name] for name in orders if name.startswith("text_encoder"))


@pytest.mark.parametrize(("name", "ordered"), [("unet", True), (placement.CONTROL, True), ("vae", True), ("text_encoder", False)])
def test_a_part_is_ordered_where_it_computes(name: str, ordered: bool, folders: dict[str, Path]) -> None:
    """On the card, so that the computer's memory never holds both."""
    part = nn.Conv2d(8, 8, 3).half()
    with separate_memory() as card:
        placement.place_part(name, part, make_plan(folders["sd15"], True), None)
        assert card.is_far(part.weight)
    assert is_last(part.weight) == ordered


def test_a_plan_in_another_order_loads_the_model_anew(folders: dict[str, Path], tmp_path: Path) -> None:
    plan = make_plan(folders["sd15"], False)
    with separate_memory():
        paints = painter.load(folders["sd15"], catalog.find(str(folders["sd15"])), plan, {}, tmp_path)
        assert paints.adapt(plan) and not paints.adapt(replace(plan, channels_last=True))
        paints.close()
