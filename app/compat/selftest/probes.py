"""The self-test's questions: attention that shows each defect, and attention that each option must compute
correctly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.attention_fields import KERNELS
from app.compat.planning.decide import decide
from app.compat.planning.precision_fields import DTYPES
from app.compat.planning.quirk import Quirk
from app.compat.planning.types import AUTO, Choice, Dtype, Kernel, Need, Plan
from app.compat.selftest import reference as shape
from app.compat.selftest.reference import CaseShape, Made, error, make
from app.sentence import Trouble

TOLERANCE: Final[dict[Dtype, float]] = {"float64": 1e-10, "float32": 1e-3, "float16": 5e-3, "bfloat16": 2e-2}
"""Ten times the rounding error seen on a CPU; float32 leaves room for cards that multiply in TF32."""

HALVES: Final[tuple[Dtype, ...]] = ("float16", "bfloat16")
Measured = tuple[float, float]
"""The largest error, and seconds."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to the machine, answered by a verdict on `subject`."""

    subject: Subject
    dtype: Dtype
    look: Callable[[str], Measured]
    """Runs it on a device."""


# torch unmodified: does a defect occur.


def bare(made: Made) -> Tensor:
    return F.scaled_dot_product_attention(made.query, made.key, made.value, **made.options())


def by_hand(made: Made) -> Tensor:
    """Compute scores, softmax and sum in the inputs' dtype."""
    scores = (made.query @ made.key.transpose(-1, -2)) * made.shape.dim**-0.5
    return torch.softmax(scores, -1) @ made.value


def flash(made: Made) -> Tensor:
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return bare(made)


def mixed(made: Made) -> Tensor:
    return F.scaled_dot_product_attention(made.query.float(), made.key, made.value)


def mixed_mask(made: Made) -> Tensor:
    assert made.mask is not None
    return F.scaled_dot_product_attention(made.query, made.key, made.value, made.mask.to(torch.float16), scale=1.0)


def silent_groups(made: Made) -> Tensor:
    return F.scaled_dot_product_attention(made.query, made.key, made.value)


def run(shapes: tuple[CaseShape, ...], dtype: Dtype, device: str, ways: tuple[Callable[[Made], Tensor], ...]) -> Measured:
    worst, elapsed_s = 0.0, 0.0
    for each in shapes:
        if each.loud > 1 and dtype == "bfloat16":
            continue  # eight bits cannot hold such scores, in any implementation; the range is float32's
        made = make(each, dtype, device)
        for way in ways:
            began_s = time.perf_counter()
            result = way(made)
            worst = max(worst, error(result, made.right, each.every))  # reading the result waits for the device
            elapsed_s += time.perf_counter() - began_s
    return worst, elapsed_s


def arithmetic(dtype: Dtype, device: str) -> Measured:
    """Test a linear layer and a convolution, which models use besides attention."""
    made: torch.dtype = getattr(torch, dtype)
    random = torch.Generator().manual_seed(0)
    rows, weight = (torch.randn(64, 256, generator=random).to(made) for _ in range(2))
    picture, kernel = (torch.randn(1, 16, 32, 32, generator=random).to(made), torch.randn(16, 16, 3, 3, generator=random).to(made))
    began_s = time.perf_counter()
    found = F.linear(rows.to(device), weight.to(device)), F.conv2d(picture.to(device), kernel.to(device))
    right = (rows.double().numpy() @ weight.double().numpy().T, _convolved(picture.double().numpy(), kernel.double().numpy()))
    worst = max(error(result, expected) for result, expected in zip(found, right, strict=True))
    return worst, time.perf_counter() - began_s


def _convolved(picture: shape.Array, kernel: shape.Array) -> shape.Array:
    windows = np.lib.stride_tricks.sliding_window_view(picture, kernel.shape[-2:], axis=(-2, -1))
    result: shape.Array = np.einsum("bchwij,ocij->bohw", windows, kernel)
    return result


def long_sound(dtype: Dtype, device: str) -> Measured:
    sound = torch.linspace(-1, 1, 66_000).reshape(1, 1, -1)
    kernel = torch.tensor([[[0.5, 1.0, -0.25]]])
    began_s = time.perf_counter()
    result = F.conv1d(sound.to(device), kernel.to(device))
    right = np.correlate(sound.double().numpy()[0, 0], kernel.double().numpy()[0, 0])[None, None]
    return error(result, right), time.perf_counter() - began_s


