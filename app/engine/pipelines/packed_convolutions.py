"""Keep a UNet's convolutions in the order that the processor's kernels read; torch reorders every weight at every step."""

from __future__ import annotations

import platform
from typing import Any, Final

import torch

from app.compat.machine.hardware import multiplies_bfloat16
from app.compat.planning.types import Plan, Precision

_PROCESSORS: Final = ("x86_64", "AMD64")
"""Where packing was measured to be quicker; Apple's builds of torch have no oneDNN."""


class PackedConvolution(torch.nn.Conv2d):
    """A convolution that packs its weight at its first call, for the size of that picture, and is right at every other. The plain weight is
    freed."""

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        how: tuple[Any, ...] = self.padding, self.stride, self.dilation, self.groups
        if not weight.is_mkldnn:
            reorder: Any = torch._C._nn.mkldnn_reorder_conv2d_weight  # its stub lacks the size of the input
            packed = reorder(weight.detach().to_mkldnn(), *how, input.shape)
            self.weight = torch.nn.Parameter(packed, requires_grad=False)
        made: torch.Tensor = torch.ops.mkldnn._convolution_pointwise(input, self.weight, bias, *how, "none", [], "")
        return made


def pack_convolutions(unet: torch.nn.Module, plan: Plan, how: Precision) -> None:
    """Have the convolutions pack themselves if their weights stay on this processor, in a dtype that it multiplies."""
    has_kernels: bool = platform.machine() in _PROCESSORS and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    dtypes = ("float32", "bfloat16") if multiplies_bfloat16(torch) else ("float32",)
    if not (has_kernels and is_plain(plan, how) and how.compute in dtypes):
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
        if isinstance(layer, PackedConvolution) and layer.weight.is_mkldnn:
            layer.weight = torch.nn.Parameter(layer.weight.detach().to_dense(), requires_grad=False)


def _put_channels_last(_unet: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Order the latents as the packed kernels like them; every layer hands the order on."""
    return (args[0].to(memory_format=torch.channels_last), *args[1:]) if args else args
