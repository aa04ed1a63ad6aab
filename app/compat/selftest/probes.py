"""The self-test's questions: attention that shows each defect, and attention that each option must compute
correctly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from app.base.trouble import Trouble
from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject
from app.compat.planning.attention_fields import KERNELS
from app.compat.planning.decide import CARD_KINDS, decide
from app.compat.planning.metal import metal_path, metal_paths
from app.compat.planning.precision_fields import DTYPES
from app.compat.planning.quirk import Quirk
from app.compat.planning.types import AUTO, HALVES, Choice, Convolution, Dtype, Kernel, Need, Path, Plan
from app.compat.selftest import operations
from app.compat.selftest import reference as shape
from app.compat.selftest.operations import Measured
from app.compat.selftest.reference import CaseShape, Made, error, make

TOLERANCE: Final[dict[Dtype, float]] = {"float64": 1e-10, "float32": 1e-3, "float16": 5e-3, "bfloat16": 2e-2}
"""Each is ten times the rounding error seen on a CPU; float32 leaves room for cards that multiply in TF32."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to the machine, answered by a verdict on `subject`."""

    subject: Subject
    dtype: Dtype
    look: Callable[[str], Measured]
    """It puts the question to the device of this name."""
    tolerance: float | None = None
    """None takes the dtype's own."""
    prepare: Callable[[], object] | None = None
    """It computes on the processor what the answer is compared with; a simulated machine does not reach it."""

    def judge(self, error: float) -> bool:
        return error <= (TOLERANCE[self.dtype] if self.tolerance is None else self.tolerance)


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


def attention(*shapes: CaseShape, ways: tuple[Callable[[Made], Tensor], ...] = (bare,)) -> Callable[[Dtype, str], Measured]:
    return lambda dtype, device: run(shapes, dtype, device, ways)


def everything(dtype: Dtype, device: str) -> Measured:
    first, second = operations.arithmetic(dtype, device), run((shape.SD15_TEXT, shape.DIA_TEXT), dtype, device, (bare,))
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
    "masked-rows": (("float32", "float16"), attention(shape.BLIND, shape.BLIND_STEP)),
    "mps-stride-zero": (("float32",), operations.expanded_rows),
    "mps-m5-linear": (HALVES, operations.repeated_linear),
    "mps-large-product": (("float32",), operations.large_product),
    "mps-baddbmm": (("float32",), operations.ignored_addend),
    "mps-leak": (("float32",), operations.repeated_attention),
    "mps-allocator": (("float32",), operations.growing_sizes),
    "mps-vector-mask": (("float32", "float16"), attention(shape.SHARED_MASK_STEP)),
    "mps-threads": (("float32",), operations.two_threads),
    "mps-scalar-view": (("float32",), operations.number_in_list),
    "mps-conv-weight": (("float32", "float16"), operations.weight_in_weight),
    "mps-conv-chunk": (("float32", "float16"), operations.half_of_channels),
    "mps-out-slice": (("float32", "float16"), operations.product_in_place),
    "mps-graph-26": (("float32",), operations.small_model),
    "mps-graph-27": (("float32",), operations.small_model),
    "mps-bf16": (("bfloat16",), everything),
    "mps-fp64": (("float64",), attention(shape.CLIP)),
    "conv-65536": (("float32",), operations.long_sound),
    "cuda-flash": (("float16",), attention(shape.SDXL, ways=(flash,))),
    "gtx16-fp16": (("float16",), operations.convolution),
    "cudnn-old-card": (("float32",), operations.convolution),
    "windows-spill": (("float32",), operations.more_than_fits),
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
        plan,
        score_dtype="float32",
        gqa="folded",
        chunk_q=AUTO,
        chunk_k=4096,
        budget_bytes=256 << 20,
        contiguous=True,
        explicit_mask=True,
        expand_mask=True,
        pad_value=True,
        zero_masked_rows=True,
        kernels=(),
        path=None,
        others=(),
    )


