"""One table of models and LoRAs as other programs lay them out, by family: each runs as plain diffusers does, within 1 of 255, or a sentence says why not."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import peft
import pytest
import torch
from diffusers.loaders import single_file_model, single_file_utils
from safetensors.torch import load_file, save_file

from app.base.trouble import Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.request import Lora, PictureRequest
from app.engine.models import beside, catalog, picture_families
from app.engine.models.file_facts import FileFacts
from app.engine.models.model import Model
from app.engine.pictures.run import painter
from tests.support import tiny_original_files as original
from tests.support import tiny_pictures as tiny
from tests.support import tiny_single_files as single
from tests.support.picture_fixtures import SMALL, list_parts, paint_with_diffusers, read_pixels

PROMPT, STRENGTH, BEGIN = "a red ball", 0.7, "model.diffusion_model."
FLOWING = ["sd3", "flux", "chroma", "flux2-klein", "z-image", "lumina-2"]
FIRST = ("sd15", "sdxl")
"""Their files hold all parts; their folders are made with the layers of real ones, as the library's converter counts them."""


@dataclass(frozen=True)
class Laid:
    """What somebody chooses, and a diffusers folder of the same weights."""

    path: Path
    same_as: Path
    base: Path | None = None
    """It was downloaded for it, as the Models tab does."""
    lora: Path | None = None
    word: str = ""


@dataclass(frozen=True)
class Row:
    family: str
    layout: str
    write: Callable[[Path, Path, str], Laid]
    """It gets the family's folder, where to write, and the family."""
    told: str = ""
    """A sentence with this key refuses it; empty: it runs."""
    words: str = ""
    """That sentence names them."""
    slow: bool = False
    """True: another row asks the same, of another family or with more to it."""


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny models are narrower than the real ones, whose widths stand in a table, and for some in the library's converters."""
    for name in FLOWING:
        family, width = picture_families.FAMILIES[name], 64 if name == "sd3" else 32
        encoders = tuple(replace(each, width=width) if each.width else each for each in family.encoders)
        monkeypatch.setitem(picture_families.FAMILIES, name, replace(family, encoders=encoders))
    for made in ("Flux", "Chroma", "Lumina2"):
        row: Any = single_file_model.SINGLE_FILE_LOADABLE_CLASSES[f"{made}Transformer2DModel"]
        converter, room = row["checkpoint_mapping_fn"], dict(vars(single_file_utils))
        narrower = inspect.getsource(converter)
        for real, small in (("inner_dim = 3072", "inner_dim = 32"), ("q_dim = 2304", "q_dim = 32"), ("v_dim = 768", "v_dim = 16")):
            narrower = narrower.replace(real, small)
        exec(narrower, room)
        monkeypatch.setitem(row, "checkpoint_mapping_fn", room[converter.__name__])


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("layouts")


@cache
def make_folder(root: Path, family: str) -> Path:
    return single.save(family, root / family)[0] if family in FIRST else tiny.save(family, root / family / "folder")


@cache
def load_pipe(folder: Path) -> Any:
    return getattr(diffusers, json.loads((folder / "model_index.json").read_text())["_class_name"]).from_pretrained(folder)


def copy(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target))


def without(folder: Path, target: Path, *parts: str) -> Path:
    """Copy a folder without the weights of these parts."""
    single.copy_configs(folder, target)
    for file in folder.glob("*/*.safetensors"):
        if file.parent.name not in parts:
            (target / file.parent.name / file.name).write_bytes(file.read_bytes())
    return target


def change(folder: Path, part: str, values: dict[str, Any]) -> Path:
    file = folder / part
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    return folder


# Folders


def as_saved(folder: Path, there: Path, family: str) -> Laid:
    return Laid(folder, folder)


def in_half(variant: str, shards: str = "10GB") -> Callable[[Path, Path, str], Laid]:
    def write(folder: Path, there: Path, family: str) -> Laid:
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[variant]
        pipe = getattr(diffusers, type(load_pipe(folder)).__name__).from_pretrained(folder).to(dtype)
        pipe.save_pretrained(there / "model", variant=variant, max_shard_size=shards)
        pipe.to(torch.float32).save_pretrained(there / "rounded")
        return Laid(there / "model", there / "rounded")

    return write


