"""A picture's file carries its settings: Hearth's exactly, other programs' as far as they go, and nonsense without a crash."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.base.trouble import Trouble
from app.engine.jobs import schedulers
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.pictures.files import foreign_json, foreign_settings, picture_settings
from app.engine.pictures.files.encoded import Format, Wanted, encode_picture
from app.engine.pictures.files.foreign_settings import VISITS_MOST

WHOLE = PictureRequest(
    'a "lighthouse" at dusk, 灯塔, (sea:1.2)\nsecond line', model="sd15", negative="ugly: bad, Steps: 3", width=640, height=448,
    steps=7, guidance=1.5, scheduler="DPM++ 2M Karras", seed=4294967295, batch=1, image="in.png", mask="mask.png",
    strength=0.35, loras=(Lora("ink.safetensors", 0.7), Lora("ice.safetensors", -1.25)), upscale=2, preview_every=0,
)  # fmt: skip


def write_text(path: Path, **text: str) -> Path:
    info = PngInfo()
    for name, value in text.items():
        info.add_itxt(name, value)
    Image.new("RGB", (8, 8)).save(path, pnginfo=info)
    return path


def keys(restored: foreign_settings.RestoredSettings) -> list[str]:
    return [note.key for note in restored.notes]


@pytest.mark.parametrize("request_", [WHOLE, PictureRequest("a")])
def test_what_is_written_comes_back_exactly(request_: PictureRequest, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    picture_settings.write(Image.new("RGB", (8, 8)), path, request_, "Stable Diffusion 1.5")
    found = picture_settings.read(path)
    assert found.request == request_
    told = [each.key for each in found.notes]  # the page has fields for all but these
    assert told == (["restore.image"] if request_.image else [])
    assert [each.name for each in tmp_path.iterdir()] == ["picture.png"]


def test_other_programs_find_a1111s_lines(tmp_path: Path) -> None:
    request = PictureRequest("a ball", negative="ugly", width=512, height=768, steps=20, guidance=7.0, scheduler="Euler a", seed=5)
    picture_settings.write(Image.new("RGB", (8, 8)), tmp_path / "p.png", request, "SD")
    with Image.open(tmp_path / "p.png") as picture:
        lines = str(picture.info["parameters"]).split("\n")
    assert lines[:2] == ["a ball", "Negative prompt: ugly"]
    assert lines[2].startswith("Steps: 20, Sampler: Euler a, CFG scale: 7.0, Seed: 5, Size: 512x768, Model: SD, Version: Hearth")


A1111 = """\
masterpiece, a castle: on a hill <lora:ink_wash:0.8>
with two lines
Negative prompt: blurry, bad hands,
extra fingers
Steps: 30, Sampler: DPM++ 2M, Schedule type: Karras, CFG scale: 6.5, Seed: 123456, Size: 512x768, \
Model hash: 6ce0161689, Model: v1-5-pruned, VAE: "a, b: c", Lora hashes: "ink_wash: 1234", Version: v1.9.3"""


def test_reads_a1111(tmp_path: Path) -> None:
    restored = picture_settings.read(write_text(tmp_path / "p.png", parameters=A1111))
    assert restored.request == PictureRequest(
        "masterpiece, a castle: on a hill \nwith two lines",
        model="v1-5-pruned",
        negative="blurry, bad hands,\nextra fingers",
        steps=30,
        scheduler="DPM++ 2M Karras",
        guidance=6.5,
        seed=123456,
        width=512,
        height=768,
        loras=(Lora("ink_wash", 0.8),),
    )
    assert keys(restored) == ["restore.lost"]


def test_reads_a1111_of_old_of_jpeg_and_with_what_does_not_fit(tmp_path: Path) -> None:
    old = "a cat\nSteps: 20, Sampler: DPM fast, CFG scale: 7, Seed: 99999999999, Size: 513x512, Denoising strength: 0.4"
    restored = picture_settings.read(write_text(tmp_path / "p.png", parameters=old))
    assert restored.request == PictureRequest("a cat", steps=20, guidance=7.0, height=512, strength=0.4)
    assert keys(restored) == ["restore.image", "restore.sampler", "restore.number", "restore.number"]
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + A1111.encode("utf-16-be")
    Image.new("RGB", (8, 8)).save(tmp_path / "p.jpg", exif=exif)
    jpeg = picture_settings.read(tmp_path / "p.jpg").request
    assert (jpeg.seed, jpeg.steps) == (123456, 30)


COMFY: dict[str, Any] = {
    "3": {"class_type": "KSampler", "inputs": {
        "seed": 156680208700286, "steps": 20, "cfg": 8, "sampler_name": "dpmpp_2m", "scheduler": "karras", "denoise": 1,
        "model": ["10", 0], "positive": ["12", 0], "negative": ["7", 0], "latent_image": ["5", 0]}},
    "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "v1-5-pruned-emaonly.safetensors"}},
    "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 640, "batch_size": 1}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a glass bottle", "clip": ["4", 1]}},
    "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "text, watermark", "clip": ["4", 1]}},
    "10": {"class_type": "LoraLoader", "inputs": {"lora_name": "ink.safetensors", "model": ["4", 0]}},
    "12": {"class_type": "ControlNetApply", "inputs": {"strength": 1, "conditioning": ["6", 0]}},
}  # fmt: skip


def test_reads_comfyui(tmp_path: Path) -> None:
    restored = picture_settings.read(write_text(tmp_path / "p.png", prompt=json.dumps(COMFY), workflow="{}"))
    assert restored.request == PictureRequest(
        "a glass bottle",
        model="v1-5-pruned-emaonly",
        negative="text, watermark",
        steps=20,
        guidance=8.0,
        scheduler="DPM++ 2M Karras",
        width=512,
        height=640,
        loras=(Lora("ink.safetensors"),),
    )
    assert keys(restored) == ["restore.guide", "restore.number"], "its seed has more than 32 bits"


@pytest.mark.parametrize("kind", ["conditioning", "text"])
@pytest.mark.parametrize(("nodes", "found"), [(1, True), (VISITS_MOST - 1, True), (VISITS_MOST, False)])
def test_a_comfyui_text_is_found_behind_many_nodes(tmp_path: Path, nodes: int, found: bool, kind: str) -> None:
    chain: dict[str, Any] = {str(20 + place): {"inputs": {kind: [str(21 + place), 0]}} for place in range(nodes)}
    chain[str(19 + nodes)]["inputs"][kind] = ["6", 0]
    sampler = {**COMFY["3"], "inputs": {**COMFY["3"]["inputs"], "positive": ["20", 0]}}
    path = write_text(tmp_path / "p.png", prompt=json.dumps({**COMFY, "3": sampler, **chain}))
    with nullcontext() if found else pytest.raises(Trouble):
        assert picture_settings.read(path).request.prompt == "a glass bottle"


FLUX = {
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "cute anime girl", "clip": ["11", 0]}},
    "8": {"class_type": "VAEDecode", "inputs": {"samples": ["13", 0], "vae": ["10", 0]}},
    "10": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}},
    "11": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "t5xxl.safetensors", "clip_name2": "clip_l.safetensors", "type": "flux"}},
    "12": {"class_type": "UNETLoader", "inputs": {"unet_name": "flux1-dev.safetensors", "weight_dtype": "default"}},
    "13": {"class_type": "SamplerCustomAdvanced", "inputs": {
        "noise": ["25", 0], "guider": ["22", 0], "sampler": ["16", 0], "sigmas": ["17", 0], "latent_image": ["27", 0]}},
    "16": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
    "17": {"class_type": "BasicScheduler", "inputs": {"scheduler": "simple", "steps": 20, "denoise": 1, "model": ["30", 0]}},
    "22": {"class_type": "BasicGuider", "inputs": {"model": ["30", 0], "conditioning": ["26", 0]}},
    "25": {"class_type": "RandomNoise", "inputs": {"noise_seed": 219670278}},
    "26": {"class_type": "FluxGuidance", "inputs": {"guidance": 3.5, "conditioning": ["6", 0]}},
    "27": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 1024, "height": 768, "batch_size": 1}},
    "30": {"class_type": "ModelSamplingFlux", "inputs": {"max_shift": 1.15, "width": 1024, "height": 768, "model": ["12", 0]}},
}  # fmt: skip
SD3 = {
    "3": {"class_type": "KSampler", "inputs": {"seed": 7, "steps": 28, "cfg": 4.5, "sampler_name": "dpmpp_2m", "scheduler": "sgm_uniform",
                                               "denoise": 1, "model": ["4", 0], "positive": ["16", 0], "negative": ["40", 0], "latent_image": ["53", 0]}},
    "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd3.5_medium.safetensors"}},
    "16": {"class_type": "CLIPTextEncode", "inputs": {"text": "a bottle", "clip": ["4", 1]}},
    "40": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["4", 1]}},
    "53": {"class_type": "EmptySD3LatentImage", "inputs": {"width": 1024, "height": 1024}},
}  # fmt: skip
FOOOCUS = {
    "base_model": "juggernautXL_v8", "guidance_scale": 4, "loras": [["offset", 0.1, "4852686128"]], "metadata_scheme": "fooocus",
    "negative_prompt": "ugly", "prompt": "a bottle", "resolution": "(1152, 896)", "sampler": "dpmpp_2m_sde_gpu", "scheduler": "karras",
    "seed": "7", "steps": 30, "styles": "['Fooocus V2']", "version": "Fooocus v2.5.0",
}  # fmt: skip
SWARM = {"sui_image_params": {
    "prompt": "a bottle", "negativeprompt": "ugly", "model": "OfficialStableDiffusion/sd_xl_base_1.0.safetensors", "seed": 7, "steps": 30, "cfgscale": 4.0,
    "width": 1152, "height": 896, "sampler": "euler_ancestral", "scheduler": "normal", "loras": ["offset"], "loraweights": ["0.1"],
}}  # fmt: skip
INVOKE = {
    "generation_mode": "sdxl_txt2img", "positive_prompt": "a bottle", "negative_prompt": "ugly", "width": 1152, "height": 896, "seed": 7,
    "cfg_scale": 4.0, "steps": 30, "scheduler": "dpmpp_2m_k", "model": {"name": "sd_xl_base_1.0", "hash": "x"},
    "loras": [{"model": {"name": "offset"}, "weight": 0.1}],
}  # fmt: skip


def test_reads_comfyuis_templates_of_flux_and_sd3(tmp_path: Path) -> None:
    flux = picture_settings.read(write_text(tmp_path / "f.png", prompt=json.dumps(FLUX)))
    assert (
        flux.request
        == PictureRequest(
            "cute anime girl", model="flux1-dev", steps=20, guidance=3.5, scheduler="Euler", seed=219670278, width=1024, height=768
        )
        and keys(flux) == []
    )
    sd3 = picture_settings.read(write_text(tmp_path / "s.png", prompt=json.dumps(SD3)))
    assert sd3.request == PictureRequest(
        "a bottle", model="sd3.5_medium", negative="blurry", steps=28, guidance=4.5, seed=7, width=1024, height=1024
    )
    assert [str(each) for each in sd3.notes] == ["Hearth does not know the sampler DPM++ 2M sgm uniform; the model's own is used."]


@pytest.mark.parametrize(
    ("text", "model", "sampler"),
    [
        ({"parameters": FOOOCUS}, "juggernautXL_v8", "DPM++ 2M SDE Karras"),
        ({"parameters": SWARM}, "sd_xl_base_1.0", "Euler a"),
        ({"invokeai_metadata": INVOKE}, "sd_xl_base_1.0", "DPM++ 2M Karras"),
    ],
)
def test_reads_what_fooocus_swarmui_and_invokeai_store_as_json(text: dict[str, Any], model: str, sampler: str, tmp_path: Path) -> None:
    path = write_text(tmp_path / "p.png", **{name: json.dumps(value) for name, value in text.items()})
    assert picture_settings.read(path).request == PictureRequest(
        "a bottle",
        model=model,
        negative="ugly",
        steps=30,
        guidance=4.0,
        seed=7,
        width=1152,
        height=896,
        loras=(Lora("offset", 0.1),),
        scheduler=sampler,
    )


@pytest.mark.parametrize(
    ("name", "schedule", "ours"),
    [
        ("DPM++ 2M SDE", "Karras", "DPM++ 2M SDE Karras"),
        ("DPM++ 2M SDE Karras", "", "DPM++ 2M SDE Karras"),
        ("dpmpp_2m_sde_gpu", "karras", "DPM++ 2M SDE Karras"),
        ("dpmpp_2m_sde_k", "", "DPM++ 2M SDE Karras"),
        ("dpmpp_2s", "", "DPM++ 2S"),
        ("Euler", "SGM Uniform", "Euler trailing"),
        ("euler_ancestral", "sgm_uniform", "Euler a trailing"),
        ("Euler a", "Automatic", "Euler a"),
        ("euler_a", "", "Euler a"),
        ("PLMS", "", "PNDM"),
    ],
)
def test_a_sampler_keeps_its_schedule(name: str, schedule: str, ours: str) -> None:
    assert foreign_settings.name_sampler(name, schedule) == ours and ours in schedulers.NAMES


@pytest.mark.parametrize(
    ("name", "schedule", "told"),
    [
        ("dpmpp_2m", "exponential", "DPM++ 2M exponential"),
        ("DPM++ 2M", "SGM Uniform", "DPM++ 2M SGM Uniform"),
        ("DPM++ 2S a", "Karras", "DPM++ 2S a Karras"),
        ("dpmpp_2s_ancestral", "normal", "dpmpp_2s_ancestral"),
    ],
)
def test_a_sampler_that_hearth_lacks_is_told_by_its_own_name(name: str, schedule: str, told: str) -> None:
    """An ancestral one adds noise at each step, which Hearth's DPM++ 2S does not."""
    assert foreign_settings.name_sampler(name, schedule) == told and told not in schedulers.NAMES


