"""Linear layers whose weights are packed in 8 or 4 bits and multiplied by torch's own kernels, without another library.

A row of speech reads every weight once, so it takes as long as the weights are large. A processor's kernel for 8 bits is quick with few lines; for
many, those weights are widened block by block; so are all, where torch lacks a kernel or refuses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from app.base.sentence import say
from app.compat.kernels.few_lines import choose_way
from app.compat.machine.processor import OperatorRefused, call_private, give_up
from app.compat.planning.quantisation_field import PACKED_KINDS
from app.compat.planning.types import Product, Quantised

Bits = Literal[8, 4]
MakeLinear = Callable[[Tensor, Tensor | None], torch.nn.Module]
"""It makes a layer of a weight and a bias."""
BITS: Final[dict[Quantised, Bits]] = {"int8": 8, "int4": 4}
GROUP: Final = 32
"""So many numbers of a row share a scale and a zero where weights have 4 bits; with 8 a whole row shares a scale."""
FOLD: Final = 16
"""torch packs 4-bit weights for processors in so many rows."""
METAL_FOLD: Final = 32
"""torch's kernel for Metal takes weights whose sides are multiples of this."""
FEW_LINES: Final = 32
"""A processor's kernel for 8 bits multiplies up to so many lines of an input sooner than widened weights are."""
_MOST_LINES: Final = {"cpu": FEW_LINES, "cuda": 0}
"""torch's kernel multiplies no more lines. On cards it takes longer than widening does."""
_BLOCK: Final = 1 << 20
"""So many numbers are taken at a time: 4 MiB in float32, which a processor's caches hold."""
_SLAB: Final = 64
"""torch's orders of 4-bit numbers mix at most so many rows."""


