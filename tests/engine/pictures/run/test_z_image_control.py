"""Test guiding Z-Image by a picture: beside plain diffusers, as each release of its control models lies on disk, on every offload, in a forecast."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from app.base.paths import home as make_home
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.planning.memory_formulas import BYTES, needed_bytes
from app.compat.planning.types import Dtype, Precision, Vae
from app.engine.jobs.control import Control
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog
from app.engine.models.controls import explain_misfit, read_control
from app.engine.models.model import describe_need
from app.engine.models.planned import find_need
from app.engine.pictures.families import placement
from app.engine.pictures.families.control_file import load_control
from app.engine.pictures.run import painter as picture_painter
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, assert_same, load_painter

pytest_plugins = ["tests.support.picture_fixtures"]
RELEASES: dict[str, dict[str, Any]] = {
    "1.0": {"refined": None, "layers": 2, "channels": 16},
    "2.0": {"refined": "control_layers"},
    "2.1": {"refined": "control_noise_refiner"},
    "2.1 lite": {"refined": "control_noise_refiner", "layers": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save("z-image", tmp_path_factory.mktemp("z-image") / "model", layers=4)


@pytest.fixture(scope="module")
def controls(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("controls")
    return {name: tiny.save_z_image_control(folder, root / name, **shape) for name, shape in RELEASES.items()}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, pixels = tmp_path_factory.mktemp("guides") / "shapes.png", np.zeros((64, 64, 3), np.uint8)
    pixels[16:40, 8:56] = (250, 40, 90)
    Image.fromarray(pixels).save(path)
    return path


def ask(folder: Path, control: Path, guide: Path, **more: Any) -> PictureRequest:
    return PictureRequest("a red ball", str(folder), guide=str(guide), control=str(control), **{**SMALL, **more})


def pack(control: Path, file: Path, refined: str | None) -> Path:
    """Write the folder's weights as its makers publish them: in one file, where 2.0 has a refiner that was never trained."""
    tensors = load_file(control / "diffusion_pytorch_model.safetensors")
    if refined == "control_layers":
        blank = diffusers.ZImageControlNetModel(
            **{**diffusers.ZImageControlNetModel.load_config(control), "add_control_noise_refiner": "control_noise_refiner"}
        )
        tensors |= {name: tensor for name, tensor in blank.state_dict().items() if name.startswith("control_noise_refiner.")}
    save_file(tensors, file)
    return file


