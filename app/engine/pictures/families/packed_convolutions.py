"""Keep a UNet's convolutions in the order that the processor's kernels read; torch reorders every weight at every step."""

from __future__ import annotations

import platform
from typing import Any, Final

import torch

from app.compat.machine.processor import (
    OperatorRefused,
    convolve_reordered,
    give_up_order,
    has_given_up_order,
    keeps_order,
    multiplies_bfloat16,
    reorder_convolution,
)
from app.compat.planning.types import Plan, Precision

_PROCESSORS: Final = ("x86_64", "AMD64")
"""Packing was measured to be quicker there; Apple's builds of torch have no oneDNN."""


class PackedConvolution(torch.nn.Conv2d):
    """A convolution that packs its weight at its first call, for the size of that picture, and is right at every other. The plain weight is
    freed. Once packing is refused, it is a plain convolution again."""

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        how: tuple[Any, ...] = self.padding, self.stride, self.dilation, self.groups
        try:
            if not weight.is_mkldnn:
                self.weight = torch.nn.Parameter(reorder_convolution(weight.detach(), how, input.shape), requires_grad=False)
            return convolve_reordered(input, self.weight, bias, how)
        except OperatorRefused as fault:
            give_up_order("convolution", input.dtype, str(fault))
            _unpack(self)
            self.__class__ = torch.nn.Conv2d  # type: ignore[assignment]
            made: torch.Tensor = torch.nn.Conv2d._conv_forward(self, input, self.weight, bias)
            return made


def pack_convolutions(unet: torch.nn.Module, plan: Plan, how: Precision) -> None:
    """Have the convolutions pack themselves if their weights stay on this processor, in a dtype that it multiplies."""
    dtypes = ("float32", "bfloat16") if multiplies_bfloat16() else ("float32",)
    if platform.machine() not in _PROCESSORS or not is_plain(plan, how) or how.compute not in dtypes:
        return
    if not keeps_order("convolution", getattr(torch, how.compute)):
        return
    for layer in unet.modules():
        if type(layer) is torch.nn.Conv2d and layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
            layer.__class__ = PackedConvolution  # keeps the weight, which is not copied
    unet.register_forward_pre_hook(_put_channels_last)


def is_plain(plan: Plan, how: Precision) -> bool:
    """Tell whether the weights of a part stay on this processor, unquantised and in the dtype that computes."""
    stays = plan.device == plan.runs_on == "cpu" and plan.offload == "none" and plan.quantised == "none"
    return stays and how.storage == how.compute


def unpack_convolutions(unet: torch.nn.Module) -> None:
    """Make the weights plain again, so that they can be changed; the next call packs them."""
    for layer in unet.modules():
        if isinstance(layer, PackedConvolution):
            _unpack(layer)


def _unpack(layer: PackedConvolution) -> None:
    if layer.weight.is_mkldnn:
        layer.weight = torch.nn.Parameter(layer.weight.detach().to_dense(), requires_grad=False)


def _put_channels_last(_unet: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Order the latents as the packed kernels like them; every layer hands the order on."""
    if not args or has_given_up_order("convolution", args[0].dtype):
        return args
    return args[0].to(memory_format=torch.channels_last), *args[1:]
