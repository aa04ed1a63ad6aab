"""Make torch fail as a pretended machine would, for tests.

The simulation is *below* the seam: enter `biting` first, `applied` second. CPU tensors stand for the device's. Fused
attention fails where Python calls it, in every thread. matmul, softmax and convolution fail where torch dispatches
them, in the thread that entered, so the seam's own arithmetic is affected too.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from app.compat.attention.dispatch import HALVES
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import read_given
from app.compat.selftest import failures
from app.compat.selftest.failures import ATTENTION, Aborted, DeviceCall, DeviceFacts, DeviceLimits

aten: Final = torch.ops.aten
_SEAM: Final = ("app.compat.attention.seam", "app.compat.attention.compose")
_PRODUCTS: Final = (aten.bmm, aten.baddbmm, aten.mm, aten.addmm)
_BATCHED: Final = (aten.bmm, aten.baddbmm)
_WITH_NUMBERS: Final = (aten.add, aten.sub, aten.mul, aten.div, aten.add_, aten.sub_, aten.mul_, aten.div_)
_MADE_OF_OTHERS: Final = (aten.linear, aten.matmul, aten.softmax, aten.conv1d, aten.conv2d, aten.conv_transpose1d, aten.conv_transpose2d)
"""torch dispatches each of these as one operation in inference mode."""
_FUSED: Final = ("scaled_dot_product", "_native_multi_head_attention", "_transformer_encoder_layer_fwd")


@dataclass(slots=True)
class Bites:
    """What happened during a simulation."""

    facts: DeviceFacts
    kill: bool = False
    rows: Counter[str] = field(default_factory=Counter)
    """It counts failures by row."""
    kernels: Counter[str] = field(default_factory=Counter)
    """The machine would have used these kernels: "math" and "graph" store all scores at once."""
    calls: int = 0
    escaped: int = 0
    """So many fused attention calls bypassed the seam."""
    inside: bool = False

    def attention(self, torch_attention: Callable[..., Tensor], call: DeviceCall) -> Tensor:
        self.calls += 1
        self.escaped += not _through_the_seam(sys._getframe(1))
        self.kernels[failures.kernel(call, self.facts)] += 1
        due = [each for each in ATTENTION if self.facts.shows(each.row) and each.when(call, self.facts)]
        as_asked = call
        for each in due:
            self.rows[each.row] += 1
            if each.words:
                self.cry(each.error, each.words.format(gib=call.score_bytes / (1 << 30)))
            if each.misread:
                call = each.misread(call)
        result = call.run(torch_attention)
        for each in due:
            if each.spoil:
                result = each.spoil(result, as_asked)
        return result

    def cry(self, error: type[Exception], words: str) -> NoReturn:
        if error is Aborted and self.kill:
            print(words, file=sys.stderr, flush=True)
            os.abort()
        raise error(words)

    def bites(self, row: str, here: bool) -> bool:
        if here and self.facts.shows(row):
            self.rows[row] += 1
            return True
        return False

    def below(self, packet: Any, run: Callable[[], Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Simulate one dispatched operation outside fused attention."""
        if any(name in str(packet) for name in _FUSED):
            self.escaped += 1
        if packet in _PRODUCTS:
            return self.product(packet, run, args, kwargs)
        if packet is aten._softmax:
            return self.softmax(run, args)
        if packet is aten.convolution:
            return self.convolution(run, args)
        if packet in _WITH_NUMBERS:
            return self.with_number(packet, run, args, kwargs)
        return run()

    def linear(self, rows: Tensor, bias: Tensor | None, run: Callable[[], Tensor]) -> Tensor:
        if self.bites("mps-stride-zero", any(not stride and size > 1 for stride, size in zip(rows.stride(), rows.shape, strict=True))):
            self.cry(Aborted, failures.NO_ZERO_STRIDE)
        if not self.bites("mps-m5-linear", rows.dtype in HALVES and rows.dim() > 2 and bias is None):
            return run()
        self.inside = True  # the products below count as this one
        try:
            return failures.garbage(run())
        finally:
            self.inside = False

    def with_number(self, packet: Any, run: Callable[[], Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Simulate arithmetic with one number of a list on the processor. A list itself is the processor's too: only
        tensors of more dimensions stand for the device's."""
        tensors = [each for each in args if isinstance(each, Tensor)]
        taken = any(not each.dim() and each.storage_offset() for each in tensors) and any(each.dim() > 1 for each in tensors)
        if not self.bites("mps-scalar-view", taken):
            return run()
        firsts = (each.as_strided((), (), 0) if isinstance(each, Tensor) and not each.dim() else each for each in args)
        return packet(*firsts, **kwargs)

    def product(self, packet: Any, run: Callable[[], Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        left, right = (args[1], args[2]) if packet in (aten.baddbmm, aten.addmm) else (args[0], args[1])
        limits, batched = self.facts.limits, packet in _BATCHED
        if self.bites("wheel-arch", True):
            self.cry(RuntimeError, failures.NO_KERNEL_IMAGE)
        if self.bites("mps-fp64", batched and left.dtype == torch.float64):
            self.cry(TypeError, failures.NO_FLOAT64)
        if self.bites("mps-bf16", left.dtype == torch.bfloat16):
            self.cry(TypeError, failures.NO_BFLOAT16)
        elements = math.prod(left.shape[:-1]) * right.shape[-1]
        if self.bites("mps-4gib", elements * left.element_size() > limits.ndarray_bytes):
            self.cry(Aborted, failures.NDARRAY)
        if self.bites("mps-buffer", elements * left.element_size() > self.facts.buffer_bytes):
            self.cry(RuntimeError, failures.BUFFER.format(gib=elements * left.element_size() / (1 << 30)))
        out: Tensor | None = kwargs.get("out")
        before = out.clone() if out is not None and out.storage_offset() else None
        result = run()
        if before is not None and self.bites("mps-out-slice", True):
            return result.copy_(before)
        if self.bites("mps-int32", elements >= limits.indexed_elements):
            return _write(result, failures.garbage)
        rows, summed, columns = left.shape[-2], left.shape[-1], right.shape[-1]
        if self.bites("mps-large-product", (rows + 2 * summed) * columns * left.element_size() > limits.product_bytes):
            return _write(result, failures.nan)
        if self.bites("mps-long-k", left.shape[-1] >= limits.reduction and (batched or self.facts.torch < (2, 14))):
            return _write(result, failures.garbage)
        # 0 * NaN is NaN there: nonzero content stands for the arbitrary content of torch.empty.
        dirty = packet is aten.baddbmm and kwargs.get("beta", 1) == 0 and bool(args[0].ne(0).any())
        if self.bites("mps-baddbmm", dirty):
            return _write(result, failures.nan)
        return result

    def softmax(self, run: Callable[[], Any], args: tuple[Any, ...]) -> Any:
        scores, result = args[0], run()
        if scores.dim() > 2 and self.bites("mps-fp16-black", scores.dtype == torch.float16 and scores.shape[-2] > 8):
            return _write(result, failures.nan)
        long = scores.dim() > 2 and failures.rounds_softmax(self.facts, scores.dtype) and scores.shape[-1] > self.facts.limits.softmax_keys
        return _write(result, failures.louder) if self.bites("mps-half-softmax", long) else result

    def convolution(self, run: Callable[[], Any], args: tuple[Any, ...]) -> Any:
        picture, weight, result = args[0], args[1], run()
        if self.bites("cudnn-old-card", torch.backends.cudnn.enabled):
            self.cry(RuntimeError, failures.NO_ENGINE)
        if self.bites("conv-65536", result.dim() == 3 and result.shape[-1] > self.facts.limits.convolution_length):
            self.cry(NotImplementedError, "Output channels > 65536 not supported at the MPS device.")
        if self.bites("mps-conv-weight", _is_part(weight)):
            return _write(result, failures.garbage)
        if self.bites("mps-conv-chunk", picture.shape[0] > 1 and _is_part(picture)):
            result[1:] = failures.garbage(result[1:])
            return result
        return _write(result, failures.nan) if self.bites("gtx16-fp16", result.dtype == torch.float16) else result


def _write(result: Tensor, spoil: Callable[[Tensor], Tensor]) -> Tensor:
    """Write into the same memory: an `out=` tensor is the caller's own."""
    return result.copy_(spoil(result))


def _is_part(tensor: Tensor) -> bool:
    """Return whether a tensor is part of a larger one, with gaps; another order of dimensions is none."""
    # Sorted, each stride of a whole tensor is the size of all that lies below it.
    order = sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)
    return any(stride != math.prod(size for _, size in order[:at]) for at, (stride, _) in enumerate(order))


def _through_the_seam(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") in _SEAM:
            return True
        frame = frame.f_back
    return False


class _Below(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, bites: Bites) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bites = bites

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if self.bites.inside:
            return func(*args, **given)
        if func.overloadpacket in _MADE_OF_OTHERS:
            with self:
                parts = func.decompose(*args, **given)
            if parts is not NotImplemented:
                return parts
        return self.bites.below(func.overloadpacket, lambda: func(*args, **given), args, given)


@contextmanager
def biting(
    name: str | Hardware, *, repaired: Iterable[str] = (), limits: DeviceLimits | None = None, kill: bool = False
) -> Iterator[Bites]:
    """Simulate a machine: with the defects that the table expects there, or, for one from a report's file, that its self-test saw.
    `repaired`: rows whose defect is gone. `kill`: abort the process instead of raising Aborted."""
    hardware = machine(name) if isinstance(name, str) else name
    seen = {subject.name: each.passed for subject, each in read_given(hardware).items() if subject.kind == "row"}
    absent, present = (frozenset(row for row, passed in seen.items() if passed is right) for right in (True, False))
    bites = Bites(DeviceFacts(hardware, limits or DeviceLimits(), absent.union(repaired), present), kill)
    torch_attention, torch_linear = F.scaled_dot_product_attention, F.linear

    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        bites.inside = True
        try:
            return bites.attention(torch_attention, DeviceCall(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa))
        finally:
            bites.inside = False

    def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return bites.linear(input, bias, lambda: torch_linear(input, weight, bias))

    F.scaled_dot_product_attention, F.linear = attention, linear
    try:
        with _Below(bites):
            yield bites
    finally:
        F.scaled_dot_product_attention, F.linear = torch_attention, torch_linear
