"""Files as other programs have them, one row each: it paints what its folder paints within 1 of 255, or which sentence tells why it cannot."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import peft
import pytest
import torch
from diffusers.loaders import single_file_model, single_file_utils
from PIL import Image
from safetensors.torch import load_file, save_file

from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.events import PartDone
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import catalog, picture_families
from app.engine.pictures.run import painter
from tests.support import tiny_original_files as original
from tests.support import tiny_pictures as tiny
from tests.support import tiny_single_files as single

Pixels = np.ndarray[Any, Any]
FAMILIES = ["sd3", "flux", "flux2-klein", "z-image"]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny models are narrower than the real ones, whose widths stand in a table, and for FLUX.1 in the library's converter."""
    for name in FAMILIES:
        family, width = picture_families.FAMILIES[name], 64 if name == "sd3" else 32
        encoders = tuple(replace(each, width=width) if each.width else each for each in family.encoders)
        monkeypatch.setitem(picture_families.FAMILIES, name, replace(family, encoders=encoders))
    converter = single_file_utils.convert_flux_transformer_checkpoint_to_diffusers
    room = dict(vars(single_file_utils))
    exec(inspect.getsource(converter).replace("inner_dim = 3072", "inner_dim = 32"), room)
    row: Any = single_file_model.SINGLE_FILE_LOADABLE_CLASSES["FluxTransformer2DModel"]
    monkeypatch.setitem(row, "checkpoint_mapping_fn", room[converter.__name__])


