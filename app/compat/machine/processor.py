"""What torch can do on this processor, asked of torch itself by product and tests alike; and how its private operators are called."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from app.base import notices
from app.base.sentence import Sentence, say
from app.compat.machine.fault_words import is_out_of_memory

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Layer = Literal["linear", "convolution"]
_CONVOLUTION: Final = ((0, 0), (1, 1), (1, 1), 1)
"""The convolution that is tried has this padding, stride, dilation and groups."""
_given_up: Final[set[str]] = set()
_lacking: Final[list[str]] = []
_find = cache(attrgetter)


class OperatorRefused(RuntimeError):
    """This torch lacks a private operator, or it refuses to run here. Whoever calls one has a plain way to the same result."""


def call_private(name: str, *given: Any) -> Any:
    """Call a private operator by its name in torch. A lack of memory is no refusal: the plain way would need as much."""
    import torch

    try:
        return _find(name)(torch)(*given)
    except (AttributeError, RuntimeError) as fault:
        if isinstance(fault, torch.OutOfMemoryError) or is_out_of_memory(str(fault)):
            raise
        raise OperatorRefused(f"torch.{name}: {(str(fault).splitlines() or [type(fault).__name__])[0]}") from fault


def find_private(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Look up a private function of torch that says what torch is doing; `otherwise`: what does without it, which tell_lacking() tells."""
    import torch

    try:
        found: Callable[..., Any] = _find(name)(torch)
    except AttributeError:
        _lacking.append(f"torch.{name}")
        return otherwise
    return found


def tell_lacking() -> None:
    if _lacking:
        words = say(
            "processor.lacking",
            "This torch lacks {names}. Hearth's own runs do not need them; other programs' code that traces or transforms attention might.",
            names=tuple(_lacking),
        )
        give_up("lacking", words)


def multiplies_bfloat16() -> bool:
    """Tell whether the processor multiplies bfloat16 itself. torch's private functions for it differ by version; without them, no."""
    import torch

    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, name)()) for name in names if hasattr(torch.cpu, name))


def reorder_linear(weight: Tensor, lines: int) -> Tensor:
    """Return a weight in oneDNN's order for inputs of so many lines. Tensor.to_dense brings it back, unchanged."""
    reordered: Tensor = call_private("ops.mkldnn._reorder_linear_weight", weight, lines)
    return reordered


def multiply_reordered(given: Tensor, weight: Tensor) -> Tensor:
    made: Tensor = call_private("ops.mkldnn._linear_pointwise", given, weight, None, "none", [], "")
    return made


def reorder_convolution(weight: Tensor, how: tuple[Any, ...], size: torch.Size) -> Tensor:
    """Return a weight in oneDNN's order for inputs of this size. `how`: padding, stride, dilation, groups."""
    reordered: Tensor = call_private("_C._nn.mkldnn_reorder_conv2d_weight", call_private("Tensor.to_mkldnn", weight), *how, size)
    return reordered


def convolve_reordered(given: Tensor, weight: Tensor, bias: Tensor | None, how: tuple[Any, ...]) -> Tensor:
    made: Tensor = call_private("ops.mkldnn._convolution_pointwise", given, weight, bias, *how, "none", [], "")
    return made


@cache
def find_refusal(layer: Layer, dtype: torch.dtype) -> str:
    """Try a tiny layer, once: return why oneDNN does not keep such weights in its own order here, or computes wrongly with them; empty
    if it is right."""
    import torch

    weight = torch.arange(-128, 128).view(16, 16).to(dtype)
    given = torch.eye(16, dtype=dtype)
    try:
        if layer == "linear":
            made = multiply_reordered(given, reorder_linear(weight, len(given)))
        else:
            weight, given = weight[..., None, None], given[..., None, None]
            made = convolve_reordered(given, reorder_convolution(weight, _CONVOLUTION, given.shape), None, _CONVOLUTION)
    except OperatorRefused as fault:
        return str(fault)
    return "" if torch.equal(made, weight.transpose(0, 1)) else f"oneDNN's {layer} is wrong in {dtype}"


def keeps_order(layer: Layer, dtype: torch.dtype) -> bool:
    """Tell whether weights may be kept in oneDNN's order: not where torch has no oneDNN, it is refused, or was given up. A refusal is told."""
    import torch

    has_kernels: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if has_kernels and (words := find_refusal(layer, dtype)):
        give_up_order(layer, dtype, words)
    return has_kernels and not has_given_up_order(layer, dtype)


def give_up_order(layer: Layer, dtype: torch.dtype, words: str) -> None:
    """Keep such weights in their plain order from now on."""
    give_up(
        f"order/{layer}/{dtype}",
        say(
            "processor.plain-order",
            "Weights cannot be kept in the order that is quickest on this processor ({words}). They keep their plain order: the results "
            "are the same, but take longer.",
            words=words,
        ),
    )


def has_given_up_order(layer: Layer, dtype: torch.dtype) -> bool:
    return f"order/{layer}/{dtype}" in _given_up


def give_up(what: str, sentence: Sentence) -> None:
    """Remember that this was refused, and tell it once."""
    if what not in _given_up:
        _given_up.add(what)
        notices.tell(sentence)
