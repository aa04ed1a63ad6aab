"""Cast tensors between pipeline parts of different dtypes; diffusers assumes that all parts share one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from diffusers.models.modeling_outputs import AutoencoderKLOutput

_TIMESTEP: Final = "timestep"
"""Never cast: bfloat16 cannot tell 999 from 1000."""


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