def in_the_hubs_cache(folder: Path, there: Path, family: str) -> Laid:
    repository = there / "models--maker--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs/main").write_text("abc")
    copy(folder, repository / "snapshots/abc")
    return Laid(repository, folder)


def for_pictures(folder: Path, there: Path, family: str) -> Laid:
    image_class = picture_families.FAMILIES[family].image_class
    return Laid(change(copy(folder, there / "model"), "model_index.json", {"_class_name": image_class}), folder)


def for_masks(folder: Path, there: Path, family: str) -> Laid:
    inpaint_class = picture_families.FAMILIES[family].inpaint_class
    return Laid(change(copy(folder, there / "model"), "model_index.json", {"_class_name": inpaint_class}), folder)


def of_a_stranger(folder: Path, there: Path, family: str) -> Laid:
    return Laid(change(copy(folder, there / "model"), "model_index.json", {"_class_name": "KolorsPipeline"}), folder)


def as_the_refiner(folder: Path, there: Path, family: str) -> Laid:
    left = {"_class_name": "StableDiffusionXLImg2ImgPipeline", "text_encoder": [None, None], "tokenizer": [None, None]}
    return Laid(change(copy(folder, there / "model"), "model_index.json", left), folder)


def with_edms_noise(folder: Path, there: Path, family: str) -> Laid:
    """Write a folder as Playground 2.5 has one."""
    named = {"scheduler": ["diffusers", "EDMDPMSolverMultistepScheduler"]}
    return Laid(change(copy(folder, there / "model"), "model_index.json", named), folder)


def lacking(part: str) -> Callable[[Path, Path, str], Laid]:
    def write(folder: Path, there: Path, family: str) -> Laid:
        shutil.rmtree(copy(folder, there / "model") / part)
        return Laid(there / "model", folder)

    return write


def one_part(place: str) -> Callable[[Path, Path, str], Laid]:
    return lambda folder, there, family: Laid(folder / place, folder)


def taking_guidance(folder: Path, there: Path, family: str) -> Laid:
    """Write FLUX.1 dev: other steps, guidance, length of text and shift of times than schnell."""
    copy(folder, there / "dev")
    torch.manual_seed(4)
    guided = diffusers.FluxTransformer2DModel(**{**json.loads((folder / "transformer/config.json").read_text()), "guidance_embeds": True})
    for weight in guided.parameters():
        torch.nn.init.normal_(weight, 0, 0.2)
    guided.save_pretrained(there / "dev/transformer")
    change(
        there / "dev", "scheduler/scheduler_config.json", {"use_dynamic_shifting": True, "shift": 3.0, "base_shift": 0.5, "max_shift": 1.15}
    )
    return Laid(there / "dev", there / "dev")


# Files


def as_one_file(folder: Path, there: Path, family: str) -> Laid:
    """As A1111 and ComfyUI have checkpoints."""
    if family in FIRST:
        return Laid(folder.parent / f"{family}.safetensors", folder, single.copy_configs(folder, there / "base"))
    pipe = load_pipe(folder)
    named = {f"{BEGIN}{name}": value for name, value in original.name_denoiser(family, pipe).items()}
    named |= {f"vae.{name}": value for name, value in original.name_vae(pipe.vae).items()}
    for part, prefix in ENCODERS[family].items():
        held = original.name_encoder(getattr(pipe, part))
        named |= {f"text_encoders.{prefix}.transformer.{name}": value for name, value in held.items()}
    return Laid(original.write(named, there / "all in one.safetensors"), folder, single.copy_configs(folder, there / "base"))


ENCODERS = {
    "flux": {"text_encoder": "clip_l", "text_encoder_2": "t5xxl"},
    "chroma": {"text_encoder": "t5xxl"},
    "lumina-2": {"text_encoder": "gemma2_2b"},
    "sd3": {"text_encoder": "clip_l", "text_encoder_2": "clip_g", "text_encoder_3": "t5xxl"},
}


