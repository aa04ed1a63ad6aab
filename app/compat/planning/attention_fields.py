"""How attention runs: the options of each attention field in order of preference, and what speaks against them besides the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.compat.machine.hardware import Kind
from app.compat.planning.chunk_fields import bound, budget, chunk_k, chunk_q
from app.compat.planning.options import (
    LEARNED_HERE,
    MEASURED_HERE,
    Situation,
    Objection,
    Option,
    FieldDecision,
    objections,
    overruled,
    reasons,
    refuse,
    second,
    decide_field,
)
from app.compat.planning.quickest_way import Shape, Way, shape_of, way_of
from app.compat.planning.quirk import version
from app.compat.planning.types import Chunk, Dtype, Kernel, Reason, Rejected
from app.sentence import Sentence, say

_NO, _YES = "no", "yes"
HALVES: Final = ("float16", "bfloat16")

KERNELS: Final[dict[Kind, tuple[Kernel, ...]]] = {
    "cuda": ("flash", "efficient", "cudnn", "math"),
    "rocm": ("flash", "efficient", "math"),
    "mps": ("math",),
    "cpu": ("flash", "math"),
    "directml": (),
}

FLAGS: Final[dict[str, tuple[Sentence, Sentence]]] = {
    "contiguous": (
        say("contiguous.no", "Tensors go in as they lie: this machine reads strides rightly."),
        say("contiguous.yes", "Tensors are copied into order first."),
    ),
    "explicit_mask": (
        say("explicit_mask.no", "Causal attention is left to torch: it is right here."),
        say("explicit_mask.yes", "The causal mask is handed over as a tensor."),
    ),
    "expand_mask": (
        say("expand_mask.no", "Masks go in as they are: this machine broadcasts them rightly."),
        say("expand_mask.yes", "Masks are written out in full."),
    ),
    "pad_value": (
        say("pad_value.no", "Values may be of another width than queries here."),
        say("pad_value.yes", "Values are padded to the width of the queries."),
    ),
    "zero_masked_rows": (
        say("zero_masked_rows.no", "torch itself gives zeros for rows that are masked throughout here."),
        say("zero_masked_rows.yes", "Rows that are masked throughout are set to zero."),
    ),
}


def score_dtype(case: Situation, dtype: Dtype) -> FieldDecision:
    if dtype not in HALVES:
        same = say("score_dtype.same", "The model computes in {dtype}, and its scores with it.", dtype=dtype)
        return FieldDecision("kernel", Reason("score_dtype", same, "Hearth's rule"))
    options = (
        Option("kernel", say("score_dtype.kernel", "torch's kernels here sum scores in float32 by themselves.")),
        Option("float32", say("score_dtype.float32", "Scores are kept in float32.")),
    )
    return decide_field(case, "score_dtype", options, dtype)


def kernels(case: Situation, dtype: Dtype) -> tuple[tuple[Kernel, ...], FieldDecision]:
    """Each kernel may run or not, by itself; none left means Hearth's own arithmetic."""
    here = KERNELS[case.hardware.kind]
    against = {name: objections(case, "kernels", name, dtype) for name in here}
    forced = wanted_kernels(case)
    for name in forced or ():
        absent = Objection(
            say("kernels.absent", "There is no {kernel} kernel on {device}.", kernel=name, device=case.hardware.kind),
            fatal=True,
        )
        refuse(case, "kernels", name, against.get(name, (absent,)))
    broke = next((each for name in forced or () for each in against.get(name, ()) if each.overrules), None)
    asked, forced = forced, None if broke is not None else forced
    taken = tuple(name for name in here if not against[name]) if forced is None else forced
    told = ", ".join(taken) or "own"
    why = Reason(
        "kernels",
        say("kernels.all", "torch chooses among {kernels}: all are right here.", kernels=told),
        "torch's sdp_utils.cpp",
    )
    first = next((reason for name in here for reason in reasons("kernels", against[name])), None)
    if forced is not None:
        because = Reason("kernels", say("plan.yours", "You asked for {option}.", option=told), "your choice")
    elif broke is not None:
        because = Reason("kernels", overruled(", ".join(asked or ()), broke.sentence), LEARNED_HERE)
    else:
        because = first or why
    rejected = tuple(
        Rejected("kernels", name, reasons("kernels", against[name]) or (second("kernels", told),))
        for name in here
        if name not in taken
    )
    warnings = tuple(reason for name in taken for reason in reasons("kernels", against[name]))
    if forced is None and not here:
        because = Reason(
            "kernels",
            say("kernels.none", "torch has no kernel of its own here, so Hearth computes attention itself."),
            "Hearth's rule",
        )
    return taken, FieldDecision(told, because, rejected, warnings)


def wanted_kernels(case: Situation) -> tuple[Kernel, ...] | None:
    wanted = case.choice.kernels
    return (wanted,) if isinstance(wanted, str) else wanted and tuple(wanted)