class Int8Linear(torch.nn.Module):
    """A linear layer: whole numbers of 8 bits, and a scale for each row of weights."""

    def __init__(self, weight: Tensor, device: str, lines: torch.dtype, product: Product = "torch", bias: Tensor | None = None) -> None:
        super().__init__()
        self.bias = None if bias is None else torch.nn.Buffer(bias)
        self._lines, self._most_lines = lines, _MOST_LINES.get(device, sys.maxsize)
        self._few = choose_way(product, "int8")
        numbers, scales = round_to_8_bits(weight, scales_dtype(device, lines))
        self.numbers = torch.nn.Buffer(numbers.to(device))
        self.scales = torch.nn.Buffer(scales.to(device))

    def forward(self, given: Tensor) -> Tensor:
        few = self._few(given, self.numbers, self.scales)
        if few is not None:
            return _add(few, self.bias)
        lines = given.reshape(-1, given.shape[-1]).to(self._lines).contiguous()
        made: Tensor | None = None
        if len(lines) <= self._most_lines:
            try:
                made = call_private("ops.aten._weight_int8pack_mm", lines, self.numbers, self.scales)
            except OperatorRefused as fault:
                _tell_refused(8, fault)
                self._most_lines = 0
        if made is None:
            # Sums before the scale exceed float16.
            dtype = torch.float32 if given.dtype == torch.float16 else given.dtype
            wide = torch.empty(max(1, _BLOCK // lines.shape[1]), lines.shape[1], dtype=dtype, device=lines.device)
            blocks, lines = torch.split(self.numbers, len(wide)), lines.to(dtype)
            made = torch.cat([F.linear(lines, wide[: len(block)].copy_(block)) for block in blocks], -1).mul_(self.scales)
        return _add(made.to(given.dtype), self.bias).view(*given.shape[:-1], -1)


class Int4Linear(torch.nn.Module):
    """A linear layer: whole numbers of 4 bits; each group of a row has its scale and its zero."""

    def __init__(self, weight: Tensor, device: str, lines: torch.dtype, product: Product = "torch", bias: Tensor | None = None) -> None:
        super().__init__()
        self.bias = None if bias is None else torch.nn.Buffer(bias)
        self._lines, self._width, self._few = lines, len(weight), choose_way(product, "int4")
        self._multiply = f"ops.aten._weight_int4pack_mm{'_for_cpu' if device == 'cpu' else ''}"
        self._in_pairs = product == "kernel" or device not in PACKED_KINDS
        """True: the numbers lie in pairs, row by row, and not as torch's kernel reads them."""
        numbers, scales = round_to_4_bits(weight, scales_dtype(device, lines))
        self.scales = torch.nn.Buffer(scales.to(device))
        if not self._in_pairs:
            try:
                self.numbers = torch.nn.Buffer(_pack(numbers, device))
                return
            except OperatorRefused as fault:
                _tell_refused(4, fault)
        self.numbers, self._in_pairs = torch.nn.Buffer(pair_up(numbers).to(device)), True

    def forward(self, given: Tensor) -> Tensor:
        few = self._few(given, self.numbers, self.scales) if self._in_pairs else None
        if few is not None:
            return _add(few, self.bias)
        lines = given.reshape(-1, given.shape[-1]).to(self._lines).contiguous()
        made: Tensor | None = None
        if not self._in_pairs:
            try:
                made = call_private(self._multiply, lines, self.numbers, GROUP, self.scales)
            except OperatorRefused as fault:
                _tell_refused(4, fault)
                self.numbers, self._in_pairs = torch.nn.Buffer(pair_up(_unpack(self.numbers, self._width, lines.shape[1]))), True
        if made is None:
            rows = max(1, _BLOCK // lines.shape[1])
            blocks = zip(torch.split(self.numbers, rows), torch.split(self.scales, rows, 1), strict=True)
            made = torch.cat([F.linear(lines.float(), _widen(*block)) for block in blocks], -1)
        return _add(made.to(given.dtype), self.bias).view(*given.shape[:-1], self._width)


def _add(made: Tensor, bias: Tensor | None) -> Tensor:
    return made if bias is None else made.add_(bias)


def _tell_refused(bits: Bits, fault: OperatorRefused) -> None:
    give_up(
        f"packed/{bits}",
        say(
            "processor.widened",
            "torch does not multiply weights of {bits} bits here ({words}). They are widened for each product instead: the results are the "
            "same, but take much longer. Unquantised weights are quicker, if they fit.",
            bits=bits,
            words=str(fault),
        ),
    )


def lines_dtype(device: str, compute: torch.dtype) -> torch.dtype:
    """Return the dtype in which the kernels take their input: a processor's are quick in bfloat16 alone."""
    return torch.bfloat16 if device == "cpu" else compute


def scales_dtype(device: str, lines: torch.dtype) -> torch.dtype:
    """Return the dtype of scales: a card that computes in float32 reads them in float16, as the kernel does."""
    return torch.float16 if device == "cuda" and lines == torch.float32 else lines


def pack_linear(
    weight: Tensor, bits: Bits, device: str, compute: torch.dtype, product: Product = "torch", bias: Tensor | None = None
) -> torch.nn.Module:
    """Return a layer that multiplies this weight, packed; with 8 bits, or whole on a graphics device, where the kernel does not take its
    shape. A bias stays whole."""
    lines, (rows, columns) = lines_dtype(device, compute), weight.shape
    bias = None if bias is None else bias.to(device, compute)
    if device != "cpu" and (rows % METAL_FOLD or columns % METAL_FOLD):
        return make_linear(weight.to(device, compute), bias)
    if bits == 4 and rows % FOLD == 0 and columns % GROUP == 0:
        return Int4Linear(weight, device, lines, product, bias)
    return Int8Linear(weight, device, lines, product, bias)


class FewLinesLinear(torch.nn.Module):
    """A linear layer without bias, whose weight is in half precision, whatever its input is."""

    def __init__(self, weight: Tensor, product: Product) -> None:
        super().__init__()
        self._few = choose_way(product, "half")
        self.weight = torch.nn.Buffer(weight)  # no parameter, which would get the dtype of the others

    def forward(self, given: Tensor) -> Tensor:
        few = self._few(given, self.weight, None)
        return F.linear(given.to(self.weight.dtype), self.weight).to(given.dtype) if few is None else few


def make_linear(weight: Tensor, bias: Tensor | None = None) -> torch.nn.Linear:
    """Return a plain layer that holds this weight and bias themselves."""
    with torch.device("meta"):  # its own weight would be drawn at random, for nothing
        linear = torch.nn.Linear(weight.shape[1], len(weight), bias=False)
    linear.weight = torch.nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias, requires_grad=False)
    return linear


def join_linears(linears: Sequence[torch.nn.Linear], make: MakeLinear) -> torch.nn.Module:
    """Return one layer in place of several that read the same numbers, all with a bias or none; it gives their results side by side."""
    bias = None if linears[0].bias is None else torch.cat([each.bias.detach() for each in linears])
    return make(torch.cat([each.weight.detach() for each in linears]), bias)


def replace_linears(module: torch.nn.Module, make: MakeLinear) -> None:
    """Put a layer that is made of its weight and bias in place of each plain one inside a module."""
    for name in [name for name, each in module.named_modules() if isinstance(each, torch.nn.Linear)]:
        linear: Any = module.get_submodule(name)
        module.set_submodule(name, make(linear.weight.detach(), None if linear.bias is None else linear.bias.detach()))


def round_to_8_bits(weight: Tensor, stored: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return whole numbers and the scale of each row, such that their product is nearest to the weight."""
    numbers, scales = torch.empty_like(weight, dtype=torch.int8), weight.new_empty(len(weight), dtype=stored)
    for each, made, scale in _blocks(weight, numbers, scales):
        # Rounded before it divides: otherwise all numbers of a row would be off the same way.
        scale.copy_(each.abs().amax(1).div_(127).clamp_min_(torch.finfo(stored).tiny))
        made.copy_(each.div_(scale.float()[:, None]).round_().clamp_(-127, 127))
    return numbers, scales


def round_to_4_bits(weight: Tensor, stored: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return whole numbers from 0 to 15, and (groups, rows, 2): a scale, and what the number 8 stands for."""
    numbers, groups = torch.empty_like(weight, dtype=torch.int32), weight.shape[1] // GROUP
    scales = weight.new_empty(len(weight), groups, 2, dtype=stored)
    for each, made, scale in _blocks(weight, numbers, scales):
        grouped = each.view(len(each), groups, GROUP)
        least, most = torch.aminmax(grouped, dim=-1)
        scale[..., 0] = most.sub_(least).div_(15).clamp_min_(torch.finfo(stored).tiny)
        scale[..., 1] = least.add_(scale[..., 0].float(), alpha=8)
        step, eight = scale.float().unbind(-1)
        made.copy_(grouped.sub_(eight[..., None]).div_(step[..., None]).add_(8).round_().clamp_(0, 15).view(each.shape))
    return numbers, scales.transpose(0, 1).contiguous()


def _blocks(weight: Tensor, *beside: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield rows of the weight in float32, few enough for a processor's caches, and the same rows of what stands beside it."""
    rows = max(1, _BLOCK // weight.shape[1])
    for block, *others in zip(*(torch.split(each, rows) for each in (weight, *beside)), strict=True):
        yield block.to(torch.float32, copy=True), *others


def _pack(numbers: Tensor, device: str) -> Tensor:
    if device == "cpu":
        packed: Tensor = call_private("ops.aten._convert_weight_to_int4pack_for_cpu", numbers, 1)
        return packed
    packed = call_private("ops.aten._convert_weight_to_int4pack", pair_up(numbers).to(device), 2)
    return packed


def pair_up(numbers: Tensor) -> Tensor:
    """Put two numbers into each byte, the earlier one into its upper half, as torch takes them for Metal."""
    small = numbers.to(torch.uint8)
    return small[:, ::2] << 4 | small[:, 1::2]


def _widen(pairs: Tensor, scales: Tensor) -> Tensor:
    """Return the weights that rows of pairs stand for."""
    step, eight = scales.float().transpose(0, 1).unsqueeze(-1).unbind(-2)
    numbers = torch.stack((pairs >> 4, pairs & 15), -1).view(len(pairs), -1, GROUP)
    return ((numbers.float() - 8) * step + eight).flatten(1)


def _unpack(packed: Tensor, rows: int, columns: int) -> Tensor:
    """Return packed numbers row by row. torch's order is the processor's own, within _SLAB rows: it is found by packing their places."""
    numbers, halves = torch.empty(rows * columns, dtype=torch.uint8, device=packed.device), _split_bytes(packed)
    for slab, its in zip(torch.split(numbers, _SLAB * columns), torch.split(halves, _SLAB * columns), strict=True):
        slab[_find_places(len(slab), columns, packed.device.type)] = its
    return numbers.view(rows, columns)


@lru_cache(1)
def _find_places(count: int, columns: int, device: str) -> Tensor:
    """Return where each number of packed rows came from: a digit of four bits at a time."""
    places = torch.arange(count).view(-1, columns)
    digits = range(0, count.bit_length(), 4)
    return sum(_split_bytes(_pack((places >> each & 15).int(), device)).long() << each for each in digits)  # type: ignore[return-value]


def _split_bytes(packed: Tensor) -> Tensor:
    small = packed.view(torch.uint8).flatten()
    return torch.stack((small & 15, small >> 4), -1).flatten()