FORGE = (
    "a lighthouse in fog\nSteps: 20, Sampler: Euler, Schedule type: Simple, CFG scale: 1, Distilled CFG Scale: 3.5, Seed: 42, Size: 896x1152, "
    "Model hash: d5d1e2a8b0, Model: flux1-dev-Q8_0, Version: f2.0.1v1.10.1-previous-313-g8a042934, Module 1: ae, Module 2: clip_l, Module 3: t5xxl_fp16"
)
A1111_TODAY = (
    "a lighthouse, (fog:1.2)\nNegative prompt: blurry\nSteps: 25, Sampler: DPM++ 2M, Schedule type: Karras, CFG scale: 7, Seed: 7, Size: 512x768, "
    "Model hash: 6ce0161689, Model: v1-5-pruned, VAE hash: 735e4c3a44, VAE: vae-ft-mse-840000-ema-pruned.safetensors, Denoising strength: 0.45, "
    'Clip skip: 2, Hires upscale: 2, Hires steps: 15, Hires upscaler: Latent, TI hashes: "easynegative: c74b4e810b03", Version: v1.10.1\n'
    "Template: a lighthouse, __weather__"
)
KLEIN = {
    "1": {"class_type": "UNETLoader", "inputs": {"unet_name": "flux-2-klein-4b.safetensors", "weight_dtype": "default"}},
    "4": {"class_type": "CLIPTextEncode", "inputs": {"text": ["20", 0], "clip": ["2", 0]}},
    "5": {"class_type": "ConditioningZeroOut", "inputs": {"conditioning": ["4", 0]}},
    "6": {"class_type": "EmptyFlux2LatentImage", "inputs": {"width": ["21", 0], "height": ["22", 0], "batch_size": 1}},
    "7": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
    "8": {"class_type": "Flux2Scheduler", "inputs": {"steps": 4, "width": ["21", 0], "height": ["22", 0]}},
    "9": {"class_type": "RandomNoise", "inputs": {"noise_seed": 42}},
    "10": {"class_type": "CFGGuider", "inputs": {"model": ["1", 0], "positive": ["4", 0], "negative": ["5", 0], "cfg": 1}},
    "11": {"class_type": "SamplerCustomAdvanced", "inputs": {
        "noise": ["9", 0], "guider": ["10", 0], "sampler": ["7", 0], "sigmas": ["8", 0], "latent_image": ["6", 0]}},
    "20": {"class_type": "PrimitiveStringMultiline", "inputs": {"value": "a lighthouse in fog"}},
    "21": {"class_type": "PrimitiveInt", "inputs": {"value": 1024}},
    "22": {"class_type": "PrimitiveInt", "inputs": {"value": 768}},
}  # fmt: skip
ENLARGED = {  # its second pass stands before the first one
    "2": {"class_type": "KSampler", "inputs": {"seed": 9, "steps": 10, "cfg": 8, "sampler_name": "euler", "scheduler": "normal", "denoise": 0.5,
                                               "model": ["4", 0], "positive": ["6", 0], "negative": ["7", 0], "latent_image": ["8", 0]}},
    "8": {"class_type": "LatentUpscaleBy", "inputs": {"scale_by": 2, "samples": ["3", 0]}},
    "13": {"class_type": "CLIPSetLastLayer", "inputs": {"stop_at_clip_layer": -2, "clip": ["4", 1]}},
    **COMFY, "3": {**COMFY["3"], "inputs": {**COMFY["3"]["inputs"], "seed": 7}},
}  # fmt: skip
FOOOCUS_255 = FOOOCUS | {
    "adm_guidance": "(1.5, 0.8, 0.3)", "base_model_hash": "aeb7e9e689", "clip_skip": 2, "performance": "Speed", "refiner_model": "None",
    "refiner_switch": 0.5, "sharpness": 2, "vae": "Default (model)", "full_prompt": ["cinematic still a bottle"], "lora_combined_1": "offset : 0.1",
}  # fmt: skip
SWARM_STARTED = {
    "sui_image_params": {
        "prompt": "a bottle", "model": "flux1-dev", "seed": 7, "steps": 16, "cfgscale": 1.0, "fluxguidancescale": 3.5, "width": 1248, "height": 1824,
        "sampler": "euler", "scheduler": "beta", "initimagecreativity": 0.6, "clipstopatlayer": -2, "swarm_version": "0.9.8.1"},
    "sui_extra_data": {"date": "2026-07-18", "initimage_filename": "raw/x.png"},
    "sui_models": [{"name": "flux1-dev.safetensors", "param": "model", "hash": "0x84fc41ea"}],
}  # fmt: skip
INVOKE_FLUX = {
    "generation_mode": "flux_txt2img", "positive_prompt": "a lake", "width": 1360, "height": 768, "seed": 3, "steps": 30, "guidance": 4, "cfg_scale": 1,
    "scheduler": "euler", "model": {"key": "k", "name": "FLUX Dev", "base": "flux", "hash": "blake3:x"}, "clip_skip": 0, "app_version": "6.10.0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "request_", "notes"),
    [
        ("parameters", FORGE, PictureRequest(
            "a lighthouse in fog", model="flux1-dev-Q8_0", steps=20, guidance=3.5, seed=42, width=896, height=1152, scheduler="Euler"), []),
        ("parameters", A1111_TODAY, PictureRequest(
            "a lighthouse, (fog:1.2)", model="v1-5-pruned", negative="blurry", steps=25, guidance=7.0, seed=7, width=512, height=768,
            scheduler="DPM++ 2M Karras", upscale=2, hires=True, hires_strength=0.45), ["restore.lost"]),
        ("prompt", KLEIN, PictureRequest(
            "a lighthouse in fog", model="flux-2-klein-4b", steps=4, guidance=1.0, seed=42, width=1024, height=768, scheduler="Euler"), []),
        ("prompt", ENLARGED, PictureRequest(
            "a glass bottle", model="v1-5-pruned-emaonly", negative="text, watermark", steps=20, guidance=8.0, seed=7, width=512, height=640,
            scheduler="DPM++ 2M Karras", loras=(Lora("ink.safetensors"),), upscale=2, hires=True, hires_strength=0.5),
            ["restore.guide", "restore.lost"]),
        ("parameters", FOOOCUS_255, PictureRequest(
            "a bottle", model="juggernautXL_v8", negative="ugly", steps=30, guidance=4.0, seed=7, width=1152, height=896, loras=(Lora("offset", 0.1),),
            scheduler="DPM++ 2M SDE Karras"), ["restore.lost"]),
        ("parameters", SWARM_STARTED, PictureRequest(
            "a bottle", model="flux1-dev", steps=16, guidance=3.5, seed=7, width=1248, height=1824, strength=0.6),
            ["restore.image", "restore.lost", "restore.sampler"]),
        ("invokeai_metadata", INVOKE_FLUX, PictureRequest(
            "a lake", model="FLUX Dev", steps=30, guidance=4.0, seed=3, width=1360, height=768, scheduler="Euler"), []),
    ],
)  # fmt: skip
def test_reads_what_each_tool_writes_today(name: str, text: Any, request_: PictureRequest, notes: list[str], tmp_path: Path) -> None:
    written = text if isinstance(text, str) else json.dumps(text)
    restored = picture_settings.read(write_text(tmp_path / "p.png", **{name: written}))
    assert (restored.request, keys(restored)) == (request_, notes)


