"""Place a pipeline's parts as planned: devices, offload, storage and compute dtypes, VAE slices and tiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from accelerate import cpu_offload, cpu_offload_with_hook
from accelerate.hooks import AlignDevicesHook, add_hook_to_module, remove_hook_from_module
from diffusers.hooks.hooks import HookRegistry
from diffusers.hooks.layerwise_casting import LayerwiseCastingHook
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from diffusers.models.modeling_outputs import AutoencoderKLOutput
from peft.tuners.lora.layer import LoraLayer

from app.compat.planning.types import Plan, Precision
from app.engine.models.loading import quantise
from app.engine.pictures.families import packed_convolutions
from app.engine.pictures.families.parts_on_disk import DiskParts

CONTROL: Final = "controlnet"
"""It runs before each step of the denoiser, in its precision and beside it."""
SHARED_MEMORY: Final = ("cpu", "mps")
"""These devices use the computer's memory: only moving an idle part to disk frees any."""


def find_precision(plan: Plan, name: str) -> Precision:
    """Look up a part's precision by name, else by role: a local folder may hold parts that its catalog row lacks."""
    for part in plan.precision:
        if part.part == name:
            return part
    role = {"vae": "vae", "unet": "denoiser", "transformer": "denoiser", CONTROL: "denoiser"}.get(name, "text")
    found = next((part for part in plan.precision if part.role == role), None)
    return found or Precision(name, "denoiser", plan.dtype, plan.dtype, plan.device)


def make_disk_parts(plan: Plan, scratch: Path) -> DiskParts | None:
    """Return the store for idle parts if the plan offloads them and the device shares the computer's memory."""
    return DiskParts(scratch / "waiting") if plan.offload == "model" and plan.device in SHARED_MEMORY else None


def place_part(name: str, part: torch.nn.Module, plan: Plan, turns: DiskParts | None, files: Iterable[Path] = ()) -> None:
    """Cast, move and register one part as soon as it is loaded. `files`: its own."""
    how = find_precision(plan, name)
    if how.role == "denoiser" and how.linear == "float16":
        halve_blocks(part)
    if how.storage != how.compute and not quantise.has_quantised_weights(part):
        _store_narrow(part, getattr(torch, how.storage), getattr(torch, how.compute))
    if plan.offload == "none" or turns is not None:
        _move(part, "cpu" if plan.runs_on == "cpu" else how.device)
    if plan.channels_last and how.role in ("denoiser", "vae") and how.compute == plan.dtype:
        put_channels_last(part)
    if turns is not None:
        turns.add(name, part, files)


def put_channels_last(part: torch.nn.Module) -> None:
    """Order the weights of convolutions. Their results then have that order as well, whatever they are given; whoever moves a weight keeps it."""
    for layer in part.modules():
        if isinstance(layer, torch.nn.Conv2d):
            layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)


def place_control(control: Any, denoiser: str, plan: Plan, turns: DiskParts | None, files: Iterable[Path]) -> Any:
    """Place a control model beside its denoiser, as that is placed. Return accelerate's hook if it goes to the card at its first call: it has to be
    sent away again. `files`: its own."""
    place_part(CONTROL, control, plan, None)
    if find_precision(plan, CONTROL).compute == "float16":
        scale_layers(control)
    if turns is not None:
        _move(control, "cpu" if plan.runs_on == "cpu" else find_precision(plan, CONTROL).device)
        turns.add(CONTROL, control, files, beside=denoiser)
    elif plan.offload == "model":
        return cpu_offload_with_hook(control, torch.device(plan.runs_on))[1]
    elif plan.offload == "group":
        control.enable_group_offload(torch.device(plan.runs_on), **_send_in_groups(plan))
    elif plan.offload == "sequential":
        cpu_offload(control, torch.device(plan.runs_on), offload_buffers=False)
    if denoiser == "unet":
        packed_convolutions.pack_convolutions(control, plan, find_precision(plan, CONTROL))
    return None


