"""Switch torch's attention kernels on and off. The switches are global to the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from app.compat.attention.call import AttentionCall
from app.compat.attention.tiled import wants_gradients
from app.compat.planning.memory_formulas import keeps_no_scores
from app.compat.planning.types import Kernel, Plan

BACKENDS: dict[Kernel, SDPBackend] = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
EXIST: dict[str, frozenset[Kernel]] = {"cpu": frozenset({"flash", "math"}), "cuda": frozenset(BACKENDS)}
"""Metal has no entry, as torch has no such switches there."""
NONE_TAKES_IT = ("No available kernel", "No viable backend")
"""torch raises these errors, on a GPU and on a CPU, if no allowed kernel supports the shape."""
_ONE_AT_A_TIME = threading.RLock()


def none_takes_it(error: Exception) -> bool:
    return any(words in str(error) for words in NONE_TAKES_IT)


def restricts(plan: Plan) -> bool:
    """Return whether the plan forbids a kernel of this device. With none allowed torch is not called at all."""
    return bool(plan.kernels) and not EXIST.get(plan.device, frozenset()) <= set(plan.kernels)


def switches() -> tuple[bool, bool, bool, bool]:
    """Return the switches: flash, cudnn, efficient, math."""
    cuda: Any = torch.backends.cuda
    return cuda.flash_sdp_enabled(), cuda.cudnn_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled()


def switch(flash: bool, cudnn: bool, efficient: bool, math: bool) -> None:
    if switches() == (flash, cudnn, efficient, math):
        return
    torch.backends.cuda.enable_flash_sdp(flash)
    torch.backends.cuda.enable_cudnn_sdp(cudnn)
    torch.backends.cuda.enable_mem_efficient_sdp(efficient)
    torch.backends.cuda.enable_math_sdp(math)


def allowed(kernels: Collection[Kernel]) -> tuple[bool, bool, bool, bool]:
    return "flash" in kernels, "cudnn" in kernels, "efficient" in kernels, "math" in kernels


@contextmanager
def only(kernels: Collection[Kernel]) -> Iterator[None]:
    """Allow only these kernels for a while. The switches are global, so threads take turns: also one that finds them right, as another may be
    about to restore them."""
    with _ONE_AT_A_TIME:
        if switches() == allowed(kernels):
            yield
            return
        with sdpa_kernel([BACKENDS[each] for each in kernels]):
            yield


def restricted(torch_attention: Callable[..., Tensor], plan: Plan) -> Callable[..., Tensor]:
    """Return torch's attention with only the plan's kernels."""
    return through(torch_attention, plan.kernels) if restricts(plan) else torch_attention


def with_math(torch_attention: Callable[..., Tensor], plan: Plan) -> Callable[..., Tensor]:
    """Return torch's attention with the plan's kernels and math, for calls that own arithmetic
    cannot compute. The other kernels reject many calls."""
    if not plan.kernels or "math" in plan.kernels:
        return restricted(torch_attention, plan)
    return through(torch_attention, (*plan.kernels, "math"))


def through(torch_attention: Callable[..., Tensor], kernels: Collection[Kernel]) -> Callable[..., Tensor]:
    def attention(*args: object, **kwargs: object) -> Tensor:
        with only(kernels):
            return torch_attention(*args, **kwargs)

    return attention


def streams(plan: Plan, call: AttentionCall) -> bool:
    """Return whether torch would use a kernel that never stores all scores."""
    if plan.device == "mps":  # torch 2.13 cannot tell there: only later ones answer _fused_sdp_choice
        return keeps_no_scores(plan.kernels, plan.path) and not call.dropout and not wants_gradients(*call[:4])
    choose = getattr(torch, "_fused_sdp_choice", None)
    if choose is None or plan.device not in EXIST or not plan.kernels:
        return False
    query, key, value, mask, dropout, causal, scale = call
    if mask is not None and query.shape[-2] * key.shape[-2] >= 1 << 32:
        return False  # the efficient kernel's index into its mask overflows (bias-overflow)
    chosen = choose(query, key, value, mask, dropout, causal, scale=scale, enable_gqa=call.groups > 1)
    return any(chosen == BACKENDS[each].value for each in plan.kernels if each != "math")
