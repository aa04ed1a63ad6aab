"""How fused attention fails on pretended machines: error messages or corrupted results. Data; simulate.py applies
it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from app.compat.attention.dispatch import HALVES
from app.compat.machine.hardware import Hardware
from app.compat.planning.quirk import version
from app.compat.planning.quirk_table import QUIRKS

NOT_SIMULATED: Final = frozenset(
    {"mps-allocator", "mps-graph-26", "mps-graph-27", "mps-large-product", "mps-leak", "mps-threads", "windows-spill"}
)
"""A simulated machine's self-test says nothing about these: defects of memory, threads and whole systems, which it lacks, and a question
too large to simulate."""
_ROWS: Final = {row.id: row for row in QUIRKS}


class Aborted(RuntimeError):
    """Stands for a process killed by the driver; its text is what stderr would hold."""


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """Limits past which real machines fail. Tests lower them to avoid huge tensors."""

    ndarray_bytes: int = 1 << 32
    indexed_elements: int = 1 << 32
    bias_pairs: int = 1 << 32
    broadcast_elements: int = 1 << 24
    """From so many scores on a broadcast mask aborts; the report has 4096 queries and as many keys."""
    reduction: int = 32767
    softmax_keys: int = 3068
    decode_keys: int = 1024
    convolution_length: int = 65536
    product_bytes: int = 1 << 31
    buffer_bytes: int | None = None
    """No buffer is larger than this; None: than the machine's free memory."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a failure's condition may ask about the machine."""

    hardware: Hardware
    limits: DeviceLimits = DeviceLimits()
    repaired: frozenset[str] = frozenset()
    """The defect of these rows is repaired, or was not seen by the machine's own self-test."""
    seen: frozenset[str] = frozenset()
    """The machine's own self-test saw the defect of these rows, whatever the table says."""

    @property
    def mps(self) -> bool:
        return self.hardware.kind == "mps"

    @property
    def cuda(self) -> bool:
        return self.hardware.kind == "cuda"

    @property
    def torch(self) -> tuple[int, ...]:
        return version(self.hardware.torch)

    @property
    def buffer_bytes(self) -> int:
        return self.hardware.free_bytes if self.limits.buffer_bytes is None else self.limits.buffer_bytes

    def shows(self, row: str) -> bool:
        """Return whether the machine has a row's defect: the row applies, or it is a card, whose memory may be full."""
        return row not in self.repaired and (row in self.seen or (self.cuda if row == "memory" else _ROWS[row].applies(self.hardware)))


def rounds_softmax(facts: DeviceFacts, dtype: torch.dtype) -> bool:
    return dtype == torch.bfloat16 or (dtype == torch.float16 and facts.torch < (2, 10))


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """One call of torch's fused attention."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    dropout: float = 0.0
    causal: bool = False
    scale: float | None = None
    gqa: bool = False

    @property
    def queries(self) -> int:
        return self.query.shape[-2]

    @property
    def keys(self) -> int:
        return self.key.shape[-2]

    @property
    def dim(self) -> int:
        return self.query.shape[-1]

    @property
    def half(self) -> bool:
        return self.query.dtype in HALVES

    @property
    def grouped(self) -> bool:
        return self.gqa and self.query.dim() > 2 and self.query.shape[-3] != self.key.shape[-3]

    @property
    def elements(self) -> int:
        return math.prod(self.query.shape[:-1]) * self.keys

    @property
    def score_bytes(self) -> int:
        return self.elements * self.query.element_size()

    @property
    def broadcast_mask(self) -> bool:
        return self.mask is not None and self.mask.shape != (*self.query.shape[:-1], self.keys)

    @property
    def partly_broadcast_mask(self) -> bool:
        """Whether the mask differs between the members of a batch, but not between heads."""
        return self.mask is not None and self.mask.dim() == 4 and self.mask.shape[0] > 1 and self.mask.shape[1] == 1 < self.query.shape[1]

    @property
    def interleaved(self) -> bool:
        """Whether q, k and v are views of one fused tensor in a layout that fused kernels do not know, such as unequal
        numbers of heads: neither (3 h d) nor (h 3 d)."""
        every = (self.query, self.key, self.value)
        if self.query.dim() != 4 or len({each.untyped_storage().data_ptr() for each in every}) > 1:
            return False
        first, second, third = (each.storage_offset() for each in every)
        heads, step = self.query.shape[1], second - first
        layouts = {(step, self.dim, heads * self.dim * 3): heads * self.dim, (step, 3 * self.dim, heads * self.dim * 3): self.dim}
        even = third - second == step and len({each.stride() for each in every}) == 1
        return not (even and layouts.get((step, self.query.stride(1), self.query.stride(2))) == step)

    def run(self, torch_attention: Callable[..., Tensor]) -> Tensor:
        """Run on the CPU that simulates the device, with any kernel: the device's kernel was chosen before."""
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            return torch_attention(
                self.query,
                self.key,
                self.value,
                attn_mask=self.mask,
                dropout_p=self.dropout,
                is_causal=self.causal,
                scale=self.scale,
                enable_gqa=self.gqa,
            )