RESIZED = (
    "a cat\nSteps: 25, Sampler: Euler a, Schedule type: Automatic, CFG scale: 7, Seed: 7, Size: 512x768, Model: x, Denoising strength: 0.45, "
    "Hires CFG Scale: {cfg}, Hires resize: {size}, Hires steps: 25, Hires upscaler: None, Hires sampler: DPM++ 2M, Version: v1.10.1"
)


@pytest.mark.parametrize(
    ("size", "upscale", "noted"),
    [
        ("1024x1536", 2, []),
        ("1024x0", 2, []),
        ("0x2304", 3, []),
        ("768x1152", 1.5, []),
        ("512x768", 1, []),
        ("4096x6144", 1, ["restore.number"]),
    ],
)
def test_a_picture_that_a1111_enlarged_to_a_size_is_from_no_other_picture(size: str, upscale: float, noted: list[str]) -> None:
    found = foreign_settings.read_a1111(RESIZED.format(cfg=7, size=size))
    assert (found.request.upscale, found.request.hires, keys(found)) == (upscale, upscale > 1, ["restore.lost", *noted])
    assert found.request.hires_strength == 0.45 and found.request.strength == PictureRequest("a").strength


@pytest.mark.parametrize(("written", "times"), [("1.5", 1.5), ("2", 2), ("1.85", 1.85), ("2.0", 2), ("1", 1)])
def test_what_a1111_wrote_of_hires_is_read_and_written_again(written: str, times: float, tmp_path: Path) -> None:
    text = (
        f"a cat\nSteps: 25, Sampler: Euler a, Seed: 7, Size: 512x768, Denoising strength: 0.45, Hires upscale: {written}, Version: v1.10.1"
    )
    found = foreign_settings.read_a1111(text)
    assert (found.request.upscale, found.request.hires, found.request.hires_strength, found.notes) == (times, times > 1, 0.45, ())
    again = picture_settings.format_a1111(found.request, "x")
    assert (f"Denoising strength: 0.45, Hires upscale: {times:g}" in again) == (times > 1)
    picture_settings.write(Image.new("RGB", (8, 8)), path := tmp_path / "p.png", found.request, "x")
    assert picture_settings.read(path).request == found.request


