"""A picture's file carries its settings: Hearth's exactly, other programs' as far as they go, and nonsense without a crash."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.base.trouble import Trouble
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.pictures.files import foreign_settings, picture_settings
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
        "masterpiece, a castle: on a hill \nwith two lines", negative="blurry, bad hands,\nextra fingers", steps=30,
        scheduler="DPM++ 2M Karras", guidance=6.5, seed=123456, width=512, height=768, loras=(Lora("ink_wash", 0.8),),
    )  # fmt: skip
    assert keys(restored) == ["owner.model"]


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
        "a glass bottle", negative="text, watermark", steps=20, guidance=8.0, scheduler="DPM++ 2M Karras", width=512, height=640,
        loras=(Lora("ink.safetensors"),),
    )  # fmt: skip
    assert keys(restored) == ["owner.model", "restore.number"], "its seed has more than 32 bits"


@pytest.mark.parametrize("kind", ["conditioning", "text"])
@pytest.mark.parametrize(("nodes", "found"), [(1, True), (VISITS_MOST - 1, True), (VISITS_MOST, False)])
def test_a_comfyui_text_is_found_behind_many_nodes(tmp_path: Path, nodes: int, found: bool, kind: str) -> None:
    chain: dict[str, Any] = {str(20 + place): {"inputs": {kind: [str(21 + place), 0]}} for place in range(nodes)}
    chain[str(19 + nodes)]["inputs"][kind] = ["6", 0]
    sampler = {**COMFY["3"], "inputs": {**COMFY["3"]["inputs"], "positive": ["20", 0]}}
    path = write_text(tmp_path / "p.png", prompt=json.dumps({**COMFY, "3": sampler, **chain}))
    with nullcontext() if found else pytest.raises(Trouble):
        assert picture_settings.read(path).request.prompt == "a glass bottle"


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