def without_a_vae(folder: Path, there: Path, family: str) -> Laid:
    bare = {name: value for name, value in load_file(folder.parent / f"{family}.safetensors").items() if not name.startswith("first_stage")}
    base = without(folder, there / "base", "unet", "text_encoder", "text_encoder_2")
    return Laid(original.write(bare, there / "bare.safetensors"), folder, base)


def predicting_v(folder: Path, there: Path, family: str) -> Laid:
    """Write a file with NoobAI's markers, which the library does not read."""
    save_file(
        load_file(folder.parent / f"{family}.safetensors") | {"v_pred": torch.zeros(0), "ztsnr": torch.zeros(0)}, there / "v.safetensors"
    )
    told = {"prediction_type": "v_prediction", "rescale_betas_zero_snr": True, "timestep_spacing": "trailing"}
    marked = change(copy(folder, there / "marked"), "scheduler/scheduler_config.json", told)
    return Laid(there / "v.safetensors", marked, single.copy_configs(folder, there / "base"))


def name_denoiser(folder: Path, family: str) -> original.Tensors:
    if family not in FIRST:
        return original.name_denoiser(family, load_pipe(folder))
    whole = load_file(folder.parent / f"{family}.safetensors")
    return {name.removeprefix(BEGIN): value for name, value in whole.items() if name.startswith(BEGIN)}


def denoiser_alone(folder: Path, there: Path, family: str) -> Laid:
    """As ComfyUI has them in `diffusion_models`."""
    file = original.write(name_denoiser(folder, family), there / "diffusion_models/x turbo.safetensors")
    return Laid(file, folder, without(folder, there / "base", "transformer", "unet"))


def guided_alone(folder: Path, there: Path, family: str) -> Laid:
    dev = taking_guidance(folder, there, family).path
    file = original.write(original.name_denoiser(family, load_pipe(dev)), there / "dev.safetensors")
    return Laid(file, dev, without(folder, there / "base", "transformer"))


def as_gguf(folder: Path, there: Path, family: str) -> Laid:
    read = original.write_gguf(name_denoiser(folder, family), there / "x turbo-Q8_0.gguf")
    return replace(_reread(folder, there, family, read), path=there / "x turbo-Q8_0.gguf")


def in_fp8(folder: Path, there: Path, family: str) -> Laid:
    held = {name: value.to(torch.float8_e4m3fn) if value.ndim == 2 else value for name, value in name_denoiser(folder, family).items()}
    file = original.write(held, there / "x turbo fp8.safetensors")
    return replace(_reread(folder, there, family, {name: value.to(torch.float32) for name, value in held.items()}), path=file)


def _reread(folder: Path, there: Path, family: str, tensors: original.Tensors) -> Laid:
    """Let the library read a denoiser's rounded numbers, and save what it made of them."""
    pipe, part = load_pipe(folder), picture_families.FAMILIES[family].denoiser
    file = original.write(tensors, there / "unpacked.safetensors", BEGIN if family in FIRST else "")
    read = type(getattr(pipe, part)).from_single_file(
        str(file), config=str(folder), subfolder=part, dtype=torch.float32, local_files_only=True
    )
    read.save_pretrained(copy(folder, there / "rounded") / part)
    return Laid(file, there / "rounded", without(folder, there / "base", part))


def beside_its_parts(folder: Path, there: Path, family: str) -> Laid:
    """As ComfyUI has them: diffusion_models, text_encoders, vae."""
    pipe, models, made_of = load_pipe(folder), there / "ComfyUI/models", picture_families.FAMILIES[family]
    file = original.write(original.name_denoiser(family, pipe), models / "diffusion_models/x turbo.safetensors")
    original.write(original.name_vae(pipe.vae), models / f"vae/{made_of.vae_file}.safetensors")
    encoders = [each.part for each in made_of.encoders if each.kind]
    for place, part in zip(("text_encoders", "clip"), encoders, strict=False):
        original.write(original.name_encoder(getattr(pipe, part)), models / place / f"{part}.safetensors")
    packed = {"layers.0.self_attn.q_norm.weight": torch.zeros(1), "x.scale_weight": torch.zeros(1)}
    original.write(packed, models / "clip/a packed.safetensors")
    return Laid(file, folder, without(folder, there / "base", "transformer", "vae", *encoders))