def gqa(case: Situation, dtype: Dtype, kernels: Sequence[Kernel]) -> FieldDecision:
    native: list[Objection] = []
    if not kernels:
        native.append(
            Objection(
                say(
                    "gqa.own",
                    "Grouped heads are torch's business only where torch computes the attention; here Hearth does.",
                )
            )
        )
    if case.hardware.kind == "cpu":
        native.append(Objection(
            say("gqa.cpu", "On a processor folded groups are 2 times (float32) to 14 times (bfloat16) as fast as torch's own."),
            "measured on torch 2.13, Dia's decoding step",
        ))  # fmt: skip
    expanded = [Objection(say("gqa.copies", "Expanding copies every key and value for each query head of its group."))]
    options = (
        Option("native", say("gqa.why.native", "torch's own grouped attention is right and fast here.")),
        Option("folded", say("gqa.why.folded", "Groups are folded into the queries: nothing is copied.")),
        Option("expanded", say("gqa.why.expanded", "Keys and values are repeated: slow, and right everywhere.")),
    )
    return decide_field(case, "gqa", options, dtype, {"native": native, "expanded": expanded}, case.choice.gqa)


def flag(case: Situation, field: str, dtype: Dtype) -> FieldDecision:
    no, yes = FLAGS[field]
    more: list[Objection] = []
    if field == "contiguous" and case.hardware.kind == "mps" and version(case.hardware.torch) < (2, 13):
        more.append(
            Objection(
                say(
                    "contiguous.metal",
                    "Metal misread strides in several releases before torch 2.13, so tensors are copied into order first.",
                ),
                "pytorch #163597, #181133",
            )
        )
    return decide_field(case, field, (Option(_NO, no), Option(_YES, yes)), dtype, {_NO: more})


def native_right(case: Situation, dtype: Dtype, kernels: Sequence[Kernel], gqa: str) -> bool:
    """On a processor only speed speaks against torch's own grouped heads, unless a row, the self-test or a run does."""
    at_will = case.choice.gqa is None and gqa == "folded" and bool(kernels)
    return at_will and case.hardware.kind == "cpu" and not objections(case, "gqa", "native", dtype)


def ways(case: Situation, kernels: Sequence[Kernel], gqa: str, native: bool) -> tuple[tuple[tuple[Shape, Way], ...], FieldDecision]:
    """What was measured here, of what the plan allows. Whoever chooses kernels or groups by hand is taken at his word."""
    by_hand = case.choice.kernels is not None or case.choice.gqa is not None
    told = ((shape_of(name), way_of(seen.words)) for name, seen in case.verdicts.items() if seen.passed)
    found = tuple(
        (shape, way) for shape, way in told
        if shape is not None and way is not None and not by_hand and may(kernels, gqa, native, way)
    )  # fmt: skip
    if not found:
        sentence = say("ways.rule", "No shape of attention has been measured here yet; a rule measured elsewhere chooses the way.")
        return (), FieldDecision("rule", Reason("ways", sentence, "measured on torch 2.13"))
    sentence = say("ways.measured", "{count} shapes of attention go the way that was the quickest here.", count=len(found))
    return found, FieldDecision(str(len(found)), Reason("ways", sentence, MEASURED_HERE))


def may(kernels: Sequence[Kernel], gqa: str, native: bool, way: Way) -> bool:
    """The plan's own grouping, and torch's where that is right and only slower."""
    if way.by == "own":
        return True
    return bool(kernels) and (way.by in ("torch", gqa) or (way.by == "native" and native))


@dataclass(frozen=True, slots=True)
class Attention:
    """The attention fields of a plan, and how each was settled."""

    score_dtype: Dtype | None
    gqa: str
    chunk_q: Chunk
    chunk_most: int | None
    chunk_k: int | None
    budget_bytes: int
    flags: dict[str, bool]
    kernels: tuple[Kernel, ...]
    ways: tuple[tuple[Shape, Way], ...]
    settled: dict[str, FieldDecision]
    native_right: bool


def attention(case: Situation, dtype: Dtype, beside_bytes: int) -> Attention:
    """`beside_bytes`: what is free once the model lies in memory."""
    score = score_dtype(case, dtype)
    kept: Dtype | None = "float32" if score.option == "float32" else None
    some, running = kernels(case, dtype)
    most, why = budget(case, dtype, kept or dtype, beside_bytes)
    keys, keys_settled = chunk_k(case, dtype)
    rows, rows_settled = chunk_q(case, dtype, kept or dtype, some, keys, most)
    bounded, bound_settled = bound(case)
    groups = gqa(case, dtype, some)
    native = native_right(case, dtype, some, groups.option)
    quickest, measured = ways(case, some, groups.option, native)
    settled = {
        "score_dtype": score, "gqa": groups, "chunk_q": rows_settled, "chunk_most": bound_settled, "chunk_k": keys_settled,
        "budget_bytes": why, "kernels": running, "ways": measured,
        **{field: flag(case, field, dtype) for field in FLAGS},
    }  # fmt: skip
    flags = {field: settled[field].option == _YES for field in FLAGS}
    return Attention(kept, groups.option, rows, bounded, keys, most, flags, some, quickest, settled, native)