@pytest.mark.parametrize(("cfg", "told"), [(7, "Hires sampler DPM++ 2M"), (5, "Hires CFG scale 5, Hires sampler DPM++ 2M")])
def test_what_the_second_pass_did_otherwise_is_told(cfg: int, told: str) -> None:
    found = foreign_settings.read_a1111(RESIZED.format(cfg=cfg, size="1024x1536"))
    assert str(found.notes[0]).endswith(f"left out: {told}.")


POWER = {"class_type": "Power Lora Loader (rgthree)", "inputs": {
    "PowerLoraLoaderHeaderWidget": {"type": "PowerLoraLoaderHeaderWidget"}, "\u2795 Add Lora": "", "model": ["4", 0],
    "lora_1": {"on": True, "lora": "ink.safetensors", "strength": 0.8}, "lora_2": {"on": False, "lora": "off.safetensors", "strength": 1}}}  # fmt: skip
STACK = {"class_type": "Lora Loader Stack (rgthree)", "inputs": {
    "lora_01": "ink.safetensors", "strength_01": 0.8, "lora_02": "None", "strength_02": 1, "model": ["4", 0]}}  # fmt: skip
STACKER = {"class_type": "LoRA Stacker", "inputs": {"lora_name_1": "ink.safetensors", "lora_wt_1": 0.8, "model": ["4", 0]}}
TYPED = {"class_type": "LoraLoader Plus", "inputs": {
    "lora_name": "ink.safetensors", "strength_model": 0.8, "lora_type": "style", "model": ["4", 0]}}  # fmt: skip


