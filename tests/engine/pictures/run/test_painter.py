"""Test that every family paints as plain diffusers does: from prompts and pictures, with the seam, mixed precision, quantised, with LoRAs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft.tuners.lora.layer import LoraLayer
from PIL import Image
from safetensors.torch import save_file

from app.compat.attention.seam import applied
from app.compat.planning.types import Dtype, Precision
from app.engine.jobs.control import Control
from app.engine.jobs.events import Finished, Note, Step
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog
from app.engine.pictures.families import loader
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run.final_settings import STEPS_FOR_ONE, leave_a_step
from tests.support import tiny_pictures as tiny
from tests.support.combinations import combine
from tests.support.picture_fixtures import (
    SMALL,
    assert_same,
    draw_lcm_lora,
    list_parts,
    load_painter,
    make_gguf,
    make_lora,
    paint_with_diffusers,
    read_pixels,
)

pytestmark = pytest.mark.long

pytest_plugins = ["tests.support.picture_fixtures"]


@pytest.mark.parametrize(
    "family", [family if family in ("sd15", "pixart-sigma") else pytest.param(family, marks=pytest.mark.slow) for family in tiny.MAKERS]
)
def test_paints_what_plain_diffusers_paints(family: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, model = load_painter(folders[family])
    guidance = 1.0 if family in ("flux", "flux2-klein") else 3.0
    events = list(paints.run(PictureRequest("a red ball", guidance=guidance, **SMALL), Control(), None, tmp_path))
    assert isinstance(events[-1], Finished)
    plain = paint_with_diffusers(folders[family], model, prompt="a red ball", guidance_scale=guidance, width=64, height=64)
    assert_same(decoded[0], plain)
    assert np.abs(read_pixels(list_parts(events)[0].path) - plain).max() <= 0.51 / 255


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "chroma", "flux2-klein", "z-image"])
def test_starts_from_a_picture_as_plain_diffusers_does(
    family: str, folders: dict[str, Path], tmp_path: Path, gradient: Path, decoded: list[torch.Tensor]
) -> None:
    paints, model = load_painter(folders[family])
    guidance = 1.0 if family in ("flux", "flux2-klein") else 3.0
    request = PictureRequest("a red ball", image=str(gradient), strength=0.7, guidance=guidance, **SMALL)
    assert isinstance(list(paints.run(request, Control(), None, tmp_path))[-1], Finished)
    with Image.open(gradient) as opened:
        start = opened.convert("RGB").resize((64, 64), Image.Resampling.LANCZOS)
    told: dict[str, Any] = {"prompt": "a red ball", "guidance_scale": guidance, "image": start}
    if family == "flux2-klein":
        told |= {"width": 64, "height": 64}
    else:
        told["strength"] = 0.7
        if family in ("flux", "chroma", "sd3", "z-image"):
            told |= {"width": 64, "height": 64}
    assert_same(decoded[0], paint_with_diffusers(folders[family], model, "image", **told))


@pytest.mark.parametrize("family", ["sd15", "sdxl", "sd3", "flux", "chroma", "flux2-klein", "z-image"])
def test_paints_into_a_mask_and_leaves_the_rest_alone(family: str, folders: dict[str, Path], tmp_path: Path, gradient: Path) -> None:
    mask = tmp_path / "mask.png"
    drawn = Image.new("L", (96, 96), 0)
    drawn.paste(255, (48, 0, 96, 96))
    drawn.save(mask)
    paints, _ = load_painter(folders[family])
    request = PictureRequest("a", image=str(gradient), mask=str(mask), strength=1.0, **{**SMALL, "guidance": 1.0})
    events = list(paints.run(request, Control(), None, tmp_path / "job"))
    made = read_pixels(list_parts(events)[0].path)
    with Image.open(gradient) as opened:
        before = np.asarray(opened.convert("RGB").resize((64, 64), Image.Resampling.LANCZOS)) / 255
    assert np.array_equal(np.round(made[:, :32] * 255), np.round(before[:, :32] * 255))
    assert np.abs(made[:, 40:] - before[:, 40:]).mean() > 0.05


@pytest.mark.parametrize(("family", "asked"), combine(("sd15", "sdxl", "sd3", "flux", "z-image"), ((1, 0.6), (3, 0.3), (4, 0.02))))
def test_a_starting_picture_leaves_a_step_to_compute(
    family: str, asked: tuple[int, float], folders: dict[str, Path], tmp_path: Path, gradient: Path
) -> None:
    """Diffusers rounds steps times strength down, to none."""
    steps, strength = asked
    mask = tmp_path / "mask.png"
    Image.new("L", (96, 96), 255).save(mask)
    paints, _ = load_painter(folders[family])
    for kind in ("", str(mask)):
        request = PictureRequest("a", image=str(gradient), mask=kind, strength=strength, **{**SMALL, "steps": steps, "guidance": 1.0})
        events = list(paints.run(request, Control(), None, tmp_path / f"job {bool(kind)}"))
        assert isinstance(events[-1], Finished) and "no step would be left" in str([each for each in events if isinstance(each, Note)])


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 49, 50, 200])
def test_steps_are_planned_until_one_is_left(steps: int) -> None:
    for percent in range(1, 101):
        planned, strength = leave_a_step(steps, percent / 100)
        assert int(planned * strength) >= 1 and planned <= max(steps, STEPS_FOR_ONE)
        assert (planned, strength) == (steps, percent / 100) or int(steps * percent / 100) < 1


def test_weights_in_the_prompt_change_the_picture_and_weight_one_does_not(
    folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    for family in ("sd15", "sdxl"):
        decoded.clear()
        paints, _ = load_painter(folders[family])
        for index, prompt in enumerate(("a red ball", "a (red:1.0) ball", "a (red:1.6) ball", "a red ball " * 30)):
            list(
                paints.run(PictureRequest(prompt, negative="ugly", guidance=3.0, **SMALL), Control(), None, tmp_path / family / str(index))
            )
        assert torch.equal(decoded[0], decoded[1])
        assert (decoded[0] - decoded[2]).abs().max() > 1e-3
        assert (decoded[0] - decoded[3]).abs().max() > 1e-3


def test_a_model_that_takes_no_weights_says_so(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    paints, _ = load_painter(folders["z-image"])
    plain = list(paints.run(PictureRequest("a red ball", **SMALL), Control(), None, tmp_path / "plain"))
    weighted = list(paints.run(PictureRequest("a (red:1.6) ball", **SMALL), Control(), None, tmp_path / "weighted"))
    assert not [event for event in plain if isinstance(event, Note)]
    assert [event.sentence.key for event in weighted if isinstance(event, Note)] == ["prompt.no-weights"]
    assert torch.equal(decoded[0], decoded[1])


SEAMS: dict[str, dict[str, Any]] = {
    "in chunks of 5 by its own arithmetic": {"chunk_q": 5, "kernels": (), "gqa": "folded", "contiguous": True},
    "over keys too": {"chunk_q": 64, "chunk_k": 96, "kernels": (), "gqa": "expanded", "explicit_mask": True},
}


@pytest.mark.parametrize("remedy", SEAMS)
@pytest.mark.parametrize("family", tiny.ONE_A_KIND)
def test_with_the_seam_on_it_is_still_the_same_picture(
    family: str, remedy: str, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    paints, model = load_painter(folders[family])
    request = PictureRequest("a red ball", guidance=1.0, **SMALL)
    with applied(tiny.make_plan(model, **SEAMS[remedy])) as seam:
        events = list(paints.run(request, Control(), seam, tmp_path))
    assert seam.calls > 0
    assert all(event.ran for event in events if isinstance(event, Step))
    assert_same(decoded[0], paint_with_diffusers(folders[family], model, prompt="a red ball", guidance_scale=1.0, width=64, height=64))


MIXED: dict[str, dict[str, Dtype]] = {
    "decoder in float32": {"vae": "float32"},
    "words in float32": {"text": "float32"},
    "denoiser in float32": {"denoiser": "float32"},
}


@pytest.mark.parametrize(("family", "wide"), combine(("sd15", "sdxl", "z-image"), MIXED))
def test_parts_of_different_precision_work_together(
    family: str, wide: str, folders: dict[str, Path], tmp_path: Path, gradient: Path
) -> None:
    model = catalog.find(str(folders[family]))
    parts_in = tuple(
        Precision(part.name, part.role, MIXED[wide].get(part.role, "bfloat16"), MIXED[wide].get(part.role, "bfloat16"), "cpu")
        for part in model.parts
    )
    paints = picture_painter.load(folders[family], model, tiny.make_plan(model, "bfloat16", precision=parts_in), {})
    request = PictureRequest("a", image=str(gradient), **SMALL)
    assert isinstance(list(paints.run(request, Control(), None, tmp_path))[-1], Finished)


@pytest.mark.parametrize(("storage", "form"), combine(("float32", "float16"), ("text", "image", "inpaint")))
def test_sdxls_own_decoder_computes_as_planned(form: str, storage: Any, folders: dict[str, Path], tmp_path: Path, gradient: Path) -> None:
    """SDXL's pipelines would upcast the VAE and leave it in the denoiser's dtype, in which it paints black."""
    model = catalog.find(str(folders["sdxl"]))
    mixed = tuple(
        Precision(part.name, part.role, storage, "float32", "cpu")
        if part.role == "vae"
        else Precision(part.name, part.role, "bfloat16", "bfloat16", "cpu")
        for part in model.parts
    )
    paints = picture_painter.load(folders["sdxl"], model, tiny.make_plan(model, "bfloat16", precision=mixed), {})
    seen: set[torch.dtype] = set()
    for half in (paints.pipe.vae.encoder, paints.pipe.vae.decoder):
        for layer in (half.conv_in, half.conv_out):
            layer.register_forward_hook(lambda _module, _args, output: seen.add(output.dtype))
    more: dict[str, Any] = {} if form == "text" else {"image": str(gradient)}
    more |= {"mask": str(gradient)} if form == "inpaint" else {}
    request = PictureRequest("a", **{**SMALL, **more})
    for job in ("first", "second"):
        assert isinstance(list(paints.run(request, Control(), None, tmp_path / job))[-1], Finished)
    assert seen == {torch.float32}
    assert paints.pipe.vae.encoder.conv_in.weight.dtype == getattr(torch, storage)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
@pytest.mark.parametrize("family", tiny.ONE_A_KIND)
def test_weights_may_rest_narrower_than_they_compute(family: str, storage: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    """Some modules cast their input to their weight's dtype: those weights are stored wide."""
    model = catalog.find(str(folders[family]))
    kept = tuple(Precision(part.name, part.role, storage, "float32", "cpu") for part in model.parts)
    paints = picture_painter.load(folders[family], model, tiny.make_plan(model, precision=kept), {})
    request = PictureRequest("a", guidance=1.0, **{**SMALL, "steps": 1})
    assert isinstance(list(paints.run(request, Control(), None, tmp_path))[-1], Finished)
    for part in model.parts:
        rests = [weight for weight in getattr(paints.pipe, part.name).parameters() if weight.dtype != torch.float32]
        assert rests, "nothing is smaller"