def _send_in_groups(plan: Plan) -> dict[str, Any]:
    # low_cpu_mem_usage: without it all weights are pinned, and many systems allow only half of their memory to be.
    return {"offload_type": "leaf_level", "use_stream": plan.runs_on == "cuda", "low_cpu_mem_usage": True}


def _send_one_by_one(pipe: Any, device: str) -> None:
    for part in list_modules(pipe).values():
        cpu_offload(part, torch.device(device), offload_buffers=bool(part._parameters))


def place_pipeline(pipe: Any, plan: Plan) -> None:
    """Set up offload and casts once all parts are loaded. On a pretended machine the CPU stands in for the card, with the same hooks."""
    configure_vae(pipe.vae, plan)
    # SDXL's pipelines would upcast the VAE for a start picture and then leave it in the denoiser's dtype, against the plan.
    pipe.vae.register_to_config(force_upcast=False)
    device = plan.runs_on
    if plan.offload == "model" and plan.device not in SHARED_MEMORY:
        # diffusers begins either offload anew once it has loaded a LoRA, and names no device.
        pipe.enable_model_cpu_offload = partial(pipe.enable_model_cpu_offload, device=device)
        pipe.enable_model_cpu_offload()
    elif plan.offload == "group":
        pipe.enable_group_offload(torch.device(device), **_send_in_groups(plan))
    elif plan.offload == "sequential":
        pipe.enable_sequential_cpu_offload = partial(_send_one_by_one, pipe, device)
        pipe.enable_sequential_cpu_offload()
    computes = {name: getattr(torch, find_precision(plan, name).compute) for name in list_modules(pipe)}
    denoiser = "unet" if "unet" in computes else "transformer"
    bridge_dtypes(pipe, list_modules(pipe)[denoiser], computes | {"denoiser": computes[denoiser]})
    if computes[denoiser] == torch.float16:
        clip_streams(list_modules(pipe)[denoiser])
        scale_layers(list_modules(pipe)[denoiser])
    if denoiser == "unet":
        packed_convolutions.pack_convolutions(pipe.unet, plan, find_precision(plan, denoiser))


def is_sent_in_pieces(pipe: Any) -> bool:
    """Return whether a layer's weights are on the card only while that layer computes. DoRA reads them after it has."""
    from diffusers.hooks.group_offloading import _is_group_offload_enabled

    return any(
        _is_group_offload_enabled(part) or any(isinstance(getattr(each, "_hf_hook", None), AlignDevicesHook) for each in part.modules())
        for part in list_modules(pipe).values()
    )


def fit_loras(part: torch.nn.Module) -> None:
    """Let LoRAs compute as wide as their layers, and be stored as narrow: peft creates them in the storage dtype, where no hook casts them."""
    from diffusers.hooks.group_offloading import _maybe_remove_and_reapply_group_offloading

    changed = False
    for layer in part.modules():
        casting = _find_casting(layer.base_layer) if isinstance(layer, LoraLayer) else None
        if casting is None:
            continue
        changed = True
        layer.cast_input_dtype_enabled = False  # type: ignore[assignment]  # peft would round what comes in to what is stored
        for name, leaf in layer.named_modules():
            if name.startswith("base_layer") or _find_casting(leaf) is not None:
                continue
            # A variant, as DoRA, multiplies some by others outside of them.
            if layer.lora_variant or not isinstance(leaf, _LARGE_LAYERS):
                for weight in leaf.parameters(recurse=False):
                    weight.data = weight.data.to(casting.compute_dtype)
            else:
                sending = getattr(leaf, "_hf_hook", None)
                if sending is not None:
                    remove_hook_from_module(leaf)
                _widen_while_it_computes(leaf, casting.storage_dtype, casting.compute_dtype)
                if sending is not None:
                    add_hook_to_module(leaf, sending)  # around the other: what accelerate sends is widened there
    if changed:
        _maybe_remove_and_reapply_group_offloading(part)  # it holds copies of the old weights


def _find_casting(layer: Any) -> LayerwiseCastingHook | None:
    registry = getattr(layer, "_diffusers_hook", None)
    found: LayerwiseCastingHook | None = registry.get_hook(_CASTING) if registry is not None else None
    return found


