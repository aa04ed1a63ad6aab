"""Test that a stranger's LoRA spoils its own pictures at most: none after it, and nothing else of the model."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.models.loading.numbers_broke import NumbersBroke
from app.engine.pictures.families.lora_file import TENSORS_MOST, read_lora
from app.engine.pictures.run import painter as picture_painter
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, make_lora

pytest_plugins = ["tests.support.picture_fixtures"]
Tensors = dict[str, torch.Tensor]


@pytest.fixture
def paints(folders: dict[str, Path]) -> picture_painter.Painter:
    model = catalog.find(str(folders["sd15"]))
    return picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {})


@pytest.fixture(scope="module")
def tensors(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Tensors:
    return load_file(make_lora(folders["sd15"], tmp_path_factory.mktemp("lora") / "plain.safetensors", 1))


def write(path: Path, tensors: Tensors, settings: Any = None) -> Path:
    """Write a LoRA with settings of its UNet, as diffusers does."""
    about = (
        {f"unet.{name}": value for name, value in {"r": 2, "lora_alpha": 2, "target_modules": ["attn1.to_q"], **settings}.items()}
        if settings
        else None
    )
    save_file(tensors, path, metadata={"lora_adapter_metadata": json.dumps(about)} if about else None)
    return path


def paint(paints: picture_painter.Painter, job: Path, *loras: Path) -> None:
    list(paints.run(PictureRequest("a", loras=tuple(Lora(str(each)) for each in loras), **SMALL), Control(), None, job))


HOSTILE: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], dict[str, Any]]] = {
    "no numbers": (lambda each: each * math.nan, {}),
    "products without an end": (lambda each: torch.full_like(each, 1e19), {}),
    "a billion": (lambda each: each * 3e4, {}),
    "a scale": (lambda each: each, {"lora_alpha": 1e5}),
    "a scale that no LoRA has": (lambda each: each, {"lora_alpha": 1e12}),
    "a scale of a layer": (lambda each: each, {"alpha_pattern": {"attn1.to_q": 1e12}}),
    "another way to merge": (lambda each: each, {"kasa_config": {}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_no_lora_spoils_the_picture_after_it(
    paints: picture_painter.Painter, tensors: Tensors, tmp_path: Path, decoded: list[torch.Tensor], name: str
) -> None:
    change, settings = HOSTILE[name]
    file = write(tmp_path / "hostile.safetensors", {each: change(tensor) for each, tensor in tensors.items()}, settings)
    paint(paints, tmp_path / "before")
    with contextlib.suppress(Trouble, NumbersBroke):
        paint(paints, tmp_path / "with it", file)
    paint(paints, tmp_path / "after")
    assert torch.allclose(decoded[0], decoded[-1], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"target_modules": "nothing"}, {"target_modules": r"(([a-z_.0-9])+)+\$"}, {"modules_to_save": ["conv_in"]}, {"use_dora": True},
        {"kasa_config": {}}, {"layer_replication": [[0, 1]]},
    ],
    ids=str,
)  # fmt: skip
def test_of_its_settings_only_scales_are_heeded(
    paints: picture_painter.Painter, tensors: Tensors, tmp_path: Path, decoded: list[torch.Tensor], settings: dict[str, Any]
) -> None:
    paint(paints, tmp_path / "plain", write(tmp_path / "plain.safetensors", tensors))
    paint(paints, tmp_path / "with settings", write(tmp_path / "settings.safetensors", tensors, settings))
    assert torch.allclose(decoded[0], decoded[1], atol=1e-4)
    assert not any("original_module" in name for name in paints.pipe.unet.state_dict())


@pytest.mark.parametrize("settings", [{"r": 10**15}, {"rank_pattern": {"to_q": -1}}], ids=str)
def test_numbers_that_no_lora_has_are_refused_by_name(
    paints: picture_painter.Painter, tensors: Tensors, tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(Trouble, match="|".join(settings)):
        paint(paints, tmp_path / "with settings", write(tmp_path / "settings.safetensors", tensors, settings))
    assert not any("lora" in name for name in paints.pipe.unet.state_dict())


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        ({"lora_alpha": 4}, 2), ({"use_rslora": True}, math.sqrt(2)), ({"alpha_pattern": {"attn1.to_q": 1}}, 0.5),
        ({"alpha_pattern": {"to_k": 64}}, 1),
    ],
    ids=str,
)  # fmt: skip
def test_scales_that_peft_wrote_hold(
    paints: picture_painter.Painter, tensors: Tensors, tmp_path: Path, decoded: list[torch.Tensor], settings: dict[str, Any], scale: float
) -> None:
    scaled = {name: tensor * scale if "lora_B" in name else tensor for name, tensor in tensors.items()}
    paint(paints, tmp_path / "plain", write(tmp_path / "plain.safetensors", scaled))
    paint(paints, tmp_path / "with settings", write(tmp_path / "settings.safetensors", tensors, settings))
    assert torch.allclose(decoded[0], decoded[1], atol=1e-4)


@pytest.mark.parametrize(
    ("field", "settings"),
    [("unet.lora_alpha", {"lora_alpha": "x"}), ("unet.lora_alpha", {"lora_alpha": True}), ("alpha_pattern", {"alpha_pattern": {"(a+)+$": 1}}),
     ("unet.to_q", {"alpha_pattern": {"to_q": 1e9}}), ("use_rslora", {"use_rslora": 2}), ("alpha_pattern", {"alpha_pattern": [1]})],
    ids=str,
)  # fmt: skip
def test_a_scale_that_no_lora_has_is_named(tensors: Tensors, tmp_path: Path, field: str, settings: dict[str, Any]) -> None:
    with pytest.raises(Trouble, match=field) as refused:
        read_lora(write(tmp_path / "odd.safetensors", tensors, settings))
    assert refused.value.sentence.key == "lora.fact"


def test_names_of_tensors_are_no_expressions_and_few(tensors: Tensors, tmp_path: Path) -> None:
    for odd in (
        {"unet.(a+)+$.lora_A.weight": torch.zeros(1)},
        {f"unet.a{each}.lora_A.weight": torch.zeros(1) for each in range(TENSORS_MOST)},
    ):
        with pytest.raises(Trouble, match="tensor"):
            read_lora(write(tmp_path / "odd.safetensors", {**tensors, **odd}))
    with pytest.raises(ValueError, match="lora_controlnet"):
        read_lora(write(tmp_path / "odd.safetensors", {**tensors, "unet.lora_controlnet": torch.zeros(1)}))


def test_a_model_whose_run_with_a_lora_failed_is_loaded_anew(paints: picture_painter.Painter, tensors: Tensors, tmp_path: Path) -> None:
    plan = paints._plan
    paint(paints, tmp_path / "good", write(tmp_path / "good.safetensors", tensors))
    assert paints.adapt(plan)
    with pytest.raises(Trouble):
        paint(paints, tmp_path / "bad", write(tmp_path / "bad.safetensors", {name: each * math.nan for name, each in tensors.items()}))
    assert not paints.adapt(plan)


@pytest.mark.parametrize("offload", ["model", "group", "sequential"])
def test_each_offload_paints_with_a_lora_as_without_one(
    paints: picture_painter.Painter, folders: dict[str, Path], tensors: Tensors, tmp_path: Path, decoded: list[torch.Tensor], offload: Any
) -> None:
    """Loading a LoRA begins the offload anew; that a DoRA may be refused, no picture after it is another."""
    model, lora = catalog.find(str(folders["sd15"])), write(tmp_path / "lora.safetensors", tensors)
    sent = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, offload=offload, device="cuda"), {})
    for each, *loras in ((paints,), (paints, lora), (sent,), (sent, lora)):
        paint(each, tmp_path / str(len(decoded)), *loras)
    scales = {
        name.replace("lora_B.weight", "lora_magnitude_vector"): torch.rand(len(each)) for name, each in tensors.items() if "lora_B" in name
    }
    dora = write(tmp_path / "dora.safetensors", tensors | scales)
    with (
        contextlib.nullcontext()
        if offload == "model"
        else pytest.raises(Trouble, match=r"dora\.safetensors is a DoRA\. It needs the whole model")
    ):
        paint(sent, tmp_path / "dora", dora)
    paint(sent, tmp_path / "after", lora)
    whole, with_one, *same = decoded
    assert float((with_one - whole).abs().max()) > 0.1
    for found, right in ((same[0], whole), (same[1], with_one), (same[-1], with_one)):
        assert float((found - right).abs().max()) < 1e-4
    assert len(same) == 3 or float((same[2] - with_one).abs().max()) > 0.1