def ignored_addend(dtype: Dtype, device: str) -> Measured:
    """Test that with beta 0 the addend's content is ignored."""
    made = make(shape.NARROW, dtype, device)
    query, key = made.query.flatten(0, 1), made.key.flatten(0, 1)
    began_s = time.perf_counter()
    dirt = torch.full((query.shape[0], query.shape[1], key.shape[1]), math.nan, dtype=query.dtype, device=device)
    result = torch.baddbmm(dirt, query, key.transpose(-1, -2), beta=0)
    right = query.double().cpu().numpy() @ key.double().cpu().numpy().swapaxes(-1, -2)
    return error(result, right), time.perf_counter() - began_s


def attention(*shapes: CaseShape, ways: tuple[Callable[[Made], Tensor], ...] = (bare,)) -> Callable[[Dtype, str], Measured]:
    return lambda dtype, device: run(shapes, dtype, device, ways)


def everything(dtype: Dtype, device: str) -> Measured:
    first, second = arithmetic(dtype, device), run((shape.SD15_TEXT, shape.DIA_TEXT), dtype, device, (bare,))
    return max(first[0], second[0]), first[1] + second[1]


Shown = tuple[tuple[Dtype, ...], Callable[[Dtype, str], Measured]]
SHOWN_BY: Final[dict[str, Shown]] = {
    "mps-gqa-abort": (("float32", "float16"), attention(shape.DIA_PROMPT, shape.DIA_STEP)),
    "mps-decode-oob": (HALVES, attention(shape.DIA_LATE_STEP, ways=(bare, bare, bare))),  # intermittent
    "mps-q-stride": (("float32", "float16"), attention(shape.PERMUTED_STEP)),
    "mps-batch-stride": (("float32", "float16"), attention(shape.PERMUTED_STEP, shape.FUSED_STEP)),
    "mps-causal-leak": (("bfloat16",), attention(shape.CLIP)),  # float16 may also give black
    "mps-value-dim": (("float32",), attention(shape.NARROW, shape.WIDE)),
    "mps-placeholder": (("float32", "float16"), attention(shape.WIDE_MASK)),
    "mps-long-k": (("float32",), attention(shape.LONGEST, ways=(bare, by_hand))),
    "mps-half-softmax": (HALVES, attention(shape.LONG, ways=(bare, by_hand))),
    "mps-fp16-black": (("float16",), attention(shape.SD15_LOUD, shape.SD15, ways=(bare,))),
    "masked-rows": (("float32", "float16"), attention(shape.BLIND)),
    "mps-stride-zero": (("float32",), attention(shape.EXPANDED)),
    "mps-baddbmm": (("float32",), ignored_addend),
    "mps-bf16": (("bfloat16",), everything),
    "mps-fp64": (("float64",), attention(shape.CLIP)),
    "conv-65536": (("float32",), long_sound),
    "cuda-flash": (("float16",), attention(shape.SDXL, ways=(flash,))),
    "gtx16-fp16": (("float16",), everything),
    "fused-qkv-stride": (("float32", "float16"), attention(shape.FUSED)),
    "rocm-strided-v": (("float32", "float16"), attention(shape.SDXL)),
    "sdpa-dtype": (("float16",), attention(shape.VAE, ways=(mixed,))),
    "sdpa-mask-dtype": (("float32",), attention(shape.T5, ways=(mixed_mask,))),
    "sdpa-heads": (("float32",), attention(shape.DIA_STEP, ways=(silent_groups,))),
}
"""Missing rows need more memory or time than a self-test may take (4 GiB of scores, 2^32 of them), or concern speed,
loading or installing; they are assumed to apply."""


def rows(quirks: tuple[Quirk, ...]) -> Iterator[Probe]:
    for quirk in quirks:
        if quirk.id in SHOWN_BY:
            dtypes, look = SHOWN_BY[quirk.id]
            yield from (Probe(Subject.row(quirk.id), dtype, _at(look, dtype)) for dtype in dtypes)


def _at(look: Callable[[Dtype, str], Measured], dtype: Dtype) -> Callable[[str], Measured]:
    return lambda device: look(dtype, device)


# Hearth's seam with every remedy on, testing one option of a plan.


def careful(plan: Plan) -> Plan:
    """Return the plan with every remedy on and no fused torch kernel."""
    return replace(
        plan, score_dtype="float32", gqa="folded", chunk_q=AUTO, chunk_k=4096, budget_bytes=256 << 20, contiguous=True,
        explicit_mask=True, expand_mask=True, pad_value=True, zero_masked_rows=True, kernels=(),
    )  # fmt: skip


ODD: Final = (shape.FUSED, shape.PERMUTED_STEP, shape.EXPANDED, shape.NARROW, shape.WIDE, shape.BLIND)
ALL: Final = (*shape.STEPS, *shape.PICTURES, *shape.TEXTS, *ODD)
FUSABLE: Final = (*shape.STEPS, *shape.PICTURES, *shape.TEXTS)

