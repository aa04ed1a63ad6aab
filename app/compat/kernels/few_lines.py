"""Multiply few lines by a weight as a plan says. Whatever a way does not take, or refuses, is left to torch."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import cache, partial
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from app.base.sentence import say
from app.compat.kernels import cuda, metal
from app.compat.kernels.source import GROUP, MOST_LINES, STEP, Bits, Numbers, write_source
from app.compat.machine.fault_words import is_out_of_memory
from app.compat.machine.hardware import Hardware
from app.compat.machine.processor import give_up
from app.compat.planning.product_field import Weights, list_ways
from app.compat.planning.types import Dtype, Product

BITS: Final[dict[Weights, Bits]] = {"half": 16, "int8": 8, "int4": 4}
_NUMBERS: Final = {
    (getattr(torch, each.lines), getattr(torch, each.halves)): each
    for each in (Numbers("float32", "float16"), Numbers("float16", "float16"), Numbers("bfloat16", "bfloat16"))
}
_ALIGNED_BYTES: Final = 16
"""A thread reads so many bytes at once, from an address that is a multiple of them."""

Multiply = Callable[[Tensor, Tensor, Tensor | None], Tensor | None]
"""It multiplies lines (..., columns) by a weight (rows, columns), which may be packed, with its scales; None: torch has to."""


class KernelRefused(RuntimeError):
    """A kernel cannot be compiled here."""


def candidates(hardware: Hardware, dtype: Dtype, weights: Weights, columns: int) -> tuple[Product, ...]:
    """Return the ways that may be tried on a machine with weights of so many columns, beside torch's own."""
    return tuple(each for each in list_ways(hardware, dtype, weights) if each != "kernel" or _fits(columns, BITS[weights]))


def choose_way(product: Product, weights: Weights) -> Multiply:
    ways: dict[Product, Multiply] = {"torch": _leave, "lines": _multiply_by_line, "kernel": partial(_multiply_or_give_up, BITS[weights])}
    return ways[product]


def multiply(bits: Bits, lines: Tensor, weight: Tensor, scales: Tensor | None) -> Tensor | None:
    """Multiply by the kernel. Raise KernelRefused if it cannot be compiled; None: it does not take this."""
    halves = weight if scales is None else scales
    columns, count = lines.shape[-1], lines.numel() // lines.shape[-1]
    numbers = _NUMBERS.get((lines.dtype, halves.dtype))
    if numbers is None or not 1 <= count <= MOST_LINES or not _fits(columns, bits):
        return None
    given = lines.reshape(count, columns).contiguous()
    if not all(each.is_contiguous() and _is_aligned(each) for each in (given, weight, halves)):
        return None
    launch = find_kernel(lines.device.type, numbers, count, bits)
    made = torch.empty((*lines.shape[:-1], len(weight)), dtype=lines.dtype, device=lines.device)
    launch(given, weight, halves, made, len(weight), columns)
    return made


def find_kernel(device: str, numbers: Numbers, lines: int, bits: Bits) -> Callable[..., None]:
    found = _compile(device, numbers, lines, bits)
    if isinstance(found, KernelRefused):
        raise found
    return found


@cache
def _compile(device: str, numbers: Numbers, lines: int, bits: Bits) -> Callable[..., None] | KernelRefused:
    try:
        if device == "cuda":
            return cuda.compile_kernel(write_source("cuda", numbers, lines, bits), "multiply")
        if device == "mps":
            return metal.compile_kernel(write_source("metal", numbers, lines, bits), "multiply")
    except (AttributeError, OSError, RuntimeError, SyntaxError) as fault:
        if is_out_of_memory(str(fault)):
            raise
        return KernelRefused(f"{type(fault).__name__}: {fault}")
    return KernelRefused(f"no kernel is written for {device}")


def _fits(columns: int, bits: Bits) -> bool:
    return columns % (GROUP if bits == 4 else STEP) == 0


def _is_aligned(tensor: Tensor) -> bool:
    """Tell whether it begins at such an address; every allocation does."""
    return tensor.storage_offset() * tensor.element_size() % _ALIGNED_BYTES == 0


def _leave(lines: Tensor, weight: Tensor, scales: Tensor | None) -> None:
    return None


def _multiply_by_line(lines: Tensor, weight: Tensor, scales: Tensor | None) -> Tensor | None:
    count = lines.numel() // lines.shape[-1]
    if not 1 < count <= MOST_LINES or lines.dtype != weight.dtype:
        return None
    made = torch.cat([F.linear(each, weight) for each in lines.reshape(count, 1, -1)])
    return made.view(*lines.shape[:-1], -1)


def _multiply_or_give_up(bits: Bits, lines: Tensor, weight: Tensor, scales: Tensor | None) -> Tensor | None:
    try:
        return multiply(bits, lines, weight, scales)
    except KernelRefused as fault:
        traceback.print_exc()
        words = say(
            "product.refused",
            "Hearth's own kernel for rows of speech cannot be compiled here any more ({words}). torch multiplies instead: the results are the same, "
            "but take longer.",
            words=(str(fault).splitlines() or [""])[0],
        )
        give_up("product/kernel", words)
        return None
