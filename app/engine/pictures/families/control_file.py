"""Load a control model: diffusers' own class, with settings of its folder or of the denoiser that it goes with, and open tensors only."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import diffusers
import torch
from diffusers.loaders.single_file_utils import convert_controlnet_checkpoint
from safetensors.torch import load_file

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.controls import CONFIG, Control, name_control
from app.engine.models.judged_files import read_settings
from app.engine.models.loading import quantise, weights_complete
from app.engine.models.model_folder import check_part

_KINDS: Final = {"z-image": "ZImageControlNetModel"}
_KIND: Final = "ControlNetModel"
_SHARED: Final = {
    _KIND: ("in_channels", "cross_attention_dim", "block_out_channels", "layers_per_block", "addition_embed_type"),
    _KINDS["z-image"]: ("dim", "n_heads", "n_refiner_layers", "all_patch_size", "all_f_patch_size"),
}
"""In these settings it has to be as the denoiser: in what it is given, and in what it hands on."""
_HINT: Final = "controlnet_cond_embedding."
_FIRST_ORIGINAL: Final = "input_hint_block.0.weight"
_SIZES: Final = {f"linear_{place}.{kind}": f"{2 * place - 2}.{kind}" for place in (1, 2) for kind in ("weight", "bias")}
"""These layers of SDXL read the picture's size; the library converts none of them."""
_FAULTS: Final = (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError, AssertionError)
"""The library raises these for settings and weights that make no control model."""


def load_control(control: Control, denoiser: Any, dtype: torch.dtype) -> Any:
    """Return a control model for this denoiser; raise a Trouble if it was made for another, or is damaged."""
    kind = _KINDS.get(control.family, _KIND)
    try:
        tensors = _read_tensors(control, denoiser)
        own = _read_config(control, kind)
        config = own or (_take_config if kind == _KIND else _find_z_image_config)(denoiser, tensors)
        with torch.device("meta"):
            made: Any = getattr(diffusers, kind)(**config)
        if own and any(_compare(made.config[name]) != _compare(denoiser.config[name]) for name in _SHARED[kind]):
            raise _misfit(control)
        if own and kind != _KIND and not _has_places(made.config, denoiser.config):
            raise _misfit(control)
        held = made.state_dict()
        found = {name: tensor.to(dtype) for name, tensor in tensors.items()}
        odd = [name for name in held.keys() & found.keys() if held[name].shape != found[name].shape]
        if odd and not own:
            raise _misfit(control)
        weights_complete.check_weights(control.path, held.keys() - found.keys(), (), odd)
        made.load_state_dict({name: found[name] for name in held}, assign=True)
    except _FAULTS as fault:
        raise _misfit(control) from fault
    if made.config.get("global_pool_conditions"):
        raise _misfit(control)
    return made.eval().requires_grad_(False)


def _has_places(own: Mapping[str, Any], transformer: Mapping[str, Any]) -> bool:
    """Return whether what a Z-Image's control model makes has places in the transformer: the library reads these settings only while it paints."""
    layers, refiners, refined = own["control_layers_places"], own["control_refiner_layers_places"], own["add_control_noise_refiner"]
    if not _are_places(layers, transformer["n_layers"]):
        return False
    hints = {"control_layers": len(layers), "control_noise_refiner": own["n_refiner_layers"]}
    return refined is None or (len(refiners) <= hints[refined] and _are_places(refiners, own["n_refiner_layers"]))


def _are_places(places: Any, layers: int) -> bool:
    return list(places) == sorted(set(places)) and all(place in range(layers) for place in places)


def _compare(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _read_tensors(control: Control, unet: Any) -> dict[str, torch.Tensor]:
    if control.path.is_dir():
        check_part(control.path, control.path)
    tensors = {name: tensor for file in control.weights for name, tensor in load_file(file).items()}
    if not control.original:
        return tensors
    converted = convert_controlnet_checkpoint(tensors, unet.config)  # type: ignore[no-untyped-call]
    begin = next(name for name in tensors if name.endswith(_FIRST_ORIGINAL)).removesuffix(_FIRST_ORIGINAL)
    converted |= {f"add_embedding.{ours}": tensors.get(f"{begin}label_emb.0.{theirs}") for ours, theirs in _SIZES.items()}
    return {name: tensor for name, tensor in converted.items() if tensor is not None}


def _read_config(control: Control, kind: str) -> dict[str, Any]:
    """Return the settings of a folder; a file has none."""
    if not control.path.is_dir():
        return {}
    values = read_settings(control.path, CONFIG)
    quantise.check_packing(control.path, values)
    if values.get("_class_name") != kind:
        raise _misfit(control)
    taken = inspect.signature(getattr(diffusers, kind).__init__).parameters
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in taken}


def _take_config(unet: Any, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return the settings of a control model that is a copy of this UNet's first half; how it reads the guide, its own shapes say."""
    taken = list(inspect.signature(diffusers.ControlNetModel.__init__).parameters)[1:]
    widths = [tensors[f"{_HINT}conv_in.weight"].shape[0]]
    for place in range(1, len(taken), 2):
        if (weight := tensors.get(f"{_HINT}blocks.{place}.weight")) is None:
            break
        widths.append(weight.shape[0])
    return {
        **{name: unet.config[name] for name in taken if name in unet.config},
        "conditioning_channels": tensors[f"{_HINT}conv_in.weight"].shape[1],
        "conditioning_embedding_out_channels": tuple(widths),
    }


def _find_z_image_config(transformer: Any, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return the settings of a control model of this transformer: its shapes say how many layers it has, which lie as far apart as they can."""
    own = transformer.config
    layers = sum(name.startswith("control_layers.") and name.endswith(".after_proj.weight") for name in tensors)
    first = tensors.get("control_noise_refiner.0.before_proj.weight")
    refined = None if first is None else "control_noise_refiner" if first.any() else "control_layers"  # 2.0 never trained its refiner
    return {
        **{
            name: own[name]
            for name in ("all_patch_size", "all_f_patch_size", "dim", "n_refiner_layers", "n_heads", "n_kv_heads", "norm_eps", "qk_norm")
        },
        "control_layers_places": list(range(0, own.n_layers, max(1, round(own.n_layers / layers))))[:layers],
        "control_refiner_layers_places": list(range(own.n_refiner_layers)),
        "control_in_dim": tensors[f"control_all_x_embedder.{own.all_patch_size[0]}-{own.all_f_patch_size[0]}.weight"].shape[1]
        // (own.all_patch_size[0] ** 2 * own.all_f_patch_size[0]),
        "add_control_noise_refiner": refined,
    }


def _misfit(control: Control) -> Trouble:
    return Trouble(
        say(
            "control.misfit",
            "The control model {name} was made for another model, or is damaged. Choose one that was made for this model's family.",
            name=name_control(control.path),
        )
    )