@pytest.mark.parametrize(
    ("loader", "loras", "lost"),
    [
        (POWER, (Lora("ink.safetensors", 0.8),), None),
        (STACK, (Lora("ink.safetensors", 0.8),), None),
        (STACKER, (), "LoRA Stacker"),
        (TYPED, (Lora("ink.safetensors", 0.8),), None),
    ],
)
def test_the_loras_of_a_graph_are_those_that_lead_to_its_sampler(loader: dict[str, Any], loras: tuple[Lora, ...], lost: str | None) -> None:
    unused = {"class_type": "LoraLoader", "inputs": {"lora_name": "unused.safetensors", "strength_model": 1, "model": ["4", 0]}}
    read = foreign_settings.read_comfyui(json.dumps({**COMFY, "10": loader, "99": unused}))
    told = [str(each).rpartition(": ")[2] for each in read.notes if each.key == "restore.lost"]
    assert read.request.loras == loras and told == ([f"{lost}."] if lost else [])


def test_loras_in_a_row_and_of_a_guider_are_all_read() -> None:
    more: dict[str, Any] = {
        "class_type": "LoraLoaderModelOnly",
        "inputs": {"lora_name": "ice.safetensors", "strength_model": 0.5, "model": ["10", 0]},
    }
    row = {**COMFY, "9": more, "3": {**COMFY["3"], "inputs": {**COMFY["3"]["inputs"], "model": ["9", 0]}}}
    assert foreign_settings.read_comfyui(json.dumps(row)).request.loras == (Lora("ink.safetensors"), Lora("ice.safetensors", 0.5))
    guided = {**FLUX, "9": {**more, "inputs": {**more["inputs"], "model": ["12", 0]}}, "22": {
        "class_type": "BasicGuider", "inputs": {"model": ["9", 0], "conditioning": ["26", 0]}}}  # fmt: skip
    assert foreign_settings.read_comfyui(json.dumps(guided)).request.loras == (Lora("ice.safetensors", 0.5),)