def holding(shapes: dict[str, tuple[int, ...]]) -> Callable[[Path, Path, str], Laid]:
    """Write a file with tensors of these shapes, chosen as a model."""

    def write(folder: Path, there: Path, family: str) -> Laid:
        return Laid(original.write({name: torch.zeros(shape) for name, shape in shapes.items()}, there / "file.safetensors"), folder)

    return write


def as_a_pickle(folder: Path, there: Path, family: str) -> Laid:
    torch.save({}, there / "model.ckpt")
    return Laid(there / "model.ckpt", folder)


def as_dia_was_first(folder: Path, there: Path, family: str) -> Laid:
    """Write nari-labs' own layout of Dia, before transformers had it."""
    (there / "config.json").write_text(json.dumps({"version": "0.1", "model": {}, "training": {}, "data": {}}))
    return Laid(there, folder)


# LoRAs and embeddings


def lora_named(name: Callable[[str, str], str], ends: tuple[str, str], *, alpha: bool = False) -> Callable[[Path, Path, str], Laid]:
    """Write a random LoRA of the denoiser, and where `name` has one the first encoder's; diffusers alone adds it into a copy of the model."""

    def write(folder: Path, there: Path, family: str) -> Laid:
        pipe, tensors = load_pipe(folder), dict[str, torch.Tensor]()
        torch.manual_seed(2)
        for part in (picture_families.FAMILIES[family].denoiser, "text_encoder"):
            for layer, module in getattr(pipe, part).named_modules():
                if layer.endswith(LORA_LAYERS) and (theirs := name(part, layer)):
                    tensors[f"{theirs}{ends[0]}.weight"] = torch.randn(4, module.in_features) / 2
                    tensors[f"{theirs}{ends[1]}.weight"] = torch.randn(module.out_features, 4) / 2
                    tensors |= {f"{theirs}.alpha": torch.tensor(2.0)} if alpha else {}
        lora = original.write(tensors, there / "lora.safetensors")
        plain = type(pipe).from_pretrained(folder)
        plain.load_lora_weights(str(lora))
        plain.fuse_lora(lora_scale=STRENGTH)
        plain.unload_lora_weights()
        plain.save_pretrained(there / "with it")
        return Laid(folder, there / "with it", lora=lora)

    return write


LORA_LAYERS = ("attn1.to_q", "attn.to_q", "attention.to_q", "attn2.to_v", "self_attn.q_proj", "self_attn.out_proj")


def name_as_kohya(part: str, layer: str) -> str:
    return f"lora_te_text_model_{layer.replace('.', '_')}" if part == "text_encoder" else f"lora_unet_{layer.replace('.', '_')}"


def name_as_kohya_xl(part: str, layer: str) -> str:
    return name_as_kohya(part, layer).replace("lora_te_", "lora_te1_")


def name_as_diffusers(part: str, layer: str) -> str:
    return "" if part == "text_encoder" else f"{part}.{layer}"


def name_as_comfyui(part: str, layer: str) -> str:
    return "" if part == "text_encoder" else f"diffusion_model.{layer}"


def as_peft_saves_it(folder: Path, there: Path, family: str) -> Laid:
    unet = diffusers.UNet2DConditionModel.from_pretrained(folder / "unet")
    torch.manual_seed(2)
    adapted = peft.get_peft_model(unet, peft.LoraConfig(r=4, lora_alpha=10, init_lora_weights=False, target_modules=["to_q", "to_v"]))
    adapted.save_pretrained(there / "adapter")
    for module in adapted.modules():
        if isinstance(module, peft.tuners.lora.LoraLayer):
            module.scale_layer(STRENGTH)
    adapted.merge_and_unload().save_pretrained(copy(folder, there / "with it") / "unet")
    return Laid(folder, there / "with it", lora=there / "adapter")


def lora_holding(shapes: dict[str, tuple[int, ...]]) -> Callable[[Path, Path, str], Laid]:
    def write(folder: Path, there: Path, family: str) -> Laid:
        file = original.write({name: torch.zeros(shape) for name, shape in shapes.items()}, there / "add.safetensors")
        return Laid(folder, folder, lora=file)

    return write


