"""Folders and single files are known for what they are, from their configs and headers; what is not a model is told."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.events import PartDone
from app.engine.jobs.request import PictureRequest
from app.engine.models import catalog, model
from app.engine.pictures.run import painter
from tests.support import tiny_pictures as tiny
from tests.support import tiny_single_files as single


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save("sd15", tmp_path_factory.mktemp("detect") / "model")


def test_a_folder_is_known_with_its_own_parts_and_attention(folder: Path) -> None:
    found = catalog.find(str(folder))
    assert (found.family, found.kind, found.path, found.source) == ("sd15", "picture", str(folder), None)
    assert [(part.name, part.role) for part in found.parts] == [("text_encoder", "text"), ("unet", "denoiser"), ("vae", "vae")]
    pipe = tiny.sd15()
    assert found.parts[1].parameters == sum(weight.numel() for weight in pipe.unet.parameters())
    asked = model.describe_need(found, width=64, height=128)
    seen: list[tuple[int, ...]] = []
    original = torch.nn.functional.scaled_dot_product_attention

    def see(query: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        seen.append(tuple(query.shape))
        return original(query, *args, **kwargs)

    torch.nn.functional.scaled_dot_product_attention = see
    try:
        pipe("a", width=64, height=128, num_inference_steps=1, output_type="latent")
    finally:
        torch.nn.functional.scaled_dot_product_attention = original
    widest = max(seen, key=lambda shape: shape[0] * shape[1] * shape[2])
    assert (asked.batch, asked.heads, asked.queries, asked.head_dim) == widest


@pytest.mark.parametrize("family", [pytest.param("sd15", marks=pytest.mark.slow), "sdxl"])
def test_a_single_file_paints_what_its_folder_paints(family: str, tmp_path: Path) -> None:
    whole, file = single.save(family, tmp_path)
    configs = single.copy_configs(whole, tmp_path / "configs")
    found = catalog.find(str(file))
    assert (found.family, found.single_file) == (family, True)
    assert [part.name for part in found.parts if not part.half_is_safe] == (["vae"] if family == "sdxl" else [])
    assert [each.name for each in found.companions] == ["configs"]
    request = PictureRequest("a red ball", width=64, height=64, steps=2, seed=3, preview_every=0, scheduler="Euler")
    files: list[str] = []
    for path, row, companions in ((whole, catalog.find(str(whole)), {}), (file, found, {"configs": configs})):
        paints = painter.load(path, row, tiny.make_plan(row), companions)
        events = list(paints.run(request, Control(), None, tmp_path / f"job{len(files)}"))
        files.append(next(event.path for event in events if isinstance(event, PartDone)))
    from PIL import Image, ImageChops

    with Image.open(files[0]) as one, Image.open(files[1]) as other:
        assert np.asarray(one.convert("RGB")).max() > 20
        assert np.asarray(ImageChops.difference(one.convert("RGB"), other.convert("RGB"))).max() <= 1
    with pytest.raises(Trouble) as told:
        painter.load(file, found, tiny.make_plan(found), {})
    assert told.value.cure == "get-configs"


def test_a_model_is_named_without_its_files(folder: Path, tmp_path: Path) -> None:
    """The page asks each second, with whatever model is loaded; a large one has thousands of tensors in its headers."""
    whole, file = single.save("sd15", tmp_path)
    versioned = shutil.copytree(folder, tmp_path / "portraits v1.5")
    titles = {str(path): catalog.find(str(path)).title for path in (folder, whole, file, versioned)}
    assert titles[str(versioned)] == "portraits v1.5" and titles[str(file)] == file.stem
    for path in (whole, versioned):
        shutil.rmtree(path)
    file.unlink()
    assert {path: catalog.name_model(path) for path in titles} == titles
    assert {id_: catalog.name_model(id_) for id_ in (*catalog.BY_ID, "")} == {
        **{id_: row.title for id_, row in catalog.BY_ID.items()},
        "": "",
    }


SDXL: dict[str, tuple[int, ...]] = {
    "model.diffusion_model.input_blocks.0.0.weight": (32, 4, 3, 3),
    "model.diffusion_model.label_emb.0.0.weight": (4, 4),
}
OTHERS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "LoRA": ("detect.not-whole", {"lora_unet_x.lora_down.weight": (2, 2)}),
    "LoKr": ("detect.not-whole", {"lycoris_x.lokr_w1": (2, 2)}),
    "VAE": ("detect.not-whole", {"decoder.conv_in.weight": (2, 2)}),
    "T5": ("detect.not-whole", {"encoder.block.0.layer.0.SelfAttention.q.weight": (2, 2)}),
    "ControlNet": ("detect.not-whole", {"control_model.time_embed.0.weight": (2, 2)}),
    "textual inversion": ("detect.not-whole", {"clip_l": (2, 768), "clip_g": (2, 1280)}),
    "an inpainting": ("detect.other-family", {"model.diffusion_model.input_blocks.0.0.weight": (32, 9, 3, 3)}),
    "Stable Diffusion 2": (
        "detect.other-family",
        {
            "model.diffusion_model.input_blocks.0.0.weight": (32, 4, 3, 3),
            "model.diffusion_model.input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight": (4, 1024),
        },
    ),
    "the refiner of SDXL": (
        "detect.other-family",
        {"model.diffusion_model.input_blocks.0.0.weight": (32, 4, 3, 3), "conditioner.embedders.0.model.text_projection": (4, 4)},
    ),
    "PixArt": (
        "detect.folder-only",
        {"blocks.0.cross_attn.q_linear.weight": (2, 2), "blocks.0.mlp.fc1.weight": (2, 2), "y_embedder.y_proj.fc1.weight": (2, 2)},
    ),
    "Sana": (
        "detect.other-family",
        {"blocks.0.cross_attn.q_linear.weight": (2, 2), "blocks.0.mlp.inverted_conv.conv.weight": (2, 2, 1, 1)},
    ),
    "PRX": ("detect.other-family", {"blocks.0.attention.img_qkv_proj.weight": (2, 2)}),
    "Krea 2": ("detect.other-family", {"txtfusion.projector.weight": (2, 2)}),
    "Playground 2.5": ("detect.other-family", {**SDXL, "edm_mean": (1, 4, 1, 1), "edm_std": (1, 4, 1, 1)}),
    "CosXL": ("detect.other-family", {**SDXL, "edm_vpred.sigma_max": (1,), "edm_vpred.sigma_min": (1,)}),
    "Qwen-Image": ("detect.other-family", {"transformer_blocks.0.img_mod.1.weight": (2, 2)}),
    "Chroma1 Radiance": (
        "detect.other-family",
        {"distilled_guidance_layer.in_proj.bias": (2,), "nerf_image_embedder.embedder.0.weight": (2, 2)},
    ),
    "scaled fp8": ("detect.packed", {"double_blocks.0.img_attn.norm.key_norm.scale": (2,), "scaled_fp8": (2,), "x.scale_weight": (1,)}),
    "ComfyUI's own": ("detect.packed", {"layers.0.adaLN_modulation.0.weight": (2, 2), "layers.0.x.comfy_quant": (9,)}),
    "SVDQuant": ("detect.packed", {"transformer_blocks.0.qkv.wscales": (2, 2), "transformer_blocks.0.qkv.smooth_factor": (2,)}),
    "nf4": ("detect.packed", {"double_blocks.0.img_attn.norm.key_norm.scale": (2,), "x.weight.absmax": (2,)}),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_a_file_that_is_something_else_is_named(what: str, tmp_path: Path) -> None:
    key, shapes = OTHERS[what]
    path = tmp_path / "file.safetensors"
    save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, path)
    with pytest.raises(Trouble) as told:
        catalog.find(str(path))
    assert told.value.sentence.key == key and what in str(told.value)


V_PREDICTION = ("prediction_type", "v_prediction")
ZERO_SNR = (("rescale_betas_zero_snr", True), ("timestep_spacing", "trailing"))


@pytest.mark.parametrize(
    ("name", "words", "scheduler", "told"),
    [
        ("noob vPred10", {}, (V_PREDICTION,), "detect.predicts-v"),
        ("zXLVPred_ztsnr", {}, (V_PREDICTION, *ZERO_SNR), "detect.predicts-v"),
        ("x vpred", {"modelspec.predict_key": "epsilon"}, (), None),
        ("x", {"modelspec.predict_key": "v"}, (V_PREDICTION,), None),
        ("novprediction", {}, (), None),
    ],
)
def test_what_a_file_of_sdxl_predicts_is_read_where_nothing_marks_it(
    name: str, words: dict[str, str], scheduler: tuple[tuple[str, str | bool], ...], told: str | None, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.safetensors"
    save_file({each: torch.zeros(shape) for each, shape in SDXL.items()}, path, words)
    row = catalog.find(str(path))
    assert (row.family, row.scheduler, row.note.key if row.note else None) == ("sdxl", scheduler, told)


def test_a_file_of_nothing_known_is_told(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "file.safetensors")
    with pytest.raises(Trouble) as told:
        catalog.find(str(tmp_path / "file.safetensors"))
    assert told.value.sentence.key == "detect.unknown"


def headed(table: Any, length: int | None = None) -> bytes:
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b"", "detect.not-safetensors"), (b"hello", "detect.not-safetensors"),
        (headed({}, 1 << 60), "detect.not-safetensors"), (headed(b"[1, 2]"), "detect.not-safetensors"),
        (headed(b"{{{{"), "detect.not-safetensors"), (headed({"x": 5}), "detect.not-safetensors"),
        (headed({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}), "detect.cut-off"),
        (headed({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}) + b"\0" * 9, "detect.cut-off"),
        (pickle.dumps([1], 2), "detect.pickle"), (b"PK\x03\x04zip", "detect.pickle"),
    ],
)  # fmt: skip
def test_what_is_no_safetensors_is_told(content: bytes, key: str, tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    path.write_bytes(content)
    with pytest.raises(Trouble) as told:
        catalog.find(str(path))
    assert told.value.sentence.key == key


def test_pickles_are_refused_by_name(tmp_path: Path) -> None:
    for suffix in (".ckpt", ".bin", ".pt", ".PTH"):
        path = tmp_path / f"model{suffix}"
        path.write_bytes(b"anything")
        with pytest.raises(Trouble) as told:
            catalog.find(str(path))
        assert told.value.sentence.key == "detect.pickle"


def test_a_folder_that_brings_code_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    index = json.loads((copy / "model_index.json").read_text())
    for made_of, key in ((["my_unet", "MyUNet"], "detect.remote-code"), (["torch", "Any"], "detect.remote-code")):
        (copy / "model_index.json").write_text(json.dumps({**index, "unet": made_of}))
        with pytest.raises(Trouble) as told:
            catalog.find(str(copy))
        assert told.value.sentence.key == key
    (copy / "model_index.json").write_text(json.dumps({**index, "_class_name": "ShapEPipeline"}))
    with pytest.raises(Trouble) as told:
        catalog.find(str(copy))
    assert told.value.sentence.key == "detect.other-family" and "ShapE," in str(told.value)


@pytest.mark.parametrize(
    ("family", "field", "value", "told"),
    [
        ("sd3", "pos_embed_max_size", 8000, "pos_embed_max_size 8000"),
        ("sd3", "pos_embed_max_size", None, "sample_size 4096"),
        ("pixart-sigma", "sample_size", 8192, "sample_size 4096"),
        ("z-image", "axes_lens", [64, 1 << 24, 64], "axes_lens 16777216"),
        ("lumina-2", "axes_lens", [64, 1 << 24, 64], "axes_lens 16777216"),
        ("lumina-2", "axes_dim_rope", [4, 4, 1 << 20], "axes_dim_rope 1048576"),
    ],
)
def test_a_table_of_positions_that_no_memory_holds_is_refused(family: str, field: str, value: object, told: str, tmp_path: Path) -> None:
    """Loading such a one took all memory before a weight was read; each number alone is one that some model has."""
    folder = tiny.save(family, tmp_path / "model")
    assert catalog.find(str(folder)).family == family
    file = folder / "transformer" / "config.json"
    side = {"sample_size": 8192} if value is None else {}
    file.write_text(json.dumps(json.loads(file.read_text()) | side | {field: value}))
    with pytest.raises(Trouble) as refused:
        catalog.find(str(folder))
    assert refused.value.sentence.key == "detect.fact" and told in str(refused.value)


@pytest.mark.parametrize("family", ["z-image", "lumina-2"])
def test_a_transformers_heads_are_read_where_their_width_is_said_for_all(family: str, tmp_path: Path) -> None:
    found = catalog.find(str(tiny.save(family, tmp_path / "model"))).attention
    assert (found.heads, found.head_dim) == (2, 16)


@pytest.mark.parametrize("own_codec", [False, True])
def test_a_folder_of_dia_is_known_by_its_config(own_codec: bool, tmp_path: Path) -> None:
    folders = [tmp_path, tmp_path / "codec"] if own_codec else [tmp_path]
    for place, each in enumerate(folders):
        each.mkdir(exist_ok=True)
        (each / "config.json").write_text(json.dumps({"model_type": "dac" if place else "dia"}))
        save_file({"x": torch.zeros(3, 4 + place)}, each / "model.safetensors")
    found, dia = catalog.find(str(tmp_path)), catalog.find("dia-1.6b")
    assert (found.id, found.kind, found.attention, found.companions) == (str(tmp_path), "speech", dia.attention, ())
    assert [part.parameters for part in found.parts] == [12, 15 if own_codec else dia.parts[1].parameters]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(Trouble) as told:
        catalog.find(str(tmp_path))
    assert told.value.sentence.key == "detect.unknown"