def test_what_invokeai_painted_with_besides_is_told() -> None:
    styled = INVOKE | {"positive_style_prompt": "oil", "negative_style_prompt": "ugly", "ipAdapters": [{"weight": 1}]}
    read = foreign_json.read_json(json.dumps(styled))
    assert keys(read) == ["restore.reference", "restore.lost"] and str(read.notes[1]).endswith("left out: Style prompt oil.")
    assert keys(foreign_json.read_json(json.dumps(INVOKE | {"positive_style_prompt": "a bottle", "ipAdapters": []}))) == []


def test_what_is_left_out_is_named_as_the_program_named_it() -> None:
    lost = next(str(each) for each in foreign_settings.read_a1111(A1111_TODAY).notes if each.key == "restore.lost")
    assert lost.endswith("left out: VAE vae-ft-mse-840000-ema-pruned.safetensors, Clip skip 2, Hires steps 15, Hires upscaler Latent.")
    assert not foreign_settings.list_lost({"clip skip": "1", "tiling": "False", "refiner_model": "None", "seamless_x": False})


@pytest.mark.parametrize(
    "comment",
    [
        b"UNICODE\0" + A1111_TODAY.encode("utf-16-be"), b"UNICODE\0" + A1111_TODAY.encode("utf-16-le"),
        b"ASCII\0\0\0" + A1111_TODAY.encode(), A1111_TODAY.encode() + b"\0",
    ],
)  # fmt: skip
def test_reads_a_comment_however_its_program_encodes_it(comment: bytes, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9286] = comment
    for ending in ("jpg", "webp"):
        Image.new("RGB", (8, 8)).save(tmp_path / f"p.{ending}", exif=exif)
        assert picture_settings.read(tmp_path / f"p.{ending}").request.negative == "blurry"


def test_other_programs_always_find_a_sampler(tmp_path: Path) -> None:
    """sd-parsers takes a picture without one for none of A1111_TODAY's; Hearth reads it as the model's own."""
    picture_settings.write(Image.new("RGB", (8, 8)), tmp_path / "p.png", PictureRequest("a ball", steps=4, width=64, height=64), "FLUX")
    text = picture_settings.read_text(tmp_path / "p.png")
    assert "Sampler: Automatic" in text
    restored = foreign_settings.read_a1111(text)
    assert restored.request.scheduler is None and keys(restored) == []


def test_a_reader_that_splits_at_commas_finds_the_model_that_paints() -> None:
    """sd-parsers does, and took the name of what guides the picture for the model's."""
    request = PictureRequest(
        "a ball", steps=4, guidance=7.0, seed=5, width=64, height=64, guide="g.png", guide_as="edges", control="canny.safetensors"
    )
    line = picture_settings.format_a1111(request, "Stable Diffusion 1.5").split("\n")[-1]
    pairs = [item.split(":") for item in line.split(",")]
    split = {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}
    assert split["Model"] == "Stable Diffusion 1.5" and split["Sampler"] == "Automatic" and split["Seed"] == "5"


