"""Share tiny picture models, painters loaded once, and the same pictures by plain diffusers to compare with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import diffusers
import gguf
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from app.engine.jobs import schedulers
from app.engine.jobs.events import Event, PartDone
from app.engine.models import catalog
from app.engine.models.model import Model
from app.engine.models.picture_families import FAMILIES
from app.engine.pictures.run import painter as picture_painter
from app.engine.pictures.run import steps
from app.engine.session.session import Session
from tests.support import tiny_pictures as tiny

SMALL: dict[str, Any] = {"width": 64, "height": 64, "steps": 3, "seed": 11, "preview_every": 0}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make the models once for all test files."""
    return _folders(tmp_path_factory.getbasetemp() / "tiny-models")


@cache
def _folders(root: Path) -> dict[str, Path]:
    return {family: tiny.save(family, root / family) for family in tiny.MAKERS}


@cache
def load_painter(folder: Path) -> tuple[picture_painter.Painter, Model]:
    """Load a painter once; a test that modifies one loads its own."""
    model = catalog.find(str(folder))
    return picture_painter.load(folder, model, tiny.make_plan(model), {}), model


def find_pipe(session: Session) -> Any:
    """Return the pipeline of the loaded picture model."""
    painter = session.holder.get("picture")
    assert isinstance(painter, picture_painter.Painter)
    return painter.pipe


def read_pixels(path: str | Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), dtype=np.float64) / 255


def list_parts(events: list[Event]) -> list[PartDone]:
    return [event for event in events if isinstance(event, PartDone)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """Record the VAE's output before it is rounded to 8 bits."""
    seen: list[torch.Tensor] = []
    check = steps.check_decoded

    def record(image: torch.Tensor, step: int, exact: bool) -> None:
        seen.append(image.detach().clone())
        check(image, step, exact)

    monkeypatch.setattr(steps, "check_decoded", record)
    return seen


def paint_with_diffusers(folder: Path, model: Model, kind: str = "text", lora: Path | None = None, **arguments: Any) -> np.ndarray:
    """Paint with diffusers alone: its own loading, loop and decoding. `kind`: text, image or inpaint."""
    family = FAMILIES[model.family]
    plain = getattr(diffusers, getattr(family, f"{kind}_class")).from_pretrained(folder, **family.load_arguments)
    if model.settings.scheduler:
        row = schedulers.find_scheduler(model.settings.scheduler)
        plain.scheduler = getattr(diffusers, row.class_name).from_config(plain.scheduler.config, **row.settings)
    if lora is not None:
        plain.load_lora_weights(str(lora))
        plain.fuse_lora()
    arguments = {"num_inference_steps": 3, **family.call_arguments, **arguments}
    image = plain(generator=torch.Generator("cpu").manual_seed(11), output_type="np", **arguments).images[0]
    return np.asarray(image, dtype=np.float64)


def assert_same(decoded: torch.Tensor, plain: np.ndarray) -> None:
    mine = ((decoded[0].double() + 1) / 2).clamp(0, 1).permute(1, 2, 0).numpy()
    assert mine.std() > 0.01, "a grey picture would equal anything"
    assert np.abs(mine - plain).max() <= 1e-4


def break_denoiser(paints: picture_painter.Painter, at: int) -> Any:
    """Make the denoiser return NaN once, at this call."""
    module = getattr(paints.pipe, paints.family.denoiser)
    calls = 0

    def spoil(_module: torch.nn.Module, _args: Any, output: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != at:
            return output
        first = output[0]
        return ([each * float("nan") for each in first] if isinstance(first, list) else first * float("nan"),)

    return module.register_forward_hook(spoil)


@pytest.fixture(scope="session")
def gradient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "gradient.png"
    values = np.linspace(0, 255, 96 * 96 * 3).reshape(96, 96, 3).astype(np.uint8)
    Image.fromarray(values).save(path)
    return path


def make_lora(folder: Path, path: Path, seed: int) -> Path:
    """Write a random LoRA for this model's UNet, as peft and diffusers do."""
    torch.manual_seed(seed)
    pipe = diffusers.StableDiffusionPipeline.from_pretrained(folder, safety_checker=None)
    state = {}
    for name, module in pipe.unet.named_modules():
        if name.endswith("attn1.to_q"):
            state[f"unet.{name}.lora_A.weight"] = torch.randn(2, module.in_features)
            state[f"unet.{name}.lora_B.weight"] = torch.randn(module.out_features, 2)
    save_file(state, path)
    return path


LCM_LAYERS = (
    ".to_q", ".to_k", ".to_v", ".to_out.0", ".proj_in", ".proj_out", ".ff.net.0.proj", ".ff.net.2", ".conv1", ".conv2", ".conv_shortcut",
    ".downsamplers.0.conv", ".upsamplers.0.conv", ".time_emb_proj",
)  # fmt: skip
"""The LCM LoRAs of the hub change these layers of a UNet."""


def draw_lcm_lora(unet: torch.nn.Module, rank: int) -> dict[str, torch.Tensor]:
    """Draw a LoRA of the layout that those of the hub have: kohya's names, in half precision."""
    tensors = dict[str, torch.Tensor]()
    for name, layer in unet.named_modules():
        if name.endswith(LCM_LAYERS) and isinstance(layer, torch.nn.Linear | torch.nn.Conv2d):
            key, (wide, *inner) = f"lora_unet_{name.replace('.', '_')}", layer.weight.shape
            tensors[f"{key}.lora_down.weight"] = torch.randn(rank, *inner).half() / 8
            tensors[f"{key}.lora_up.weight"] = torch.randn(wide, rank, *(1 for _ in inner[1:])).half() / 8
            tensors[f"{key}.alpha"] = torch.tensor(float(rank)).half()
    return tensors


def make_gguf(folder: Path, file: Path, without: str = "", original: bool = False) -> Path:
    """Write the denoiser's weights as 8-bit GGUF, where 32 numbers share a scale. `original`: with Z-Image's original names;
    `without`: leave out the weights whose names start so."""
    weights = load_file(folder / "transformer" / "diffusion_pytorch_model.safetensors")
    kept = {name: weight for name, weight in weights.items() if not without or not name.startswith(without)}
    assert bool(without) == (len(kept) < len(weights))
    return write_gguf(_rename_to_original(kept) if original else kept, file)


def write_gguf(weights: dict[str, torch.Tensor], file: Path) -> Path:
    writer = gguf.GGUFWriter(str(file), "tiny")
    for name, tensor in weights.items():
        values = tensor.float().numpy()
        fits = name.endswith(".weight") and values.ndim == 2 and values.shape[1] % 32 == 0
        kind = gguf.GGMLQuantizationType.Q8_0 if fits else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


Z_IMAGE = {
    "all_final_layer.2-1.": "final_layer.", "all_x_embedder.2-1.": "x_embedder.", ".attention.norm_k.": ".attention.k_norm.",
    ".attention.norm_q.": ".attention.q_norm.", ".attention.to_out.0.": ".attention.out.",
}  # fmt: skip


def _rename_to_original(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Use Z-Image's original names, with the three projections of attention in one weight."""
    named: dict[str, torch.Tensor] = {}
    for name, weight in weights.items():
        before, _, place = name.partition(".attention.to_")
        for ours, theirs in Z_IMAGE.items():
            name = name.replace(ours, theirs)
        if place.startswith(("q.", "k.", "v.")):
            name = f"{before}.attention.qkv.weight"
            weight = torch.cat([weights[each] for letter in "qkv" if (each := f"{before}.attention.to_{letter}.weight") in weights])
        named[name] = weight
    return named