def paint(path: Path, job: Path, configs: Path | None = None, **asked: Any) -> Pixels:
    found = catalog.find(str(path))
    plan = tiny.make_plan(found, quantised="gguf" if found.gguf else "none")
    paints = painter.load(path, found, plan, {"configs": configs} if configs else {})
    request = PictureRequest("a red ball", width=64, height=64, seed=3, preview_every=0, **{"steps": 2, **asked})
    (done,) = [event for event in paints.run(request, Control(), None, job) if isinstance(event, PartDone)]
    with Image.open(done.path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def change(folder: Path, part: str, values: dict[str, Any]) -> None:
    file = folder / part
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def load_pipe(family: str, folder: Path) -> Any:
    return getattr(diffusers, json.loads((folder / "model_index.json").read_text())["_class_name"]).from_pretrained(folder)


def without(folder: Path, target: Path, *parts: str) -> Path:
    """Copy a folder without the weights of these parts."""
    single.copy_configs(folder, target)
    for file in folder.glob("*/*.safetensors"):
        if file.parent.name not in parts:
            (target / file.parent.name / file.name).write_bytes(file.read_bytes())
    return target


@pytest.mark.parametrize("family", FAMILIES)
def test_a_denoiser_alone_is_put_together_with_its_base_models_parts(family: str, tmp_path: Path) -> None:
    folder = tiny.save(family, tmp_path / "folder")
    pipe = load_pipe(family, folder)
    file = original.write(original.name_denoiser(family, pipe), tmp_path / "unet/x turbo.safetensors")
    found = catalog.find(str(file))
    assert (found.family, found.single_file, found.precision) == (family, True, "float32")
    wanted = found.companions[0].source
    assert "vae/*.safetensors" in wanted.files and "transformer/*.safetensors" in wanted.leave
    assert next(part for part in found.parts if part.role == "denoiser").parameters == sum(
        each.numel() for each in pipe.transformer.state_dict().values()
    )
    base = without(folder, tmp_path / "base", "transformer")
    ours, theirs = paint(file, tmp_path / "a", base), paint(folder, tmp_path / "b")
    assert theirs.std() > 5 and abs(ours - theirs).max() <= 1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_gguf_paints_as_its_weights_unpacked(family: str, tmp_path: Path) -> None:
    folder = tiny.save(family, tmp_path / "folder")
    pipe = load_pipe(family, folder)
    file = tmp_path / "unet/x turbo-Q8_0.gguf"
    read = original.write_gguf(original.name_denoiser(family, pipe), file)
    whole = original.write(read, tmp_path / "unet/whole turbo.safetensors")
    found = catalog.find(str(file))
    assert (found.family, found.gguf) == (family, True)
    assert found.precision == "Q8_0" or family == "sd3"  # whose table of places is most of a tiny one
    base = without(folder, tmp_path / "base", "transformer")
    ours, theirs = paint(file, tmp_path / "a", base), paint(whole, tmp_path / "b", base)
    assert theirs.std() > 5 and abs(ours - theirs).max() <= 1


@pytest.mark.parametrize("family", ["flux", "z-image"])
def test_encoders_and_vae_beside_it_are_used_and_nothing_of_them_is_asked_for(family: str, tmp_path: Path) -> None:
    """As ComfyUI has them: diffusion_models, text_encoders, vae."""
    folder = tiny.save(family, tmp_path / "folder")
    pipe = load_pipe(family, folder)
    models = tmp_path / "ComfyUI/models"
    file = original.write(original.name_denoiser(family, pipe), models / "diffusion_models/x turbo.safetensors")
    original.write(original.name_vae(pipe.vae), models / "vae/ae.safetensors")
    original.write(original.name_encoder(pipe.text_encoder), models / "text_encoders/one.safetensors")
    if family == "flux":
        original.write(pipe.text_encoder_2.state_dict(), models / "clip/t5xxl.safetensors")
    original.write(
        {"layers.0.self_attn.q_norm.weight": torch.zeros(1), "x.scale_weight": torch.zeros(1)}, models / "clip/a packed.safetensors"
    )
    found = catalog.find(str(file))
    assert {part for part, _ in found.beside} == {part.name for part in found.parts if part.role != "denoiser"}
    assert found.companions == (catalog.CONFIGS[family],)
    vae = models / "vae/ae.safetensors"
    vae.rename(models / "ae.elsewhere")
    assert "vae/*.safetensors" in catalog.find(str(file)).companions[0].source.files, (
        "known at once, though the model's own file is as it was"
    )
    (models / "ae.elsewhere").rename(vae)
    base = single.copy_configs(folder, tmp_path / "base")
    ours, theirs = paint(file, tmp_path / "a", base), paint(folder, tmp_path / "b")
    assert theirs.std() > 5 and abs(ours - theirs).max() <= 1


def name_all(pipe: Any, encoders: dict[str, str]) -> dict[str, torch.Tensor]:
    found = {f"vae.{name}": value for name, value in original.name_vae(pipe.vae).items()}
    for part, prefix in encoders.items():
        found |= {f"text_encoders.{prefix}.transformer.{name}": value for name, value in original.name_encoder(getattr(pipe, part)).items()}
    return found


@pytest.mark.parametrize(
    ("family", "encoders"),
    [
        ("flux", {"text_encoder": "clip_l", "text_encoder_2": "t5xxl"}),
        ("sd3", {"text_encoder": "clip_l", "text_encoder_2": "clip_g", "text_encoder_3": "t5xxl"}),
    ],
)
def test_a_file_with_all_parts_needs_only_settings(family: str, encoders: dict[str, str], tmp_path: Path) -> None:
    folder = tiny.save(family, tmp_path / "folder")
    pipe = load_pipe(family, folder)
    named = {f"model.diffusion_model.{name}": value for name, value in original.name_denoiser(family, pipe).items()}
    file = original.write(named | name_all(pipe, encoders), tmp_path / "all in one.safetensors")
    found = catalog.find(str(file))
    assert (found.family, found.companions) == (family, (catalog.CONFIGS[family],))
    base = single.copy_configs(folder, tmp_path / "base")
    ours, theirs = paint(file, tmp_path / "a", base), paint(folder, tmp_path / "b")
    assert theirs.std() > 5 and abs(ours - theirs).max() <= 1


def test_plain_fp8_is_read(tmp_path: Path) -> None:
    folder = tiny.save("z-image", tmp_path / "folder")
    pipe = load_pipe("z-image", folder)
    named = original.name_denoiser("z-image", pipe)
    narrow = {name: value.to(torch.float8_e4m3fn) if value.ndim == 2 else value for name, value in named.items()}
    file = original.write(narrow, tmp_path / "x turbo fp8.safetensors")
    whole = original.write({name: value.to(torch.float32) for name, value in narrow.items()}, tmp_path / "x turbo.safetensors")
    assert catalog.find(str(file)).precision == "fp8"
    base = without(folder, tmp_path / "base", "transformer")
    assert abs(paint(file, tmp_path / "a", base) - paint(whole, tmp_path / "b", base)).max() <= 1


@pytest.mark.parametrize("family", ["sd15", "sdxl"])
def test_a_checkpoint_without_a_vae_gets_its_base_models(family: str, tmp_path: Path) -> None:
    whole, file = single.save(family, tmp_path)
    bare = {name: value for name, value in load_file(file).items() if not name.startswith("first_stage_model.")}
    save_file(bare, tmp_path / "bare.safetensors")
    found = catalog.find(str(tmp_path / "bare.safetensors"))
    assert "vae/*.fp16.safetensors" in found.companions[0].source.files
    base = without(whole, tmp_path / "base", "unet", "text_encoder", "text_encoder_2")
    ours, theirs = paint(tmp_path / "bare.safetensors", tmp_path / "a", base), paint(whole, tmp_path / "b", scheduler="Euler")
    theirs = paint(file, tmp_path / "c", single.copy_configs(whole, tmp_path / "configs"))
    assert theirs.std() > 5 and abs(ours - theirs).max() <= 1


def test_a_v_prediction_file_is_painted_as_one(tmp_path: Path) -> None:
    """As NoobAI's: a marker in the file, which the library does not read."""
    whole, file = single.save("sdxl", tmp_path)
    marked = load_file(file) | {"v_pred": torch.zeros(0), "ztsnr": torch.zeros(0)}
    save_file(marked, tmp_path / "v.safetensors")
    configs = single.copy_configs(whole, tmp_path / "configs")
    v = {"prediction_type": "v_prediction", "rescale_betas_zero_snr": True, "timestep_spacing": "trailing"}
    ours = paint(tmp_path / "v.safetensors", tmp_path / "a", configs, scheduler="Euler")
    plain = paint(file, tmp_path / "b", configs, scheduler="Euler")
    change(whole, "scheduler/scheduler_config.json", v)
    theirs = paint(whole, tmp_path / "c", scheduler="Euler")
    assert abs(ours - theirs).max() <= 1 and abs(ours - plain).max() > 20
    painted = painter.load(
        tmp_path / "v.safetensors", found := catalog.find(str(tmp_path / "v.safetensors")), tiny.make_plan(found), {"configs": configs}
    )
    assert not painted.notes


def test_a_flux_that_takes_guidance_is_painted_with_it(tmp_path: Path) -> None:
    """FLUX.1 dev and its kin, as a folder and as a file: other steps, guidance, length of text and shift of times than schnell."""
    folder = tiny.save("flux", tmp_path / "folder")
    torch.manual_seed(4)
    guided = diffusers.FluxTransformer2DModel(**{**json.loads((folder / "transformer/config.json").read_text()), "guidance_embeds": True})
    for weight in guided.parameters():
        torch.nn.init.normal_(weight, 0, 0.2)
    guided.save_pretrained(folder / "transformer")
    settings = {"use_dynamic_shifting": True, "shift": 3.0, "base_shift": 0.5, "max_shift": 1.15}
    change(folder, "scheduler/scheduler_config.json", settings)
    pipe = load_pipe("flux", folder)
    file = original.write(original.name_denoiser("flux", pipe), tmp_path / "dev.safetensors")
    rows = [catalog.find(str(each)) for each in (folder, file)]
    assert [(row.settings.steps, row.settings.guidance, row.attention.text_tokens) for row in rows] == [(28, 3.5, 512)] * 2
    change(folder, "scheduler/scheduler_config.json", {"use_dynamic_shifting": False, "shift": 1.0})
    base = without(folder, tmp_path / "base", "transformer")
    change(base, "transformer/config.json", {"guidance_embeds": False})
    change(folder, "scheduler/scheduler_config.json", settings)
    ours, theirs = paint(file, tmp_path / "a", base), paint(folder, tmp_path / "b")
    assert abs(ours - theirs).max() <= 1 and abs(theirs - paint(folder, tmp_path / "c", guidance=0.0)).max() > 1


def test_a_folder_saved_in_bfloat16_alone_is_loaded(tmp_path: Path) -> None:
    pipe = tiny.sd15().to(torch.bfloat16)
    pipe.save_pretrained(tmp_path / "model", variant="bf16")
    assert paint(tmp_path / "model", tmp_path / "job").shape == (64, 64, 3)


def change_settings(row: Callable[[Path], None], family: str, folder: Path) -> Any:
    tiny.save(family, folder)
    row(folder)
    return catalog.find(str(folder)).settings


def test_a_folders_settings_are_those_of_what_it_is(tmp_path: Path) -> None:
    whole = change_settings(lambda folder: change(folder, "model_index.json", {"is_distilled": False}), "flux2-klein", tmp_path / "klein")
    assert (whole.steps, whole.guidance) == (50, 4.0)
    spaced = {"timestep_spacing": "trailing"}
    turbo = change_settings(lambda folder: change(folder, "scheduler/scheduler_config.json", spaced), "sdxl", tmp_path / "turbo")
    assert (turbo.steps, turbo.guidance, turbo.scheduler) == (4, 0.0, "")
    assert change_settings(lambda _: None, "sdxl", tmp_path / "plain").steps == 25


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    folder = tiny.save("sd15", tmp_path / "model")
    for file in (folder / "tokenizer").iterdir():
        file.unlink()
    (folder / "tokenizer").rmdir()
    with pytest.raises(Trouble) as told:
        paint(folder, tmp_path / "job")
    assert told.value.sentence.key == "load.no-tokenizer" and "tokenizer" in str(told.value)


KINDS: dict[str, dict[str, tuple[int, ...]]] = {
    "LoHa": {"lora_unet_x.hada_w1_a": (2, 2)}, "LoKr": {"lora_unet_x.lokr_w1": (2, 2)}, "OFT": {"x.oft_blocks": (2, 2, 2)},
    "textual inversion": {"emb_params": (4, 32)},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_lora_is_named(kind: str, tmp_path: Path) -> None:
    folder = tiny.save("sd15", tmp_path / "model")
    file = original.write({name: torch.zeros(shape) for name, shape in KINDS[kind].items()}, tmp_path / "add.safetensors")
    with pytest.raises(Trouble) as told:
        paint(folder, tmp_path / "job", loras=(Lora(str(file)),))
    assert told.value.sentence.key == "lora.kind" and kind in str(told.value)


def test_an_adapter_as_peft_saves_it_is_used_with_its_scale(tmp_path: Path) -> None:
    folder = tiny.save("sd15", tmp_path / "model")
    unet = diffusers.UNet2DConditionModel.from_pretrained(folder / "unet")
    torch.manual_seed(2)
    adapted = peft.get_peft_model(unet, peft.LoraConfig(r=4, lora_alpha=10, init_lora_weights=False, target_modules=["to_q", "to_v"]))
    adapted.save_pretrained(tmp_path / "adapter")
    ours = paint(folder, tmp_path / "a", loras=(Lora(str(tmp_path / "adapter")),))
    plain = paint(folder, tmp_path / "b")
    adapted.merge_and_unload().save_pretrained(folder / "unet")
    assert abs(ours - paint(folder, tmp_path / "c")).max() <= 1 and abs(ours - plain).max() > 5