def careful_plan(hardware: Hardware) -> Plan:
    return careful(decide(hardware))


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
    ("expand_mask/no", {"expand_mask": False, "kernels": None}, (shape.DIA_TEXT, shape.WIDE_MASK, shape.SHARED_MASK_STEP)),
    ("expand_mask/yes", {"kernels": None}, (shape.DIA_TEXT, shape.WIDE_MASK, shape.SHARED_MASK_STEP)),
    ("pad_value/no", {"pad_value": False, "kernels": None}, (shape.NARROW, shape.WIDE)),
    ("pad_value/yes", {"kernels": None}, (shape.NARROW, shape.WIDE)),
    ("zero_masked_rows/no", {"zero_masked_rows": False, "kernels": None}, shape.BLINDS),
    ("zero_masked_rows/yes", {"kernels": None}, shape.BLINDS),
    ("chunk_k/automatic", {"chunk_k": None}, (shape.LONGEST,)),
    ("chunk_k/16384", {"chunk_k": 16384}, (shape.LONGEST,)),
    ("chunk_q/64", {"chunk_q": 64}, (shape.SD15, shape.CLIP, shape.T5)),
)
"""Each option has its change to a careful plan, and attention to compute correctly. `kernels` None stands for all of this machine's."""


ASKED_BY_ITSELF: Final = {"linear": operations.linear, "convolution": operations.convolution}
"""They are asked apart, because a card may compute the one rightly and the other not (gtx16-fp16)."""


def paths(hardware: Hardware, plan: Plan) -> Iterator[Probe]:
    here = DTYPES[hardware.kind]
    if hardware.kind in CARD_KINDS:
        for way in get_args(Convolution):
            yield Probe(Subject.path(f"convolution/{way}", "float32"), "float32", _convolving(way))
    for dtype in here:
        for name, look in ASKED_BY_ITSELF.items():
            yield Probe(Subject.path(f"{name}/{dtype}", dtype), dtype, as_planned(hardware, _at(look, dtype)))
    safe = careful(plan)
    for dtype in here:
        scores = _score_dtypes(hardware, dtype)
        changes: list[Change] = list(OPTIONS)
        if dtype == "float64":  # only for comparing results: one correct case suffices
            changes = changes[:1]
        changes += [(f"kernels/{name}", {"kernels": (name,)}, FUSABLE) for name in KERNELS[hardware.kind]]
        for option, change, shapes in changes:
            for path, some in _by_path(hardware, change, shapes):
                how: dict[str, Any] = {"score_dtype": scores.get(path)} if option.startswith("kernels/") and change else {}
                look_at = through(replace(safe, dtype=dtype, **how, **_filled(change, hardware)), dtype, some)
                yield Probe(Subject.path(option, dtype, path or ""), dtype, look_at)


def _convolving(way: Convolution) -> Callable[[str], Measured]:
    def look(device: str) -> Measured:
        with operations.convolving_by(way):
            return operations.convolution("float32", device)

    return look


def as_planned(hardware: Hardware, look: Callable[[str], Measured]) -> Callable[[str], Measured]:
    """Ask with the convolutions and the sums that a plan takes: a library without code for the card says nothing of its dtypes."""
    if hardware.kind not in CARD_KINDS:
        return look

    def ask(device: str) -> Measured:
        library = operations.is_library_right(device, TOLERANCE["float32"])
        with operations.convolving_by("library" if library else "torch"), operations.summing_whole():
            return look(device)

    return ask


def _by_path(
    hardware: Hardware, change: dict[str, Any], shapes: tuple[CaseShape, ...]
) -> Iterator[tuple[Path | None, tuple[CaseShape, ...]]]:
    """Ask each of Metal's kernels by itself: a defect of one says nothing of the others."""
    here = metal_paths(hardware) if "kernels" in change else ()
    if not here:
        yield None, shapes
    for path in here:
        its = tuple(each for each in shapes if metal_path(here, each.queries, each.keys, each.dim, each.value_dim or each.dim) == path)
        if its:
            yield path, its


def _score_dtypes(hardware: Hardware, dtype: Dtype) -> dict[Path | None, Dtype | None]:
    """Choose the dtype of scores to test kernels with: float32 where the table warns of their own."""
    try:
        plan = decide(hardware, Need(), Choice(dtype=dtype))
    except Trouble:  # this machine lacks the dtype according to the table: test it anyway
        return {}
    return {each.path: each.score_dtype for each in (plan, *plan.others)}


def _filled(change: dict[str, Any], hardware: Hardware) -> dict[str, Any]:
    kernels: tuple[Kernel, ...] = KERNELS[hardware.kind]
    return {name: kernels if name == "kernels" and value is None else value for name, value in change.items()}


def through(plan: Plan, dtype: Dtype, shapes: tuple[CaseShape, ...]) -> Callable[[str], Measured]:
    def look(device: str) -> Measured:
        with applied(plan):
            return run(shapes, dtype, device, (bare,))

    return look