LORA, A_LORA = ((".lora_down", ".lora_up"), (".lora_A", ".lora_B"))
SD2: dict[str, tuple[int, ...]] = {
    "model.diffusion_model.input_blocks.0.0.weight": (32, 4, 3, 3),
    "model.diffusion_model.input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight": (4, 1024),
}
REFINER: dict[str, tuple[int, ...]] = {
    "model.diffusion_model.input_blocks.0.0.weight": (32, 4, 3, 3),
    "conditioner.embedders.0.model.text_projection": (4, 4),
}
MASKED: dict[str, tuple[int, ...]] = {"model.diffusion_model.input_blocks.0.0.weight": (32, 9, 3, 3)}

TABLE = (
    Row("sd15", "diffusers folder", as_saved),
    Row("sd15", "folder, variant fp16", in_half("fp16"), slow=True),
    Row("sd15", "folder, variant bf16, many shards", in_half("bf16", "20KB")),
    Row("sd15", "folder in the hub's cache", in_the_hubs_cache, slow=True),
    Row("sd15", "folder for pictures", for_pictures, slow=True),
    Row("sd15", "folder for masks", for_masks, "detect.other-family", "inpainting"),
    Row("sd15", "folder of another pipeline", of_a_stranger, "detect.other-family", "Kolors"),
    Row("sd15", "folder without a tokenizer", lacking("tokenizer"), "load.no-part", "tokenizer"),
    Row("sd15", "folder without a scheduler", lacking("scheduler"), "load.no-part", "scheduler"),
    Row("sd15", "folder without a VAE", lacking("vae"), "detect.no-weights", "vae"),
    Row("sd15", "a folder within the folder", one_part("unet"), "detect.part", "unet"),
    Row("sd15", "a file within the folder", one_part("unet/diffusion_pytorch_model.safetensors"), "detect.part", "unet"),
    Row("sd15", "A1111's file", as_one_file),
    Row("sd15", "A1111's file without a VAE", without_a_vae),
    Row("sd15", "A1111's pickle", as_a_pickle, "detect.pickle", "pickle"),
    Row("sd15", "file for masks", holding(MASKED), "detect.other-family", "inpainting"),
    Row("sd15", "file of SD 2", holding(SD2), "detect.other-family", "Stable Diffusion 2"),
    Row("sd15", "ComfyUI's UNet alone", denoiser_alone, slow=True),
    Row("sd15", "GGUF", as_gguf),
    Row("sd15", "kohya's LoRA, both parts", lora_named(name_as_kohya, LORA, alpha=True), slow=True),
    Row("sd15", "diffusers' LoRA", lora_named(name_as_diffusers, A_LORA), slow=True),
    Row("sd15", "peft's LoRA", as_peft_saves_it),
    Row("sd15", "LoHa", lora_holding({"lora_unet_x.hada_w1_a": (2, 2)}), "lora.kind", "LoHa"),
    Row("sd15", "LoKr", lora_holding({"lora_unet_x.lokr_w1": (2, 2)}), "lora.kind", "LoKr"),
    Row("sd15", "OFT", lora_holding({"x.oft_blocks": (2, 2, 2)}), "lora.kind", "OFT"),
    Row("sd15", "embedding without a word", lora_holding({"emb_params": (4, 32)}), "lora.unfit", "It is an embedding"),
    Row("sd15", "embedding as a model", holding({"emb_params": (4, 768)}), "detect.not-whole", "textual inversion"),
    Row("sdxl", "diffusers folder", as_saved, slow=True),
    Row("sdxl", "folder, variant fp16", in_half("fp16"), slow=True),
    Row("sdxl", "folder of the refiner", as_the_refiner, "detect.other-family", "refiner"),
    Row("sdxl", "folder of Playground 2.5", with_edms_noise, "detect.other-family", "Playground 2.5"),
    Row("sdxl", "A1111's file", as_one_file),
    Row("sdxl", "A1111's file without a VAE", without_a_vae, slow=True),
    Row("sdxl", "file that predicts v", predicting_v),
    Row("sdxl", "file of the refiner", holding(REFINER), "detect.other-family", "refiner"),
    Row("sdxl", "GGUF", as_gguf, slow=True),
    Row("sdxl", "kohya's LoRA, both parts", lora_named(name_as_kohya_xl, LORA, alpha=True)),
    Row("pixart-sigma", "diffusers folder", as_saved, slow=True),
    Row("pixart-sigma", "single file", holding({"blocks.0.cross_attn.q_linear.weight": (2, 2)}), "detect.folder-only", "PixArt-Sigma"),
    Row("sd3", "diffusers folder", as_saved, slow=True),
    Row("sd3", "all in one", as_one_file),
    Row("sd3", "ComfyUI's denoiser alone", denoiser_alone, slow=True),
    Row("sd3", "ComfyUI's folders", beside_its_parts, slow=True),
    Row("sd3", "GGUF", as_gguf, slow=True),
    Row("sd3", "diffusers' LoRA", lora_named(name_as_diffusers, A_LORA), slow=True),
    Row("flux", "diffusers folder", as_saved, slow=True),
    Row("flux", "folder of dev", taking_guidance),
    Row("flux", "all in one", as_one_file),
    Row("flux", "ComfyUI's denoiser alone", denoiser_alone, slow=True),
    Row("flux", "ComfyUI's denoiser alone, of dev", guided_alone, slow=True),
    Row("flux", "ComfyUI's folders", beside_its_parts, slow=True),
    Row("flux", "GGUF", as_gguf),
    Row("flux", "diffusers' LoRA", lora_named(name_as_diffusers, A_LORA)),
    Row("chroma", "diffusers folder", as_saved, slow=True),
    Row("chroma", "all in one", as_one_file),
    Row("chroma", "ComfyUI's folders", beside_its_parts, slow=True),
    Row("chroma", "GGUF", as_gguf, slow=True),
    Row("chroma", "diffusers' LoRA", lora_named(name_as_diffusers, A_LORA), slow=True),
    Row("flux2-klein", "diffusers folder", as_saved, slow=True),
    Row("flux2-klein", "ComfyUI's denoiser alone", denoiser_alone, slow=True),
    Row("flux2-klein", "ComfyUI's folders", beside_its_parts),
    Row("flux2-klein", "GGUF", as_gguf, slow=True),
    Row("z-image", "diffusers folder", as_saved, slow=True),
    Row("z-image", "ComfyUI's denoiser alone", denoiser_alone, slow=True),
    Row("z-image", "ComfyUI's folders", beside_its_parts),
    Row("z-image", "plain fp8", in_fp8),
    Row("z-image", "GGUF", as_gguf, slow=True),
    Row("z-image", "ComfyUI's LoRA", lora_named(name_as_comfyui, A_LORA)),
    Row("lumina-2", "diffusers folder", as_saved, slow=True),
    Row("lumina-2", "all in one", as_one_file),
    Row("lumina-2", "ComfyUI's folders", beside_its_parts, slow=True),
    Row("lumina-2", "GGUF", as_gguf, slow=True),
    Row("lumina-2", "diffusers' LoRA", lora_named(name_as_diffusers, A_LORA), slow=True),
    Row("sd15", "nari-labs' Dia", as_dia_was_first, "detect.first-dia", "nari-labs/Dia-1.6B-0626"),
)