def kernel(call: DeviceCall, facts: DeviceFacts) -> str:
    """Return the kernel this machine would use, by its torch's rules; "" if no allowed kernel can."""
    if facts.mps:
        if call.dim != call.value.shape[-1]:
            return "graph"
        if call.queries <= 8:
            dims = (64, 96, 128, 256) if facts.torch >= (2, 13) else (64, 96, 128)
            return "vector" if facts.torch >= (2, 8) and call.queries <= call.keys and call.dim in dims else "graph"
        return "prefill" if facts.torch >= (2, 13) and call.dim in (32, 64, 72, 80, 96, 128, 256) else "graph"
    if not facts.cuda:
        return "cpu"
    modern = (facts.hardware.capability or (0, 0)) >= (8, 0)
    same = call.dim == call.value.shape[-1]
    ungrouped = not call.gqa or facts.torch >= (2, 14)
    plain = call.query.dtype in (torch.float32, torch.float16)
    can = {
        "flash": modern and call.half and call.mask is None and same,
        "efficient": (plain or (modern and call.half)) and ungrouped,
        "math": True,
        "cudnn": modern and call.half and ungrouped and same,
    }
    return next((name for name, allowed in _allowed().items() if allowed and can[name]), "")


def _allowed() -> dict[str, bool]:
    """Return the allowed kernels in torch's order on these cards."""
    cuda = torch.backends.cuda
    return {
        "flash": cuda.flash_sdp_enabled(),  # type: ignore[no-untyped-call]
        "efficient": cuda.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
        "math": cuda.math_sdp_enabled(),  # type: ignore[no-untyped-call]
        "cudnn": cuda.cudnn_sdp_enabled(),  # type: ignore[no-untyped-call]
    }


def _graph(call: DeviceCall, facts: DeviceFacts) -> bool:
    return kernel(call, facts) == "graph"


def _moved(call: DeviceCall) -> DeviceCall:
    """Simulate reading numbers from the wrong places."""
    return replace(call, query=call.query.roll(1, -1), key=call.key.roll(1, -2))


def _shifted_mask(call: DeviceCall) -> DeviceCall:
    """Simulate one member of a batch reading the mask of another."""
    assert call.mask is not None
    return replace(call, mask=call.mask.roll(1, 0))


def _leaking(call: DeviceCall) -> DeviceCall:
    visible = torch.ones(call.queries, call.keys, dtype=torch.bool, device=call.query.device).tril(3)
    return replace(call, causal=False, mask=visible)


def _wrong_width(result: Tensor, call: DeviceCall) -> Tensor:
    return F.pad(result.roll(1, -1), (0, max(0, call.dim - result.shape[-1])))[..., : call.dim]


def _blind(mask: Tensor) -> Tensor:
    """Return the rows that see no key."""
    return ~(mask if mask.dtype == torch.bool else mask != -math.inf).any(-1, keepdim=True)


def _blank_rows(result: Tensor, call: DeviceCall) -> Tensor:
    assert call.mask is not None
    return result.masked_fill(_blind(call.mask), math.nan)


def nan(result: Tensor, _: DeviceCall | None = None) -> Tensor:
    return torch.full_like(result, math.nan)


def garbage(result: Tensor, _: DeviceCall | None = None) -> Tensor:
    return torch.randn_like(result) * 3


def louder(result: Tensor, _: DeviceCall | None = None) -> Tensor:
    return result * 1.024


@dataclass(frozen=True, slots=True)
class DeviceFailure:
    """One quirk row as fused attention shows it: an error message, misread inputs or a corrupted result."""

    row: str
    when: Callable[[DeviceCall, DeviceFacts], bool]
    words: str = ""
    error: type[Exception] = RuntimeError
    misread: Callable[[DeviceCall], DeviceCall] | None = None
    spoil: Callable[[Tensor, DeviceCall], Tensor] | None = None