Change = tuple[str, dict[str, Any], tuple[CaseShape, ...]]
OPTIONS: Final[tuple[Change, ...]] = (
    ("kernels/own", {}, (*ALL, shape.LONG, shape.SD15_LOUD)),
    ("gqa/native", {"gqa": "native", "kernels": None}, (*shape.STEPS, shape.DIA_PROMPT)),
    ("gqa/folded", {"gqa": "folded", "kernels": None}, (*shape.STEPS, shape.DIA_PROMPT)),
    ("gqa/expanded", {"gqa": "expanded", "kernels": None}, (shape.DIA_STEP, shape.DIA_PROMPT)),
    ("score_dtype/kernel", {"score_dtype": None, "kernels": None}, (*FUSABLE, shape.LONG, shape.SD15_LOUD)),
    ("score_dtype/float32", {}, (shape.SD15, shape.LONG, shape.SD15_LOUD)),
    ("contiguous/no", {"contiguous": False, "kernels": None}, (shape.FUSED, shape.PERMUTED_STEP, shape.EXPANDED, shape.SD15_TEXT)),
    ("contiguous/yes", {"kernels": None}, (shape.FUSED, shape.PERMUTED_STEP, shape.EXPANDED, shape.SD15_TEXT)),
    ("explicit_mask/no", {"explicit_mask": False, "kernels": None}, (shape.CLIP, shape.DIA_PROMPT)),
    ("explicit_mask/yes", {"kernels": None}, (shape.CLIP, shape.DIA_PROMPT)),
    ("expand_mask/no", {"expand_mask": False, "kernels": None}, (shape.DIA_TEXT, shape.WIDE_MASK)),
    ("expand_mask/yes", {"kernels": None}, (shape.DIA_TEXT, shape.WIDE_MASK)),
    ("pad_value/no", {"pad_value": False, "kernels": None}, (shape.NARROW, shape.WIDE)),
    ("pad_value/yes", {"kernels": None}, (shape.NARROW, shape.WIDE)),
    ("zero_masked_rows/no", {"zero_masked_rows": False, "kernels": None}, (shape.BLIND,)),
    ("zero_masked_rows/yes", {"kernels": None}, (shape.BLIND,)),
    ("chunk_k/automatic", {"chunk_k": None}, (shape.LONGEST,)),
    ("chunk_k/16384", {"chunk_k": 16384}, (shape.LONGEST,)),
    ("chunk_q/64", {"chunk_q": 64}, (shape.SD15, shape.CLIP, shape.T5)),
)
"""Each option, its change to a careful plan, and attention to compute correctly. `kernels` None: all of this
machine's."""


def paths(hardware: Hardware, plan: Plan) -> Iterator[Probe]:
    here = DTYPES[hardware.kind]
    for dtype in here:
        yield Probe(Subject.path(f"dtype/{dtype}", dtype), dtype, _at(arithmetic, dtype))
    safe = careful(plan)
    scores = {dtype: _score_dtype(hardware, dtype) for dtype in here}
    for dtype in here:
        changes: list[tuple[str, dict[str, Any], tuple[CaseShape, ...]]] = list(OPTIONS)
        if dtype == "float64":  # only for comparing results: one correct case suffices
            changes = changes[:1]
        changes += [(f"kernels/{name}", {"kernels": (name,), "score_dtype": scores[dtype]}, FUSABLE) for name in KERNELS[hardware.kind]]
        for option, change, shapes in changes:
            yield Probe(Subject.path(option, dtype), dtype, through(replace(safe, dtype=dtype, **_filled(change, hardware)), dtype, shapes))


def _score_dtype(hardware: Hardware, dtype: Dtype) -> Dtype | None:
    """Choose the dtype of scores to test a kernel with: float32 where the table warns of its own."""
    try:
        return decide(hardware, Need(), Choice(dtype=dtype)).score_dtype
    except Trouble:  # this machine lacks the dtype according to the table: test it anyway
        return None


def _filled(change: dict[str, Any], hardware: Hardware) -> dict[str, Any]:
    kernels: tuple[Kernel, ...] = KERNELS[hardware.kind]
    return {name: kernels if name == "kernels" and value is None else value for name, value in change.items()}


def through(plan: Plan, dtype: Dtype, shapes: tuple[CaseShape, ...]) -> Callable[[str], Measured]:
    def look(device: str) -> Measured:
        with applied(plan):
            return run(shapes, dtype, device, (bare,))

    return look