PLAINLY: dict[tuple[Path, str, float, int | None], np.ndarray[Any, Any]] = {}
"""By all that the picture depends on: many layouts have the same weights, each with a row of its own."""


def paint_plainly(folder: Path, model: Model, guidance: float, tokens: int | None) -> np.ndarray[Any, Any]:
    more: dict[str, Any] = {"max_sequence_length": tokens} if tokens else {}
    key = (folder, model.settings.scheduler, guidance, tokens)
    if key not in PLAINLY:
        PLAINLY[key] = paint_with_diffusers(folder, model, prompt=PROMPT, width=64, height=64, guidance_scale=guidance, **more)
    return PLAINLY[key]


def paint(laid: Laid, job: Path) -> tuple[np.ndarray[Any, Any], Model]:
    found = catalog.find(str(laid.path))
    plan = tiny.make_plan(found, quantised="gguf" if found.gguf else "none")
    paints = painter.load(Path(found.path), found, plan, {"configs": laid.base} if laid.base else {})
    loras = (Lora(str(laid.lora), STRENGTH, word=laid.word),) if laid.lora else ()
    events = list(paints.run(PictureRequest(PROMPT, loras=loras, **SMALL), Control(), None, job))
    return read_pixels(list_parts(events)[0].path), found


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row.family}: {row.layout}", marks=pytest.mark.slow if row.slow else []) for row in TABLE]
)
def test_a_layout_runs_as_plain_diffusers_does_or_is_told(row: Row, root: Path, tmp_path: Path) -> None:
    laid = row.write(make_folder(root, row.family), tmp_path, row.family)
    if row.told:
        with pytest.raises(Trouble) as told:
            paint(laid, tmp_path / "job")
        assert told.value.sentence.key == row.told and row.words in str(told.value)
        return
    ours, found = paint(laid, tmp_path / "job")
    assert found.family == row.family
    guided = picture_families.FAMILIES[row.family].numbered is not None and found.settings.guidance > 0
    theirs = paint_plainly(laid.same_as, found, found.settings.guidance, found.attention.text_tokens if guided else None)
    assert theirs.std() > 0.02, "a grey picture would equal anything"
    assert np.abs(ours - theirs).max() * 255 <= 1.5, "1, and the half that plain numbers are not rounded by"
    if laid.lora:
        assert np.abs(ours - paint_plainly(laid.path, found, found.settings.guidance, None)).max() * 255 > 5


