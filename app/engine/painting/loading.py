"""Loads a pipeline as its plan says: precision part by part, where each part lies, quantised weights, LoRAs. Local files only, no code, no pickles."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import diffusers
import torch
from diffusers.hooks.layerwise_casting import apply_layerwise_casting
from diffusers.quantizers.pipe_quant_config import PipelineQuantizationConfig

from app.compat.plan import Plan, Precision
from app.engine import detect
from app.engine.model import Model
from app.engine.painting import meet
from app.engine.painting.families import FAMILIES, Family
from app.sentence import Trouble, say

FEW_STEPS: Final = "few-steps"
"""The adapter that makes a model paint in 4 to 8 steps."""
_LOCAL: Final = {"local_files_only": True, "use_safetensors": True}


def pipeline(folder: Path, model: Model, plan: Plan, companions: Mapping[str, Path]) -> Any:
    family = FAMILIES[model.family]
    told: dict[str, Any] = dict(family.loaded_with)
    try:
        if "vae" in companions:
            told["vae"] = diffusers.AutoencoderKL.from_pretrained(  # type: ignore[no-untyped-call]
                companions["vae"], dtype=dtype(plan, "vae"), **_LOCAL
            )
        if plan.quantised == "gguf" and "gguf" in companions:
            told[family.denoiser] = _from_gguf(folder, family, plan, companions["gguf"])
        pipe = (
            _single_file(folder, family, plan, told, companions)
            if model.single_file
            else _folder(folder, family, plan, told)
        )
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError) as fault:
        if isinstance(fault, torch.OutOfMemoryError) or "memory" in str(fault):
            raise
        raise _will_not_load(folder, fault) from fault
    pipe.set_progress_bar_config(disable=True)
    if FEW_STEPS in companions:
        add_lora(pipe, companions[FEW_STEPS], FEW_STEPS)
        pipe.disable_lora()
    settle(pipe, plan)
    return pipe


def dtype(plan: Plan, name: str) -> torch.dtype:
    """How a part's numbers are kept."""
    found: torch.dtype = getattr(torch, precision(plan, name).storage)
    return found


def precision(plan: Plan, name: str) -> Precision:
    """By its name, else by its role: a local folder may hold a part that its catalog row has not."""
    for part in plan.precision:
        if part.part == name:
            return part
    role = {"vae": "vae", "unet": "denoiser", "transformer": "denoiser"}.get(name, "text")
    found = next((part for part in plan.precision if part.role == role), None)
    return found or Precision(name, "denoiser", plan.dtype, plan.dtype, plan.device)


def _folder(folder: Path, family: Family, plan: Plan, told: dict[str, Any]) -> Any:
    parts = [path.name for path in folder.iterdir() if path.is_dir() and (path / "config.json").is_file()]
    held = [name for name in parts if name not in told and name in _WEIGHTY]
    half_only = False
    for name in held:
        found = detect.weights(folder / name)
        half_only = half_only or all(".fp16" in path.name for path in found)
        for path in found:
            detect.header(path)
    quantised = _quantised(plan, family)
    return getattr(diffusers, family.text).from_pretrained(
        folder,
        dtype={name: dtype(plan, name) for name in held} | {"default": getattr(torch, plan.dtype)},
        variant="fp16" if half_only else None,
        **({"quantization_config": quantised} if quantised else {}),
        **_LOCAL,
        **told,
    )


_WEIGHTY: Final = frozenset({"text_encoder", "text_encoder_2", "text_encoder_3", "unet", "transformer", "vae"})


def _single_file(file: Path, family: Family, plan: Plan, told: dict[str, Any], companions: Mapping[str, Path]) -> Any:
    detect.header(file)
    if "configs" not in companions:
        raise Trouble(
            say(
                "load.no-configs",
                "{path} holds weights only. Its settings and tokenizer come from the model it descends from, a few megabytes: get that first.",
                path=str(file),
            ),
            cure="get-configs",
        )
    pipe = getattr(diffusers, family.text).from_single_file(
        str(file),
        config=str(companions["configs"]),
        dtype=getattr(torch, plan.dtype),
        local_files_only=True,
        **told,
    )
    for name in _WEIGHTY:
        part = getattr(pipe, name, None)
        if part is not None:
            part.to(dtype(plan, name))
    return pipe


def _from_gguf(folder: Path, family: Family, plan: Plan, companion: Path) -> Any:
    file = companion if companion.is_file() else next(companion.glob("*.gguf"))
    compute = getattr(torch, precision(plan, family.denoiser).compute)
    kind = getattr(diffusers, detect.class_of(folder, family.denoiser))
    return kind.from_single_file(
        str(file),
        quantization_config=diffusers.GGUFQuantizationConfig(compute_dtype=compute),  # type: ignore[no-untyped-call]
        config=str(folder),
        subfolder=family.denoiser,
        dtype=compute,
        local_files_only=True,
    )