NO_KERNEL_IMAGE: Final = "CUDA error: no kernel image is available for execution on the device"
NO_FLOAT64: Final = "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead."
NO_BFLOAT16: Final = "MPS BFloat16 is only supported on MacOS 14 or newer"
NDARRAY: Final = "[MPSNDArray initWithDevice:descriptor:isTextureBacked:] Error: total bytes of NDArray > 2**32"
BUFFER: Final = "Invalid buffer size: {gib:.2f} GiB"
NO_GROUPS: Final = "error: 'mps.matmul' op: mps_matmul has incompatible dimensions\nLLVM ERROR: Failed to infer result type(s)."
NO_ZERO_STRIDE: Final = "failed assertion `buffer is not large enough. Must be 65536 bytes'"
PLACEHOLDER: Final = (
    "failed assertion `[MPSGraph runWithFeeds] Placeholder shape mismatches (expected 1 vs got tensorData with 8) at dimIdx = 1'"
)
NO_ENGINE: Final = "GET was unable to find an engine to execute this computation"
NO_KERNEL: Final = "No available kernel. Aborting execution."
FULL: Final = "CUDA out of memory. Tried to allocate {gib:.2f} GiB."

ATTENTION: Final[tuple[DeviceFailure, ...]] = (
    DeviceFailure("wheel-arch", lambda c, m: True, NO_KERNEL_IMAGE),
    DeviceFailure("mps-fp64", lambda c, m: c.query.dtype == torch.float64, NO_FLOAT64, TypeError),
    DeviceFailure("mps-bf16", lambda c, m: c.query.dtype == torch.bfloat16, NO_BFLOAT16, TypeError),
    DeviceFailure("mps-gqa-abort", lambda c, m: c.grouped, NO_GROUPS, Aborted),
    DeviceFailure(
        "mps-placeholder",
        lambda c, m: _graph(c, m) and c.broadcast_mask and c.elements >= m.limits.broadcast_elements,
        PLACEHOLDER,
        Aborted,
    ),
    DeviceFailure("mps-4gib", lambda c, m: _graph(c, m) and c.score_bytes > m.limits.ndarray_bytes, NDARRAY, Aborted),
    DeviceFailure("mps-buffer", lambda c, m: _graph(c, m) and c.score_bytes > m.buffer_bytes, BUFFER),
    DeviceFailure("cuda-flash", lambda c, m: not kernel(c, m), NO_KERNEL),
    DeviceFailure("memory", lambda c, m: kernel(c, m) == "math" and c.score_bytes > m.buffer_bytes, FULL, torch.OutOfMemoryError),
    DeviceFailure("mps-q-stride", lambda c, m: kernel(c, m) == "vector" and not c.query.is_contiguous(), misread=_moved),
    DeviceFailure(
        "mps-batch-stride",
        lambda c, m: kernel(c, m) == "vector" and c.query.shape[0] > 1 and not all(t.is_contiguous() for t in (c.query, c.key, c.value)),
        misread=_moved,
    ),
    DeviceFailure("fused-qkv-stride", lambda c, m: kernel(c, m) in ("flash", "efficient", "cudnn") and c.interleaved, misread=_moved),
    DeviceFailure("rocm-strided-v", lambda c, m: not c.value.is_contiguous(), misread=_moved),
    DeviceFailure("mps-causal-leak", lambda c, m: c.causal and c.half, misread=_leaking),
    DeviceFailure("mps-value-dim", lambda c, m: c.dim != c.value.shape[-1], spoil=_wrong_width),
    DeviceFailure("mps-decode-oob", lambda c, m: c.half and kernel(c, m) == "vector" and c.keys >= m.limits.decode_keys, spoil=garbage),
    DeviceFailure("mps-vector-mask", lambda c, m: kernel(c, m) == "vector" and c.partly_broadcast_mask, misread=_shifted_mask),
    DeviceFailure("mps-int32", lambda c, m: _graph(c, m) and c.elements >= m.limits.indexed_elements, spoil=garbage),
    DeviceFailure("mps-long-k", lambda c, m: _graph(c, m) and c.keys >= m.limits.reduction, spoil=garbage),
    DeviceFailure(
        "mps-half-softmax", lambda c, m: _graph(c, m) and rounds_softmax(m, c.query.dtype) and c.keys > m.limits.softmax_keys, spoil=louder
    ),
    DeviceFailure("mps-fp16-black", lambda c, m: _graph(c, m) and c.query.dtype == torch.float16 and c.queries > 8, spoil=nan),
    DeviceFailure(
        "bias-overflow",
        lambda c, m: kernel(c, m) == "efficient" and c.mask is not None and c.queries * c.keys > m.limits.bias_pairs,
        spoil=garbage,
    ),
    DeviceFailure(
        "masked-rows",
        lambda c, m: c.mask is not None and bool(_blind(c.mask).any()) and not (_graph(c, m) and m.torch >= (2, 9)),
        spoil=_blank_rows,
    ),
)
"""They stand in the order that a machine meets them: rejected calls, misread inputs, wrong results."""