def list_modules(pipe: Any) -> dict[str, torch.nn.Module]:
    return {name: part for name, part in pipe.components.items() if isinstance(part, torch.nn.Module)}


def _move(part: torch.nn.Module, device: str) -> None:
    if not quantise.is_fixed_on_device(part):
        part.to(device)


def find_device(part: Any) -> torch.device:
    """Return the device a part computes on; offloaded weights are stored on another."""
    from diffusers.hooks.group_offloading import _get_group_onload_device, _is_group_offload_enabled

    if _is_group_offload_enabled(part):
        return _get_group_onload_device(part)
    hooks = (getattr(module, "_hf_hook", None) for module in part.modules())
    devices = (getattr(hook, "execution_device", None) for hook in hooks)
    return torch.device(next((each for each in devices if each is not None), part.device))


def configure_vae(vae: Any, plan: Plan) -> None:
    """Set slices and tiles; may be called again while the model is loaded."""
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


_LARGE_LAYERS: Final = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
_KEEP_WIDE: Final = ("norm", r"\.wo$", r"^t_embedder\.", r"\.patch_embedding$")
"""Norms stay wide, and so do layers whose parent casts their input to the dtype of their weight (in T5, Z-Image and CLIP that sees)."""


class _Widening(LayerwiseCastingHook):
    """Widens a layer's weights while it computes, and then puts back those it had. diffusers' own hook casts them back, into new memory, and drops
    those that were sent while the card has still to read them, so that what is sent next may be written over them."""

    _narrow: tuple[tuple[torch.Tensor, torch.Tensor], ...] = ()

    def pre_forward(self, module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        # They are wide where the layer's last call broke off.
        self._narrow = tuple((each, each.data.to(self.storage_dtype)) for each in module.parameters())
        return super().pre_forward(module, *args, **kwargs)

    def post_forward(self, module: torch.nn.Module, output: Any) -> Any:
        for weight, narrow in self._narrow:
            weight.data = narrow
        self._narrow = ()
        return output


def _store_narrow(part: torch.nn.Module, storage: torch.dtype, compute: torch.dtype) -> None:
    """Store the weights of large layers in `storage` and cast each while it computes. Cast all others once: nearly all are small,
    and diffusers reads a text encoder's dtype from its embedding."""
    halves = [f"^{re.escape(name)}($|\\.)" for name, block in part.named_modules() if hasattr(block, _HALVED)]
    for name, module in part.named_modules():
        if any(re.search(each, name) for each in halves):
            continue
        if any(re.search(each, name) for each in _KEEP_WIDE) or not isinstance(module, _LARGE_LAYERS):
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                if tensor.is_floating_point():
                    tensor.data = tensor.data.to(compute)
        else:
            _widen_while_it_computes(module, storage, compute)


_CASTING: Final = "layerwise_casting"
"""diffusers looks for this name where it adds a LoRA."""


def _widen_while_it_computes(layer: torch.nn.Module, storage: torch.dtype, compute: torch.dtype) -> None:
    HookRegistry.check_if_exists_or_initialize(layer).register_hook(_Widening(storage, compute, False), _CASTING)


_HALVED: Final = "halved"
"""A block marked so computes in float16 between others in float32."""


def halve_blocks(unet: torch.nn.Module) -> None:
    """Let a UNet's transformer blocks compute in float16, from their input to their result; all else stays as it is."""

    def cast_inputs(_block: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(_cast(each, torch.float16) for each in given), {name: _cast(each, torch.float16) for name, each in named.items()}

    for block in list(unet.modules()):
        if type(block).__name__ == "BasicTransformerBlock":
            block.half()
            setattr(block, _HALVED, True)
            block.register_forward_pre_hook(cast_inputs, with_kwargs=True)
            block.register_forward_hook(lambda _block, _given, made: made.float())


_TIMESTEP: Final = "timestep"
"""It is never cast: bfloat16 cannot tell 999 from 1000."""


_TWO_STREAMS: Final = ("FluxTransformerBlock", "Flux2TransformerBlock")
_LARGEST: Final = torch.finfo(torch.float16).max


def bridge_dtypes(pipe: Any, denoiser: torch.nn.Module, computes: Mapping[str, torch.dtype]) -> None:
    """Add the casts that are needed; `computes` maps the name of each part to its dtype."""
    own = computes["denoiser"]
    if any(dtype != own for name, dtype in computes.items() if name.startswith("text_encoder")):
        _cast_inputs(denoiser, own)
    if len(set(computes.values())) > 1:
        _cast_encoding(pipe.vae)


def clip_streams(denoiser: torch.nn.Module) -> None:
    """Keep the picture's stream of FLUX within float16, as diffusers does with the text's and with that of both (ComfyUI PR 8495)."""
    for block in getattr(denoiser, "transformer_blocks", ()):
        if type(block).__name__ in _TWO_STREAMS:
            block.register_forward_hook(lambda _block, _given, streams: tuple(each.clip(-_LARGEST, _LARGEST) for each in streams))


ATTENTION_SCALE: Final = 2**-2
GATED_SCALE: Final = 2**-5
_NORMS_OF_SUMS: Final = ("attention_norm1", "ffn_norm1", "norm_final")
_SCALED: Final = ("ZImageTransformerBlock", "ZImageControlTransformerBlock")


def scale_layers(denoiser: torch.nn.Module) -> None:
    """Keep Z-Image within float16 (ComfyUI PRs 11057, 11187). What attention and the feed-forward layers make is divided by its own size
    right after, so that a power of two changes none of its digits; whatever is still too large is clipped. LoRAs, which take the place of
    linear layers, are scaled along. Sums are clipped where a norm reads them, as a control model adds to them between blocks: of infinity a
    norm makes no number."""
    for block in denoiser.modules():
        for name in _NORMS_OF_SUMS:
            if (norm := getattr(block, name, None)) is not None:
                norm.register_forward_pre_hook(lambda _norm, given: (given[0].clip_(-_LARGEST, _LARGEST),))
        if type(block).__name__ not in _SCALED:
            continue
        block.feed_forward._forward_silu_gating = _gate_scaled  # type: ignore[union-attr]
        if block.attention.norm_q is not None:  # type: ignore[union-attr]  # queries and keys are divided by their own size, too
            block.attention.register_forward_pre_hook(lambda _attention, given: (given[0] * ATTENTION_SCALE, *given[1:]))  # type: ignore[union-attr]
        for part in (block.attention, block.feed_forward, block):
            part.register_forward_hook(lambda _part, _given, made: made.clip_(-_LARGEST, _LARGEST))  # type: ignore[union-attr]


def _gate_scaled(gate: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate).mul_(values.mul_(GATED_SCALE)).clip_(-_LARGEST, _LARGEST)


def _cast_inputs(denoiser: torch.nn.Module, own: torch.dtype) -> None:
    def cast_all(_module: torch.nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        changed = {name: value if name == _TIMESTEP else _cast(value, own) for name, value in kwargs.items()}
        return tuple(_cast(value, own) for value in args), changed

    denoiser.register_forward_pre_hook(cast_all, with_kwargs=True)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() and value.ndim > 1 else value
    if isinstance(value, list | tuple):
        return type(value)(_cast(each, dtype) for each in value)
    if isinstance(value, dict):
        return {name: _cast(each, dtype) for name, each in value.items()}
    return value


def _cast_encoding(vae: Any) -> None:
    """Accept a start picture in another part's dtype, and return its latents in that dtype."""
    encode = vae.encode

    def encode_cast(picture: torch.Tensor, return_dict: bool = True) -> Any:
        found = encode(picture.to(vae.dtype), return_dict=False)[0]
        back = DiagonalGaussianDistribution(found.parameters.to(picture.dtype), found.deterministic)
        return AutoencoderKLOutput(latent_dist=back) if return_dict else (back,)

    vae.encode = encode_cast
