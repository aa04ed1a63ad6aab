"""Test painting like a picture: beside plain diffusers, on every offload, in tiles and batches; what does not fit is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

from app.base.paths import Home
from app.base.trouble import Trouble
from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware
from app.compat.planning.memory_formulas import GIB, SCRATCH_BYTES, peak_bytes
from app.compat.planning.types import Precision
from app.engine.jobs import schedulers
from app.engine.jobs.control import Control
from app.engine.jobs.owners import Allowance
from app.engine.jobs.request import PictureRequest
from app.engine.kinds import admit, kind_of
from app.engine.models import catalog
from app.engine.models.adapters import find_adapter, find_encoder, list_adapters, read_adapter
from app.engine.models.model import describe_need
from app.engine.models.planned import find_need
from app.engine.pictures.families.adapter_file import read_picture
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run.active_adapter import ActiveAdapter
from tests.support import tiny_pictures as tiny
from tests.support.picture_fixtures import SMALL, assert_same, list_parts, load_painter, read_pixels

pytest_plugins = ["tests.support.picture_fixtures"]
LIKE = {"sd15": "StableDiffusion", "sdxl": "StableDiffusionXL"}


@pytest.fixture(scope="session")
def adapters(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("adapters")
    made = {family: tiny.save_adapter(folders[family], root / family) for family in LIKE}
    return made | {"plus": tiny.save_adapter(folders["sd15"], root / "plus", plus=True)}


@pytest.fixture(scope="session")
def likeness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("likeness") / "like.png"
    Image.fromarray(np.random.default_rng(2).integers(0, 255, (32, 32, 3), np.uint8)).save(path)
    return path


def liking(folder: Path, adapter: Path, picture: Path, **more: Any) -> PictureRequest:
    return PictureRequest("a red ball", str(folder), reference=str(picture), adapter=str(adapter), **{**SMALL, "guidance": 5.0, **more})


@pytest.mark.parametrize(
    ("family", "kind", "guidance"),
    [("sd15", "sd15", 5.0), pytest.param("sd15", "sd15", 1.0, marks=pytest.mark.slow), ("sd15", "plus", 5.0), ("sdxl", "sdxl", 5.0)],
)
def test_it_paints_as_diffusers_does(
    family: str,
    kind: str,
    guidance: float,
    folders: dict[str, Path],
    adapters: dict[str, Path],
    likeness: Path,
    tmp_path: Path,
    decoded: list[torch.Tensor],
) -> None:
    paints, model = load_painter(folders[family])
    asked = liking(folders[family], adapters[kind], likeness, reference_strength=0.8, guidance=guidance)
    list(paints.run(asked, Control(), None, tmp_path / "job"))
    encoder = transformers.CLIPVisionModelWithProjection.from_pretrained(adapters[kind].parent / "image_encoder")
    side = encoder.config.image_size
    more: dict[str, Any] = {"safety_checker": None, "requires_safety_checker": False} if family == "sd15" else {"add_watermarker": False}
    plain = getattr(diffusers, LIKE[family] + "Pipeline").from_pretrained(
        folders[family], image_encoder=encoder, feature_extractor=transformers.CLIPImageProcessor(size=side, crop_size=side), **more
    )
    row = schedulers.find_scheduler(model.settings.scheduler)
    plain.scheduler = getattr(diffusers, row.class_name).from_config(plain.scheduler.config, **row.settings)
    plain.load_ip_adapter(str(adapters[kind].parent), subfolder="", weight_name="like.safetensors", image_encoder_folder=None)
    plain.set_ip_adapter_scale(0.8)
    made = plain(
        "a red ball",
        num_inference_steps=3,
        width=64,
        height=64,
        guidance_scale=guidance,
        generator=torch.Generator("cpu").manual_seed(11),
        output_type="np",
        ip_adapter_image=Image.open(likeness).convert("RGB"),
    )
    assert_same(decoded[-1], np.asarray(made.images[0], dtype=np.float64))
    list(paints.run(replace(asked, reference=None), Control(), None, tmp_path / "without"))
    assert float((decoded[-1] - decoded[-2]).abs().max()) > 0.05 and paints._adapter._loaded is None
    names = [type(each).__name__ for each in paints.pipe.unet.attn_processors.values()]
    assert set(names) == {"AttnProcessor2_0"}, "the UNet is as it was"


def list_ways() -> list[Any]:
    narrow = {
        "precision": (Precision("unet", "denoiser", "float16", "float32", "cpu"), Precision("vae", "vae", "float32", "float32", "cpu"))
    }
    return [
        pytest.param({"offload": "model"}, id="mapped from disk"),
        pytest.param({"offload": "model", "device": "cuda"}, id="model"),
        pytest.param({"offload": "group", "device": "cuda"}, id="group"),
        pytest.param({"offload": "sequential", "device": "cuda"}, id="sequential"),
        pytest.param(narrow, id="stored in float16"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", list_ways())
def test_every_offload_paints_the_same(
    way: dict[str, Any], folders: dict[str, Path], adapters: dict[str, Path], likeness: Path, tmp_path: Path, decoded: list[torch.Tensor]
) -> None:
    whole, model = load_painter(folders["sd15"])
    asked = liking(folders["sd15"], adapters["sd15"], likeness)
    paints = picture_painter.load(folders["sd15"], model, tiny.make_plan(model, **way), {}, tmp_path / "scratch")
    for paint, job in ((whole, "whole"), (paints, "there"), (paints, "again")):
        list(paint.run(asked, Control(), None, tmp_path / job))
    list(paints.run(replace(asked, quicker="much", steps=8), Control(), None, tmp_path / "quicker"))
    list(paints.run(replace(asked, batch=2), Control(), None, tmp_path / "batch"))
    paints.close()
    assert max(float((each - decoded[0]).abs().max()) for each in (*decoded[1:3], decoded[4])) < (0.02 if "precision" in way else 1e-4)


def test_it_goes_through_the_seam_beside_a_guide(
    folders: dict[str, Path], adapters: dict[str, Path], likeness: Path, tmp_path: Path
) -> None:
    paints, model = load_painter(folders["sd15"])
    control = tiny.save_control(folders["sd15"], tmp_path / "control")
    asked = liking(folders["sd15"], adapters["sd15"], likeness, guide=str(likeness), control=str(control), steps=2)
    counts = []
    paints._adapter.close()  # what an earlier test had it read
    for request, job in ((asked, "like"), (replace(asked, reference=None), "plain")):
        with applied(tiny.make_plan(model, kernels=())) as seam:
            list(paints.run(request, Control(), seam, tmp_path / job))
        counts.append(seam.calls)
    layers = sum(name.endswith("attn2.processor") for name in paints.pipe.unet.attn_processors)
    encoder = 3
    assert counts[0] - counts[1] == 2 * layers + encoder, (
        "each attention to the prompt is one more, each step, and the picture is read once"
    )


def test_a_step_without_the_prompt_reads_no_picture(folders: dict[str, Path], adapters: dict[str, Path], likeness: Path) -> None:
    paints, model = load_painter(folders["sd15"])
    held, unet = ActiveAdapter("unet", tiny.make_plan(model), None), paints.pipe.unet
    settings: Any = SimpleNamespace(reference=Image.open(likeness), request=liking(folders["sd15"], adapters["sd15"], likeness))
    held.activate(paints.pipe, settings)
    seen = []

    def note(sample: torch.Tensor, timestep: Any, states: Any, **_: Any) -> tuple[torch.Tensor]:
        seen.append(states[1][0])
        return (sample,)

    fake = SimpleNamespace(forward=note, get_submodule=unet.get_submodule)
    with held.reading(settings, fake):
        for rows in (2, 1, 4):
            fake.forward(torch.zeros(rows, 4, 8, 8), 1, encoder_hidden_states=torch.zeros(rows, 3, 32))
    pair, alone, many = seen
    assert len(pair) == 2 and len(alone) == 1 and len(many) == 4
    assert torch.equal(pair[1:], alone) and not torch.equal(pair[:1], alone)


def spoil_nothing(file: Path) -> None: ...


def change(**tensors: torch.Tensor | None) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        held = load_file(file) | tensors
        save_file({name: tensor for name, tensor in held.items() if tensor is not None}, file)

    return spoil


@pytest.mark.parametrize(
    ("family", "spoil", "key"),
    [
        ("sdxl", spoil_nothing, "adapter.misfit"),
        ("sd15", lambda file: file.write_bytes(file.read_bytes()[:-100]), "detect.cut-off"),
        ("sd15", change(**{"ip_adapter.1.to_k_ip.weight": torch.zeros(8, 768)}), "adapter.misfit"),
        ("sd15", change(**{"ip_adapter.1.to_k_ip.weight": torch.zeros(8, 2048)}), "adapter.unfit"),
        ("sd15", change(**{"ip_adapter.3.to_k_ip.weight": None}), "adapter.misfit"),
        ("sd15", change(**{"ip_adapter.0.to_k_lora.down.weight": torch.zeros(2)}), "adapter.other"),
        ("sd15", change(**{"image_proj.proj.weight": torch.zeros(128, 99)}), "adapter.no-encoder"),
        ("sd15", lambda file: file.unlink(), "adapter.missing"),
        ("sd15", lambda file: (file.parent / "image_encoder" / "config.json").unlink(), "adapter.no-encoder"),
        ("sd15", lambda file: (file.parent / "image_encoder" / "model.safetensors").write_bytes(b"?" * 99), "adapter.no-encoder"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence(
    family: str, spoil: Any, key: str, folders: dict[str, Path], adapters: dict[str, Path], likeness: Path, tmp_path: Path
) -> None:
    file = Path(shutil.copytree(adapters[family].parent, tmp_path / "copy"), "like.safetensors")
    spoil(file)
    paints, model = load_painter(folders["sd15"])
    asked = liking(folders["sd15"], file, likeness)
    with pytest.raises(Trouble) as told:
        kind_of(asked).check(Home(tmp_path, tmp_path), asked, model)
        list(paints.run(asked, Control(), None, tmp_path / "job"))
    assert told.value.sentence.key == key
    assert list_parts(list(paints.run(replace(asked, reference=None), Control(), None, tmp_path / "job"))), (
        "what failed must not stay in the way"
    )


def test_other_models_guests_and_half_requests_are_refused(
    folders: dict[str, Path], adapters: dict[str, Path], likeness: Path, tmp_path: Path
) -> None:
    home = Home(tmp_path, tmp_path)
    with pytest.raises(Trouble, match="cannot paint like a picture"):
        admit(liking(folders["flux"], adapters["sd15"], likeness), home)
    asked = liking(folders["sd15"], adapters["sd15"], likeness)
    with pytest.raises(Trouble, match="Only the owner"):
        kind_of(asked).grant(asked, Allowance(), catalog.find(str(folders["sd15"])))
    with pytest.raises(Trouble, match="no IP-Adapter"):
        PictureRequest("a", reference="a.png")
    assert asked.stays_here and asked.without_files().reference is None and str(likeness) in asked.files


def test_those_of_the_own_folder_are_found_by_name_with_an_encoder_of_one_file(adapters: dict[str, Path], tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    assert list_adapters(home) == [] and find_adapter(home, "") == ""
    home.adapters.mkdir()
    shutil.copy(adapters["sd15"], home.adapters / "Style.safetensors")
    wide = {
        "vision_model.embeddings.patch_embedding.weight": torch.zeros(1280, 3, 14, 14),
        "vision_model.embeddings.position_embedding.weight": torch.zeros(257, 1280),
        "vision_model.encoder.layers.0.mlp.fc1.weight": torch.zeros(5120, 1280), "visual_projection.weight": torch.zeros(16, 1280),
    }  # fmt: skip
    save_file({name: tensor.half() for name, tensor in wide.items()}, home.adapters / "CLIP-ViT-H.safetensors")
    assert [each.name for each in list_adapters(home)] == ["Style.safetensors"], "an encoder is no adapter"
    found = find_encoder(home, read_adapter(Path(find_adapter(home, "Style"))))
    assert found.path.name == "CLIP-ViT-H.safetensors" and found.halves
    assert (found.settings["image_size"], found.settings["hidden_act"], found.settings["num_attention_heads"]) == (224, "gelu", 16)
    comfy = tmp_path / "ComfyUI" / "models"
    shutil.copytree(adapters["sd15"].parent / "image_encoder", comfy / "clip_vision" / "small")
    (comfy / "ipadapter").mkdir()
    shutil.copy(adapters["sd15"], comfy / "ipadapter" / "like.safetensors")
    (home.adapters / "CLIP-ViT-H.safetensors").unlink()
    assert find_encoder(home, read_adapter(comfy / "ipadapter" / "like.safetensors")).path == comfy / "clip_vision" / "small"
    with pytest.raises(Trouble, match="no IP-Adapter Other"):
        find_adapter(home, "Other")


def test_its_settings_lie_in_the_file(folders: dict[str, Path], adapters: dict[str, Path], likeness: Path, tmp_path: Path) -> None:
    paints, _ = load_painter(folders["sd15"])
    asked = liking(folders["sd15"], adapters["sd15"], likeness, reference_strength=0.4)
    made = list_parts(list(paints.run(asked, Control(), None, tmp_path / "job")))[0]
    found = picture_settings.read(Path(made.path))
    assert (found.request.reference, found.request.adapter, found.request.reference_strength) == ("like.png", "like.safetensors", 0.4)
    assert [each.key for each in found.notes] == ["restore.reference"]
    again = list_parts(list(paints.run(asked, Control(), None, tmp_path / "again")))[0]
    assert np.array_equal(read_pixels(made.path), read_pixels(again.path))


def test_an_encoder_in_half_reads_as_the_whole_one(
    folders: dict[str, Path], adapters: dict[str, Path], likeness: Path, tmp_path: Path
) -> None:
    """As many are published; they compute in float32 all the same."""
    shutil.copytree(adapters["sd15"].parent, tmp_path / "half")
    file = tmp_path / "half" / "image_encoder" / "model.safetensors"
    save_file({name: tensor.half() for name, tensor in load_file(file).items()}, file)
    plan, read = tiny.make_plan(catalog.find(str(folders["sd15"]))), list[torch.Tensor]()
    for path in (adapters["sd15"], tmp_path / "half" / "like.safetensors"):
        encoder = find_encoder(Home(path.parent, path.parent), read_adapter(path))
        assert encoder.halves == (path.parent == tmp_path / "half")
        with Image.open(likeness) as picture:
            read.append(read_picture(encoder, read_adapter(path), picture.convert("RGB"), plan)[0])
    assert read[1].dtype == torch.float32
    torch.testing.assert_close(read[1], read[0], atol=2e-2, rtol=2e-2)


def test_its_weights_count_with_the_denoisers_and_the_encoders_before_the_steps_where_memory_is_one(
    folders: dict[str, Path], adapters: dict[str, Path], likeness: Path
) -> None:
    model, adapter = catalog.find(str(folders["sd15"])), read_adapter(adapters["sd15"])
    home = Home(adapters["sd15"].parent, adapters["sd15"].parent)
    encoder = find_encoder(home, adapter)
    asked, plain = liking(folders["sd15"], adapters["sd15"], likeness), describe_need(model)
    need = find_need(home, Hardware("cpu", "a processor"), model, asked)
    pairs = list(zip(need.parts, plain.parts, strict=True))
    assert {each.role: each.parameters - before.parameters for each, before in pairs if each.parameters != before.parameters} == {
        "denoiser": adapter.parameters
    }
    assert need.reading_bytes == 4 * encoder.parameters + SCRATCH_BYTES["speech"]
    here = tiny.make_plan(model, offload="none")
    there = replace(here, device="cuda", precision=tuple(replace(each, device="cuda") for each in here.precision))
    large, none = replace(need, reading_bytes=8 * GIB), replace(need, reading_bytes=0)
    loaded = sum(each.parameters * 4 for each in need.parts)
    assert peak_bytes(large, here) == loaded + 8 * GIB and peak_bytes(large, replace(here, offload="model")) == 8 * GIB
    assert peak_bytes(large, there) == peak_bytes(none, there), "a card has memory of its own"
    assert peak_bytes(need, here) == peak_bytes(none, here), "a step takes more"