def _quantised(plan: Plan, family: Family) -> Any:
    """For weights that are quantised while they are loaded: the denoiser and the large text encoders."""
    compute = getattr(torch, plan.dtype)
    backends: dict[str, tuple[str, dict[str, Any]]] = {
        "bnb-nf4": ("bitsandbytes_4bit", {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": compute}),
        "bnb-int8": ("bitsandbytes_8bit", {"load_in_8bit": True}),
    }  # fmt: skip
    if plan.quantised not in backends:
        return None
    backend, settings = backends[plan.quantised]
    large = [part.part for part in plan.precision if part.role in ("denoiser", "text")]
    return PipelineQuantizationConfig(quant_backend=backend, quant_kwargs=settings, components_to_quantize=large)


def settle(pipe: Any, plan: Plan) -> None:
    """Where the parts lie and how they compute, after their weights are there."""
    modules = {name: part for name, part in pipe.components.items() if isinstance(part, torch.nn.Module)}
    for name, part in modules.items():
        kept = precision(plan, name)
        if kept.storage != kept.compute and not getattr(part, "is_quantized", False):
            _compute_apart(part, getattr(torch, kept.storage), getattr(torch, kept.compute))
    arrange_vae(pipe.vae, plan)
    device = plan.runs_on
    if device == "cpu":  # also on a pretended machine: there is nowhere to move anything to
        pipe.to(device)
    elif plan.offload == "none":
        for name, part in modules.items():
            part.to(precision(plan, name).device)
    elif plan.offload == "model":
        pipe.enable_model_cpu_offload(device=device)
    elif plan.offload == "group":
        pipe.enable_group_offload(torch.device(device), offload_type="leaf_level", use_stream=device == "cuda")
    else:
        pipe.enable_sequential_cpu_offload(device=device)
    computes = {name: getattr(torch, precision(plan, name).compute) for name in modules}
    denoiser = "unet" if "unet" in modules else "transformer"
    meet.parts(pipe, modules[denoiser], computes | {"denoiser": computes[denoiser]})


def arrange_vae(vae: Any, plan: Plan) -> None:
    """Slices and tiles; may be asked for again while loaded."""
    if plan.vae.slicing:
        vae.enable_slicing()
    else:
        vae.disable_slicing()
    if plan.vae.tile_pixels:
        vae.enable_tiling()
        scale = 2 ** (len(vae.config.block_out_channels) - 1)
        vae.tile_sample_min_size = plan.vae.tile_pixels
        vae.tile_latent_min_size = max(1, plan.vae.tile_pixels // scale)
    else:
        vae.disable_tiling()


_LARGE: Final = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)


def _compute_apart(part: torch.nn.Module, storage: torch.dtype, compute: torch.dtype) -> None:
    """Weights of large layers rest in `storage` and are cast one by one. The others (norms, embeddings, free parameters) change
    over for good: they are small, and a text encoder's embedding is what diffusers reads its dtype from."""
    for name, module in part.named_modules():
        if "norm" in name or not isinstance(module, _LARGE):
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                if tensor.is_floating_point():
                    tensor.data = tensor.data.to(compute)
    apply_layerwise_casting(part, storage, compute, ("norm",), (torch.nn.Embedding,))


def add_lora(pipe: Any, given: str | Path, adapter: str) -> None:
    path = Path(given)
    file = path if path.is_file() else next(iter(sorted(path.glob("*.safetensors"))), path)
    if not file.is_file():
        raise Trouble(
            say("lora.missing", "The LoRA {path} is not there. Choose it again, or leave it out.", path=str(path))
        )
    detect.header(file)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found a `peft_config`")  # several at once are what is wanted
            pipe.load_lora_weights(str(file.parent), weight_name=file.name, adapter_name=adapter, local_files_only=True)
        if not any(adapter in names for names in pipe.get_list_adapters().values()):
            raise ValueError("nothing in it belongs to this model")
    except (ValueError, KeyError, RuntimeError, AttributeError, TypeError, IndexError) as fault:
        if any(adapter in names for names in pipe.get_list_adapters().values()):
            pipe.delete_adapters(adapter)
        raise Trouble(
            say(
                "lora.misfit",
                "The LoRA {path} does not fit this model: it was made for another one. Leave it out, or choose its model.",
                path=str(path),
            )
        ) from fault


def _will_not_load(folder: Path, fault: Exception) -> Trouble:
    return Trouble(
        say(
            "load.broken",
            "The model in {folder} cannot be loaded: {words}. Its files may be incomplete; download it again.",
            folder=str(folder),
            words=(str(fault).strip().splitlines() or [type(fault).__name__])[0][:300],
        ),
        cure="models",
    )