def list_lacks(model: Model) -> set[str]:
    return {name for name in model.companions[0].source.files if name.endswith(".safetensors")}


@pytest.mark.parametrize(
    ("family", "write", "asked"),
    [
        ("sd15", without_a_vae, {"vae/*.fp16.safetensors"}),
        ("flux", denoiser_alone, {"text_encoder/*.safetensors", "text_encoder_2/*.safetensors", "vae/*.safetensors"}),
        ("flux", as_one_file, set()),
        ("flux", beside_its_parts, set()),
    ],
    ids=["without a VAE", "alone", "all in one", "beside its parts"],
)
def test_only_what_a_file_lacks_is_asked_for(
    family: str, write: Callable[[Path, Path, str], Laid], asked: set[str], root: Path, tmp_path: Path
) -> None:
    laid = write(make_folder(root, family), tmp_path, family)
    assert list_lacks(catalog.find(str(laid.path))) == asked
    if write is beside_its_parts:
        (tmp_path / "ComfyUI/models/vae/ae.safetensors").unlink()
        assert list_lacks(catalog.find(str(laid.path))) == {"vae/*.safetensors"}, "known at once, though the model's own file is as it was"


def test_a_files_facts_are_its_own(root: Path, tmp_path: Path) -> None:
    folder = make_folder(root, "z-image")
    writers = (denoiser_alone, in_fp8, as_gguf)
    for write in writers:
        (tmp_path / write.__name__).mkdir()
    rows = [catalog.find(str(write(folder, tmp_path / write.__name__, "z-image").path)) for write in writers]
    assert [(row.precision, row.gguf) for row in rows] == [("float32", False), ("fp8", False), ("Q8_0", True)]
    denoiser = next(part for part in rows[0].parts if part.role == "denoiser")
    assert denoiser.parameters == sum(each.numel() for each in load_pipe(folder).transformer.state_dict().values())


def list_settings(root: Path, there: Path) -> Iterator[tuple[float, ...]]:
    for family, write in (("flux", taking_guidance), ("flux", guided_alone)):
        (there / write.__name__).mkdir()
        row = catalog.find(str(write(make_folder(root, family), there / write.__name__, family).path))
        yield row.settings.steps, row.settings.guidance, row.attention.text_tokens
    told = (
        ("flux2-klein", "model_index.json", {"is_distilled": False}),
        ("sdxl", "scheduler/scheduler_config.json", {"timestep_spacing": "trailing"}),
    )
    for family, file, values in told:
        row = catalog.find(str(change(copy(make_folder(root, family), there / family), file, values)))
        yield row.settings.steps, row.settings.guidance
    yield (catalog.find(str(make_folder(root, "sdxl"))).settings.steps,)


