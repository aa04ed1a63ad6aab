"""The catalog: every row is whole and true, names are found, wrong names get the nearest."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.compat.machine.pretended import MACHINES
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice
from app.engine.models import catalog, detect, model, safetensors
from app.engine.models.model import Model, describe_need
from app.engine.models.picture_families import FAMILIES
from tests.support.places import TOP

PICTURES = [each for each in catalog.CATALOG if each.kind == "picture"]
ids = [each.id for each in catalog.CATALOG]


def test_every_family_is_there_and_every_id_once() -> None:
    assert len(set(ids)) == len(ids)
    assert {each.family for each in PICTURES} == set(FAMILIES)
    assert {"starter-voice", "starter-painter", "dia-1.6b", "pocket-tts", "phonon-31m", "vibevoice-1.5b"} <= set(ids)
    assert {id_ for row in catalog.BEST.values() for id_ in row} == set(ids)


@pytest.mark.parametrize("row", catalog.CATALOG, ids=ids)
def test_a_row_is_whole(row: Model) -> None:
    assert row.licence and row.title and row.note
    assert bool(row.credit) == row.licence.startswith("CC BY") and row.licence in (row.credit or row.licence)
    assert bool(row.source) != bool(row.path)
    assert all(part.parameters > 0 for part in row.parts) and not row.attention.heads % row.attention.kv_heads
    roles = {part.role for part in row.parts}
    voice = {"speech"} if row.family == "vibevoice" else {"speech", "codec"}  # which hears itself while it speaks
    assert roles == ({"text", "denoiser", "vae"} if row.kind == "picture" else voice)
    for source in model.list_sources(row, "gguf"):
        assert source.bytes > 0 and "/" in source.repo and not any(".bin" in each for each in source.files)
        assert "*.bin" in source.leave and "*.py" in source.leave


@pytest.mark.parametrize("row", [each for each in PICTURES if each.source], ids=lambda each: each.id)
def test_sizes_on_disk_agree_with_parameters(row: Model) -> None:
    """Weights come in two bytes a number, or four: what is downloaded can be neither less nor much more."""
    parameters = sum(part.parameters for part in row.parts)
    assert 1.9 * parameters < row.bytes < 4.3 * parameters
    assert all(size % row.settings.multiple == 0 for pair in row.settings.sizes for size in pair)
    assert (row.settings.width, row.settings.height) in row.settings.sizes


def test_needs_follow_the_size_and_the_guidance() -> None:
    sd15 = catalog.find("sd15")
    assert model.describe_need(sd15).queries == 64 * 64 and model.describe_need(sd15).batch == 2
    assert model.describe_need(sd15, width=768, height=512).queries == 96 * 64
    assert model.describe_need(sd15, guidance=1.0).batch == 1
    assert model.describe_need(catalog.find("flux1-schnell"), guidance=3.5).batch == 1
    chroma = catalog.find("chroma1-hd")
    assert model.describe_need(chroma).batch == 1 and model.is_guided(chroma, 3.0), "the picture without the prompt in a call of its own"
    assert not model.is_guided(catalog.find("flux2-klein"), 3.0), "distilled: guidance is taken no notice of"
    dia = model.describe_need(catalog.find("dia-1.6b"))
    assert (dia.batch, dia.heads, dia.kv_heads, dia.head_dim, dia.keys) == (2, 16, 4, 128, 3072)


def test_quantised_weights_spare_the_large_download() -> None:
    flux = catalog.find("flux1-schnell")
    whole, quantised = model.list_sources(flux), model.list_sources(flux, "gguf")
    assert len(quantised) == len(whole) + 1
    assert "transformer/*.safetensors" in quantised[0].leave and "transformer/*.safetensors" not in whole[0].leave


def test_a_gguf_file_stands_for_the_denoiser_alone() -> None:
    need = model.describe_need(catalog.find("flux1-schnell"))
    assert [part.gguf_bytes for part in need.parts if part.role == "denoiser"] == [6_770_000_000]
    assert {part.gguf_bytes for part in need.parts if part.role != "denoiser"} == {None}


def test_another_scheduler_leaves_the_few_steps_behind() -> None:
    sd15 = catalog.find("sd15")
    assert sd15.recommended(None).steps == 6 == sd15.recommended("LCM").steps
    assert sd15.recommended("Euler").steps == 25


@pytest.mark.parametrize(
    ("few_steps", "plain", "lora_bytes", "scheduler", "steps"),
    [("sdxl-lightning", "sdxl", 394_000_000, "Euler trailing", 8), ("ssd-1b-lcm", "ssd-1b", 210_000_000, "LCM", 6)],
)
def test_a_model_of_few_steps_shares_the_files_of_the_plain_one(
    few_steps: str, plain: str, lora_bytes: int, scheduler: str, steps: int
) -> None:
    """So that who has one fetches only the LoRA for the other."""
    whole, few = catalog.find(plain), catalog.find(few_steps)
    assert few.source == whole.source and few.plain == whole.settings and few.parts == whole.parts
    assert set(whole.companions) < set(few.companions)
    assert sum(each.source.bytes for each in few.companions if each not in whole.companions) == lora_bytes
    assert few.recommended(None).steps == few.recommended(scheduler).steps == steps and few.recommended("Euler").steps == 25


@pytest.mark.parametrize(("wrong", "near"), [("sdlx", "sdxl"), ("flux", "flux1-schnell"), ("Stable Difusion 1.5", "sd15")])
def test_unknown_names_get_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(Trouble) as told:
        catalog.find(wrong)
    assert near in dict(told.value.sentence.values)["near"]  # type: ignore[operator]


def test_the_best_is_what_is_there() -> None:
    assert catalog.choose_best("picture", lambda row: False).id == "starter-painter"
    assert catalog.choose_best("picture", lambda row: row.id in ("sd15", "sdxl")).id == "sdxl"
    assert catalog.choose_best("speech", lambda row: True).id == "dia-1.6b"


def test_the_window_may_import_it() -> None:
    code = (
        "import sys, app.engine.models.catalog, app.engine.pictures.files.picture_settings, app.engine.jobs.schedulers\n"
        "assert not {'torch', 'diffusers', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("id_", ["starter-painter", "starter-voice"])
def test_a_starters_row_says_what_its_files_hold(id_: str) -> None:
    row = catalog.find(id_)
    folder = Path(row.path)
    if row.kind == "picture":
        there = detect._detect_pipeline(folder, catalog.BY_ID)
        assert {part.name: part.parameters for part in row.parts} == {part.name: part.parameters for part in there.parts}
        assert row.attention == there.attention
        card = json.loads((folder / "starter.json").read_text())["settings"]
        assert (row.settings.steps, row.settings.guidance, row.settings.width) == (card["steps"], card["guidance"], card["size"])
    else:
        assert [part.parameters for part in row.parts] == [
            safetensors.describe_part("model", "speech", folder).parameters,
            safetensors.describe_part("codec", "codec", folder / "codec").parameters,
        ]


def test_a_vae_that_is_black_in_float16_computes_wider() -> None:
    """InvokeAI #7208; this machine computes in float16 where it can."""
    machine = replace(MACHINES["t4"], memory_bytes=80 << 30, free_bytes=79 << 30, ram_bytes=128 << 30)
    for name, wider in {"flux1-schnell": True, "flux2-klein": True, "z-image-turbo": True, "sd35-medium": False, "sdxl": False}.items():
        vae = decide(machine, describe_need(catalog.BY_ID[name]), Choice(), {}).of("vae")
        assert vae is not None and (vae.compute != "float16") == wider, name


@pytest.mark.parametrize(("wanted", "near"), [("dia-1.6", True), ("sd", True), ("stabel diffusion", True), ("qqqq", False)])
def test_an_unknown_model_is_answered_with_few_names_that_are_close(wanted: str, near: bool) -> None:
    with pytest.raises(Trouble) as told:
        catalog.find(wanted)
    values = dict(told.value.sentence.values)
    assert 1 <= len(values["near"]) <= 3 if near else "near" not in values  # type: ignore[arg-type]