@pytest.mark.parametrize(
    ("module", "made"),
    [("canny", "edges"), ("depth_midas", "depth"), ("openpose_full", "pose"), ("dw_openpose_full", "pose"), ("none", ""), ("lineart", "")],
)
def test_how_a_picture_guided_another_comes_back_from_a1111(module: str, made: str) -> None:
    text = (
        "a ball\nSteps: 20, Sampler: Euler, CFG scale: 7, Seed: 5, Size: 512x512, Model: v1-5, "
        f'ControlNet 0: "Module: {module}, Model: control_v11p_sd15_openpose [cab727d4], Weight: 0.8, Resize Mode: Crop and Resize, '
        'Processor Res: 512, Guidance Start: 0.1, Guidance End: 0.9, Pixel Perfect: True", Version: v1.10.0'
    )
    restored = foreign_settings.read_a1111(text)
    asked = restored.request
    assert (asked.control, asked.guide_as, asked.model) == ("control_v11p_sd15_openpose", made, "v1-5") and keys(restored) == [
        "restore.guide"
    ]
    assert (asked.guide_strength, asked.guide_from, asked.guide_to) == (0.8, 0.1, 0.9)
    none = foreign_settings.read_a1111(text.replace("control_v11p_sd15_openpose [cab727d4]", "None"))
    assert none.request.control == ""


@pytest.mark.parametrize(
    ("node", "made"),
    [
        ("OpenposePreprocessor", "pose"),
        ("DWPreprocessor", "pose"),
        ("DepthAnythingPreprocessor", "depth"),
        ("Canny", "edges"),
        ("ImageScale", ""),
    ],
)
def test_how_a_picture_guided_another_comes_back_from_comfyui(node: str, made: str) -> None:
    inputs = {"strength": 0.7, "start_percent": 0.0, "end_percent": 0.6, "positive": ["6", 0], "control_net": ["20", 0], "image": ["21", 0]}
    graph = COMFY | {
        "12": {"class_type": "ControlNetApplyAdvanced", "inputs": inputs},
        "20": {"class_type": "ControlNetLoader", "inputs": {"control_net_name": "sd15/pose.safetensors"}},
        "21": {"class_type": node, "inputs": {"image": ["22", 0]}},
        "22": {"class_type": "LoadImage", "inputs": {"image": "depth of canny.png"}},
    }
    asked = foreign_settings.read_comfyui(json.dumps(graph)).request
    assert (asked.control, asked.guide_as) == ("pose.safetensors", made)
    assert (asked.guide_strength, asked.guide_from, asked.guide_to) == (0.7, 0.0, 0.6)


@pytest.mark.parametrize("name", ['portraits, v1: "soft"', "C:\\models", "plain v1.5"])
def test_a_models_name_comes_back_whatever_is_in_it(name: str) -> None:
    text = picture_settings.format_a1111(PictureRequest("a ball", steps=4, seed=5, width=64, height=64), name)
    assert foreign_settings.split_a1111(text)[2]["Model"] == name


def test_a_graph_that_bites_its_tail_ends(tmp_path: Path) -> None:
    ring = {**COMFY, "6": {"class_type": "X", "inputs": {"conditioning": ["12", 0]}}}
    with pytest.raises(Trouble):
        picture_settings.read(write_text(tmp_path / "p.png", prompt=json.dumps(ring)))