@pytest.mark.parametrize(
    ("release", "guidance"),
    [("1.0", 0.0), pytest.param("2.0", 5.0, marks=pytest.mark.slow), ("2.1", 0.0), pytest.param("2.1 lite", 5.0, marks=pytest.mark.slow)],
)
def test_it_paints_as_diffusers_does(
    release: str, guidance: float, folder: Path, controls: dict[str, Path], shapes: Path, tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    """A folder, and its weights in one file, which says no setting."""
    paints, _ = load_painter(folder)
    file = pack(controls[release], tmp_path / "control.safetensors", RELEASES[release]["refined"])
    for control in (controls[release], file):
        list(
            paints.run(
                ask(folder, control, shapes, guide_strength=0.8, guidance=guidance), Control(), None, tmp_path / f"job {control.name}"
            )
        )
    pipe = diffusers.ZImageControlNetPipeline.from_pretrained(
        folder, controlnet=diffusers.ZImageControlNetModel.from_pretrained(controls[release])
    )
    plain = pipe(
        "a red ball",
        num_inference_steps=3,
        width=64,
        height=64,
        guidance_scale=guidance,
        generator=torch.Generator("cpu").manual_seed(11),
        control_image=Image.open(shapes),
        controlnet_conditioning_scale=0.8,
        output_type="np",
    ).images[0]
    assert_same(decoded[-2], np.asarray(plain, dtype=np.float64))
    assert torch.equal(decoded[-2], decoded[-1])


@pytest.mark.parametrize("kind", ["text", pytest.param("image", marks=pytest.mark.slow), "mask"])
def test_its_strength_and_span_count(
    kind: str, folder: Path, controls: dict[str, Path], shapes: Path, gradient: Path, tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, _ = load_painter(folder)
    files = {} if kind == "text" else {"image": str(gradient)}
    if kind == "mask":
        Image.fromarray(np.pad(np.full((32, 64), 255, np.uint8), ((32, 0), (0, 0)))).save(tmp_path / "mask.png")
        files["mask"] = str(tmp_path / "mask.png")
    asked = ask(folder, controls["2.1"], shapes, guide_strength=1.0, guidance=3.0, **files)
    last = replace(asked, guide_from=0.9)  # no step lies in it
    for place, each in enumerate((replace(asked, guide=None, control=""), asked, replace(asked, guide_strength=0.0), last)):
        list(paints.run(each, Control(), None, tmp_path / f"job {place}"))
    plain, guided, none, outside = decoded
    assert torch.equal(none, plain) and torch.equal(outside, plain) and float((guided - plain).abs().max()) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        pytest.param({"offload": "model"}, id="mapped from disk"),
        pytest.param({"offload": "model", "device": "cuda"}, id="model"),
        pytest.param({"offload": "group", "device": "cuda"}, id="group"),
        pytest.param({"offload": "sequential", "device": "cuda"}, id="sequential"),
    ],
)
def test_every_offload_paints_the_same(
    way: dict[str, Any], folder: Path, controls: dict[str, Path], shapes: Path, tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    """What a control model computes with of its transformer is placed by that alone."""
    whole, model = load_painter(folder)
    asked = ask(folder, controls["2.1"], shapes, guidance=3.0)
    paints = picture_painter.load(folder, model, tiny.make_plan(model, **way), {}, tmp_path / "scratch")
    for job, (paint, each) in enumerate(
        ((whole, asked), (paints, asked), (paints, asked), (paints, replace(asked, guide=None, control="")), (paints, asked))
    ):
        list(paint.run(each, Control(), None, tmp_path / f"job {job}"))
    assert {name for name, _ in paints._control._control.named_children()} <= {
        "control_layers",
        "control_all_x_embedder",
        "control_noise_refiner",
    }
    paints.close()
    there, again, without, anew = (float((each - decoded[0]).abs().max()) for each in decoded[1:])
    assert max(there, again, anew) < 1e-4 and without > 0.05


def test_its_layers_stay_within_float16_as_the_transformers_do(folder: Path, controls: dict[str, Path]) -> None:
    model, transformer = catalog.find(str(folder)), load_painter(folder)[0].pipe.transformer
    control = load_control(read_control(controls["2.1"]), transformer, torch.float16)
    gates = [block.feed_forward for block in (*control.control_layers, *control.control_noise_refiner)]
    for gate in gates:
        gate.w1.weight.mul_(400)
        gate.w3.weight.mul_(400)
    torch.manual_seed(1)
    tokens = torch.randn(1, 32, 32, dtype=torch.float16)
    assert not any(gate(tokens).isfinite().all() for gate in gates)
    placement.place_control(control, "transformer", tiny.make_plan(model, "float16"), None, ())
    assert all(gate(tokens).isfinite().all() for gate in gates)


def test_its_memory_is_in_the_forecast(folder: Path, controls: dict[str, Path], shapes: Path, tmp_path: Path) -> None:
    """The weights, and for each token what its layers hand on to the transformer's, twice while that is weighed."""
    model, control = catalog.find(str(folder)), read_control(controls["2.1"])
    assert (control.family, control.layers, control.width) == ("z-image", 2, 32)
    home, asked = make_home(tmp_path), ask(folder, controls["2.1"], shapes)
    plain, guided = find_need(home, Hardware(), model, replace(asked, guide=None, control="")), find_need(home, Hardware(), model, asked)
    more = [a.parameters - b.parameters for a, b in zip(guided.parts, plain.parts, strict=True)]
    assert sum(more) == control.parameters
    assert (plain.handed, guided.handed) == (0, 2 * 3 * 32 * guided.queries * guided.batch)
    denoiser = next(part for part in guided.parts if part.role == "denoiser")
    computes: tuple[Dtype, ...] = ("bfloat16", "float32")
    for compute in computes:  # layer by layer, as weights they would hardly count
        how = Precision(denoiser.name, "denoiser", "bfloat16", compute, "cuda")
        most = [needed_bytes(replace(each, parts=(denoiser,)), (how,), "none", "sequential", Vae()) for each in (plain, guided)]
        assert most[1] - most[0] == guided.handed * BYTES[compute]
    assert [each > 0 for each in more] == [each.role == "denoiser" for each in describe_need(model).parts]


def test_what_was_made_for_another_is_refused(folder: Path, controls: dict[str, Path], tmp_path: Path) -> None:
    control = read_control(controls["2.1"])
    assert explain_misfit(control, catalog.find("z-image-turbo")) is None
    why = explain_misfit(control, catalog.find("sdxl"))
    assert why is not None and "Z-Image" in str(why)
    named = tiny.save_z_image_control(folder, tmp_path / "many")
    (named / "config.json").write_text((named / "config.json").read_text().replace('"control_in_dim": 33', '"control_in_dim": 1000000000'))
    with pytest.raises(Trouble) as large:
        read_control(named)
    assert large.value.sentence.key == "detect.fact"
    wide = load_painter(folder)[0].pipe.transformer
    other = tiny.save_z_image_control(folder, tmp_path / "other")
    config = (other / "config.json").read_text()
    (other / "config.json").write_text(config.replace('"dim": 32', '"dim": 64'))
    with pytest.raises(Trouble) as told:
        load_control(read_control(other), wide, torch.float32)
    assert told.value.sentence.key == "control.misfit"
    tensors = load_file(other / "diffusion_pytorch_model.safetensors")
    save_file({name: tensor for name, tensor in tensors.items() if "layers.0.attention.to_k" not in name}, tmp_path / "cut.safetensors")
    with pytest.raises(Trouble):
        load_control(read_control(tmp_path / "cut.safetensors"), wide, torch.float32)


def refuse(folder: Path, control: Path, **settings: Any) -> str:
    """Return what is said of a control model in whose folder these settings stand."""
    config = tiny.save_z_image_control(folder, control) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | settings))
    with pytest.raises(Trouble) as told:
        load_control(read_control(control), load_painter(folder)[0].pipe.transformer, torch.float32)
    return told.value.sentence.key


def test_a_folder_without_the_first_layer_is_refused(folder: Path, tmp_path: Path) -> None:
    assert refuse(folder, tmp_path / "control", control_layers_places=[2]) == "control.misfit"


@pytest.mark.parametrize(
    "settings",
    [
        {"add_control_noise_refiner": "zzz"},
        {"control_refiner_layers_places": [0, 1, 2, 3, 4, 5, 6, 7]},
        {"control_refiner_layers_places": [999]},
        {"control_layers_places": [0, 999]},
    ],
    ids=str,
)
def test_a_folder_whose_places_the_transformer_lacks_is_refused(settings: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    """The library builds most of them, and fails at the first step or leaves out what it made."""
    assert refuse(folder, tmp_path / "control", **settings) == "control.misfit"