def test_weights_kept_in_half_compute_in_float32(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    """As on Pascal: the result differs from float32 by rounded weights, not by rounded arithmetic."""
    model = catalog.find(str(folders["sd15"]))
    kept = tuple(Precision(part.name, part.role, "float16", "float32", "cpu") for part in model.parts)
    halved = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, precision=kept), {})
    assert halved.pipe.unet.conv_in.weight.dtype == torch.float16
    list(halved.run(PictureRequest("a", **SMALL), Control(), None, tmp_path / "kept"))
    rounded = picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {})
    for part in (rounded.pipe.text_encoder, rounded.pipe.unet, rounded.pipe.vae):
        for module in part.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
                for weight in module.parameters(recurse=False):
                    weight.data = weight.data.half().float()
    list(rounded.run(PictureRequest("a", **SMALL), Control(), None, tmp_path / "rounded"))
    assert (decoded[0] - decoded[1]).abs().max() < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("family", "original"), [("flux", False), ("z-image", False), ("z-image", True)])
def test_a_denoiser_in_gguf_paints_nearly_the_same(
    family: str, original: bool, folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    file = make_gguf(folders[family], tmp_path / "tiny.gguf", original=original)
    bare = tmp_path / "bare"
    shutil.copytree(folders[family], bare)
    (bare / "transformer" / "diffusion_pytorch_model.safetensors").unlink()
    model = catalog.find(str(folders[family]))
    request = PictureRequest("a red ball", guidance=1.0, **{**SMALL, "steps": 1})
    whole = picture_painter.load(folders[family], model, tiny.make_plan(model), {})
    small = picture_painter.load(bare, model, tiny.make_plan(model, quantised="gguf"), {"gguf": file})
    for index, paints in enumerate((whole, small)):
        list(paints.run(request, Control(), None, tmp_path / str(index)))
    kinds = {type(each).__name__ for each in small.pipe.transformer.modules()}
    assert "GGUFLinear" in kinds
    assert 0 < (decoded[0] - decoded[1]).abs().mean() < 0.05


def test_loras_are_worn_with_their_weights_and_taken_off(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    one = str(make_lora(folders["sd15"], tmp_path / "one.safetensors", 1))
    two = str(make_lora(folders["sd15"], tmp_path / "two.safetensors", 2))
    paints, _ = load_painter(folders["sd15"])
    for index, loras in enumerate([(), (Lora(one),), (Lora(one), Lora(two, -0.5)), (Lora(two, -0.5), Lora(one)), (Lora(one, 0.0),), ()]):
        list(paints.run(PictureRequest("a", loras=loras, **SMALL), Control(), None, tmp_path / str(index)))
    bare, first, both, turned, none, off = decoded
    assert torch.allclose(bare, off, atol=1e-4)  # added to the weights and taken off again, it leaves rounding
    assert torch.allclose(bare, none, atol=1e-4)
    assert torch.allclose(both, turned, atol=1e-4)
    assert (bare - first).abs().max() > 1e-2 and (first - both).abs().max() > 1e-2


def test_the_few_steps_lora_is_worn_with_lcm_only(folders: dict[str, Path], tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    few = make_lora(folders["sd15"], tmp_path / "pytorch_lora_weights.safetensors", 4)
    local = catalog.find(str(folders["sd15"]))
    row = catalog.find("sd15")
    model = replace(local, settings=replace(row.settings, width=64, height=64), plain=row.plain, companions=row.companions)
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model), {"few-steps": few.parent})
    bare, _ = load_painter(folders["sd15"])
    for index, (one, scheduler) in enumerate(((paints, "LCM"), (bare, "LCM"), (paints, "Euler"), (bare, "Euler"))):
        list(one.run(PictureRequest("a", scheduler=scheduler, guidance=1.0, **SMALL), Control(), None, tmp_path / str(index)))
    assert (decoded[0] - decoded[1]).abs().max() > 1e-2
    assert torch.allclose(decoded[2], decoded[3], atol=1e-4)
    made = list_parts(list(paints.run(PictureRequest("a", width=64, height=64, seed=1), Control(), None, tmp_path / "auto")))[0]
    restored = picture_settings.read(Path(made.path)).request
    assert (restored.steps, restored.guidance, restored.scheduler) == (6, 1.5, "LCM")


def test_ssd_1b_in_six_steps_is_painted_as_plain_diffusers_does(tmp_path: Path, decoded: list[torch.Tensor]) -> None:
    """With a LoRA for convolutions, too, and a UNet without attention in the middle."""
    folder = tiny.save("sdxl", tmp_path / "model", **tiny.TINY_SSD_1B)
    row, bare = catalog.find("ssd-1b-lcm"), load_painter(folder)[0]
    file, tensors = tmp_path / "hub" / "pytorch_lora_weights.safetensors", draw_lcm_lora(bare.pipe.unet, rank=4)
    file.parent.mkdir()
    save_file(tensors, file)
    assert loader.find_few_steps(row, file.parent) == file
    model = replace(catalog.find(str(folder)), settings=replace(row.settings, width=64, height=64), companions=row.companions)
    paints = picture_painter.load(folder, model, tiny.make_plan(model), {"few-steps": file.parent})
    made = list_parts(list(paints.run(PictureRequest("a red ball", width=64, height=64, seed=11), Control(), None, tmp_path / "made")))[0]
    restored = picture_settings.read(Path(made.path)).request
    assert (restored.steps, restored.guidance, restored.scheduler) == (6, 1.0, "LCM")
    worn = [each for each in paints.pipe.unet.modules() if isinstance(each, LoraLayer) and "few-steps" in each.lora_A]
    assert 3 * len(worn) == len(tensors) == 1269, "each layer of the file is one of the UNet"
    asked: dict[str, Any] = {"prompt": "a red ball", "width": 64, "height": 64, "num_inference_steps": 6, "guidance_scale": 1.0}
    assert_same(decoded[0], paint_with_diffusers(folder, model, lora=file, **asked))
    list(bare.run(PictureRequest("a red ball", scheduler="LCM", guidance=1.0, **{**SMALL, "steps": 6}), Control(), None, tmp_path / "bare"))
    assert (decoded[0] - decoded[1]).abs().max() > 1e-2


def test_of_several_loras_in_a_repository_the_one_that_the_model_names_is_taken(tmp_path: Path) -> None:
    """Other programs put theirs into the same folder."""
    model, named = catalog.find("sdxl-lightning"), tmp_path / "sdxl_lightning_8step_lora.safetensors"
    (tmp_path / "sdxl_lightning_2step_lora.safetensors").touch()
    assert loader.find_few_steps(model, tmp_path) == tmp_path
    named.touch()
    assert loader.find_few_steps(model, tmp_path) == named
    assert loader.find_few_steps(catalog.find("sdxl"), tmp_path) == tmp_path


def test_upscaling_keeps_the_settings_that_were_painted(folders: dict[str, Path], tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    request = PictureRequest("a red ball", upscale=2, **SMALL)
    made = list_parts(list(paints.run(request, Control(), None, tmp_path)))[0]
    assert read_pixels(made.path).shape == (128, 128, 3)
    restored = picture_settings.read(Path(made.path)).request
    assert (restored.width, restored.upscale, restored.seed, restored.steps) == (64, 2, 11, 3)
    again = list_parts(list(paints.run(restored, Control(), None, tmp_path / "again")))[0]
    assert np.array_equal(read_pixels(made.path), read_pixels(again.path))