@pytest.mark.parametrize(
    "text",
    [
        {}, {"parameters": ""}, {"hearth": "{}"}, {"hearth": "["}, {"prompt": "[]"}, {"prompt": '{"3": 5}'}, {"prompt": "{}"},
        {"hearth": '{"request": {"kind": "picture", "prompt": "a", "steps": -1}}'},
        {"hearth": '{"request": {"kind": "picture", "prompt": "a", "from_the_future": 1}}'},
        {"parameters": "Negative prompt: only\nSteps: 3"},
    ],
)  # fmt: skip
def test_nonsense_is_told_and_nothing_more(text: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(Trouble):
        picture_settings.read(write_text(tmp_path / "p.png", **text))


def test_what_is_no_picture_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    path.write_text("hello")
    with pytest.raises(Trouble) as told:
        picture_settings.read(path)
    assert told.value.sentence.key == "restore.no-picture"


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_any_text_reads_without_a_crash(text: str) -> None:
    for reader in (foreign_settings.read_a1111, foreign_settings.read_comfyui):
        try:
            assert isinstance(reader(text), foreign_settings.RestoredSettings)
        except Trouble:
            continue
        except (ValueError, TypeError, KeyError, AttributeError, StopIteration, RecursionError):
            assert reader is foreign_settings.read_comfyui


def test_a_graph_that_joins_prompts_and_samples_again_is_read_whole(tmp_path: Path) -> None:
    again: dict[str, Any] = {
        "class_type": "KSampler",
        "inputs": {
            "seed": 9,
            "steps": 10,
            "denoise": 0.4,
            "model": ["4", 0],
            "positive": ["6", 0],
            "negative": ["7", 0],
            "latent_image": ["8", 0],
        },
    }
    joined = {"class_type": "ConditioningConcat", "inputs": {"conditioning_to": ["6", 0], "conditioning_from": ["21", 0]}}
    more = {"class_type": "CLIPTextEncode", "inputs": {"text": "at night", "clip": ["4", 1]}}
    graph = {**COMFY, "3": {**COMFY["3"], "inputs": {**COMFY["3"]["inputs"], "positive": ["20", 0]}}, "20": joined, "21": more}
    first = picture_settings.read(write_text(tmp_path / "a.png", prompt=json.dumps(COMFY))).request
    width = {"class_type": "LatentUpscale", "inputs": {"width": (first.width or 0) * 2, "height": 0, "samples": ["3", 0]}}
    half = {"class_type": "LatentUpscaleBy", "inputs": {"scale_by": 1.5, "samples": ["3", 0]}}
    for nodes, times in (
        ({"8": width}, 2),
        ({"8": half}, 1.5),
        ({"8": {"class_type": "Bend", "inputs": {"samples": ["3", 0]}}}, 1),
        ({"8": joined}, 1),
    ):
        found = picture_settings.read(write_text(tmp_path / "b.png", prompt=json.dumps({**graph, "9": again, **nodes})))
        assert found.request.prompt == f"{first.prompt}, at night" and found.request.upscale == times
        assert (found.request.hires, found.request.hires_strength) == (
            (True, 0.4) if times > 1 else (False, PictureRequest("a").hires_strength)
        )
        assert any("a second KSampler" in str(note) for note in found.notes) == (times == 1)
    mixed = graph | {"20": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["6", 0], "conditioning_2": ["21", 0]}}}
    found = picture_settings.read(write_text(tmp_path / "c.png", prompt=json.dumps(mixed)))
    assert found.request.prompt == first.prompt and any("ConditioningCombine" in str(note) for note in found.notes)
    endless = graph | {"20": {"class_type": "Bend", "inputs": {"conditioning": ["20", 0]}}}
    with pytest.raises(Trouble):
        picture_settings.read(write_text(tmp_path / "d.png", prompt=json.dumps(endless)))


@pytest.mark.parametrize(
    ("invokes", "ours"),
    [
        ("a (red fox)1.4, trees++, mist-", "a (red fox:1.4), (trees:1.21), (mist:0.9)"),
        ("a (red fox), (old barn)--", "a red fox, (old barn:0.81)"),
        ("well-known rock-and-roll, C++17, 3-4", "well-known rock-and-roll, C++17, 3-4"),
        ("a fox \\(animal\\)", "a fox \\(animal\\)"),
    ],
)
def test_weights_behind_the_words_come_before_them(invokes: str, ours: str) -> None:
    assert foreign_json.rewrite_weights(invokes) == ours


def test_what_a_prompt_orders_and_hearth_does_not_do_is_told(tmp_path: Path) -> None:
    lines = (
        "a castle BREAK at night, [cat:dog:0.5] <lora:ink:9>\nSteps: 20, Seed: 1, Size: 512x512, RNG: CPU, Mask mode: Inpaint not masked"
    )
    found = picture_settings.read(write_text(tmp_path / "a.png", parameters=lines))
    told = " ".join(map(str, found.notes))
    assert all(each in told for each in ("BREAK", "[cat:dog:0.5]", "RNG CPU", "Mask mode Inpaint not masked")), told
    assert "The LoRA ink has the weight 9.0" in told and found.request.loras == ()
    invoke = INVOKE_FLUX | {"positive_prompt": '("a lake", "a sea").blend(0.5, 0.5)'}
    assert ".blend()" in str(picture_settings.read(write_text(tmp_path / "b.png", invokeai_metadata=json.dumps(invoke))).notes)
    plain = "a [dim] light: dawn, and (sea:1.2)\nSteps: 20, Seed: 1, Size: 512x512"
    assert picture_settings.read(write_text(tmp_path / "c.png", parameters=plain)).notes == ()


@pytest.mark.parametrize("format_", ["png", "jpeg", "webp"])
def test_every_format_carries_hearths_own_settings(format_: Format, tmp_path: Path) -> None:
    request = PictureRequest(
        "a {red|blue} fox", seed=3, guide="g.png", control="canny", guide_as="edges", guide_strength=0.6, guide_to=0.5, quicker="much"
    )
    picture_settings.write(Image.new("RGB", (8, 8)), tmp_path / "a.png", request, "SD")
    (tmp_path / "b").write_bytes(encode_picture(tmp_path / "a.png", Wanted(format_)))
    assert picture_settings.read(tmp_path / "b").request == request
    lines = picture_settings.read_text(tmp_path / "b").split("\n")
    assert lines[0] in ("a red fox", "a blue fox") and 'Template: "a {red|blue} fox"' in lines[1]
    long = replace(request, prompt="x" * 20_000, negative="y" * 20_000)
    picture_settings.write(Image.new("RGB", (8, 8)), tmp_path / "a.png", long, "SD")
    encode_picture(tmp_path / "a.png", Wanted(format_))