def test_settings_are_those_of_what_it_is(root: Path, tmp_path: Path) -> None:
    """FLUX.1 dev as a folder and a file, a klein that is not distilled, an SDXL Turbo, and a plain one."""
    assert list(list_settings(root, tmp_path)) == [(28, 3.5, 512), (28, 3.5, 512), (50, 4.0), (4, 0.0), (25,)]


@pytest.mark.parametrize(
    ("scheduler", "steps", "guidance", "told"),
    [
        ({"shift": 3.0}, 9, 0.0, None),
        ({"shift": 6.0}, 50, 4.0, None),
        ({"shift": 5.5}, 50, 4.0, None),
        ({"use_dynamic_shifting": True}, 9, 0.0, "detect.steps-unknown"),
    ],
)
def test_the_shift_of_times_tells_a_folder_of_z_images_base(
    scheduler: dict[str, Any], steps: int, guidance: float, told: str | None, root: Path, tmp_path: Path
) -> None:
    """Its model_index.json has no word of it: Turbo is published with 3, the base with 6."""
    row = catalog.find(str(change(copy(make_folder(root, "z-image"), tmp_path / "model"), "scheduler/scheduler_config.json", scheduler)))
    assert (row.settings.steps, row.settings.guidance, row.note.key if row.note else None) == (steps, guidance, told)


@pytest.mark.parametrize(
    "name", ["z image base", *(pytest.param(each, marks=pytest.mark.slow) for each in ("zImageBase_v1", "z_image_bf16"))]
)
def test_a_file_of_z_images_base_is_painted_with_its_own_shift(name: str, root: Path, tmp_path: Path) -> None:
    """The settings that are fetched for it are Turbo's, whose times are shifted by 3."""
    folder = make_folder(root, "z-image")
    file = original.write(name_denoiser(folder, "z-image"), tmp_path / f"{name}.safetensors")
    based = change(copy(folder, tmp_path / "based"), "scheduler/scheduler_config.json", {"shift": 6.0})
    laid = Laid(file, based, without(folder, tmp_path / "base", "transformer"))
    ours, found = paint(laid, tmp_path / "job")
    assert (found.settings.steps, found.settings.guidance, found.note) == (50, 4.0, None)
    theirs = paint_plainly(based, found, found.settings.guidance, None)
    assert np.abs(ours - theirs).max() * 255 <= 1.5


def test_a_header_whose_length_looks_like_a_pickle_is_read(tmp_path: Path) -> None:
    """One of 640 bytes begins as pickles do."""
    save_file({"x": torch.zeros(1)}, tmp_path / "short.safetensors", {"about": ""})
    held = int.from_bytes((tmp_path / "short.safetensors").read_bytes()[:8], "little")
    save_file({"x": torch.zeros(1)}, tmp_path / "file.safetensors", {"about": "a" * (640 - held)})
    assert (tmp_path / "file.safetensors").read_bytes()[:2] == b"\x80\x02"
    with pytest.raises(Trouble) as told:
        catalog.find(str(tmp_path / "file.safetensors"))
    assert told.value.sentence.key == "detect.unknown" and "Gradium Phonon" in str(told.value)


@pytest.mark.parametrize(
    ("family", "kind", "words", "width", "taken"),
    [
        ("lumina-2", "Gemma 2", 256_000, 2304, True),
        ("lumina-2", "Qwen 3", 151_936, 2304, False),
        ("flux", "T5", 32_128, 4096, True),
        ("flux", "T5", 256_384, 4096, False),  # UMT5
    ],
)
def test_an_encoder_of_real_size_is_taken(
    family: str, kind: str, words: int, width: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the number of its words, too: those of other models are larger than a tiny one shows."""
    monkeypatch.undo()
    facts = FileFacts("encoder", other=kind, precision="bfloat16", table=(words, width))
    assert any(beside.fits(facts, each) for each in picture_families.FAMILIES[family].encoders) == taken
