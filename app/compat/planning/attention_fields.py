"""Decide how attention runs: each field's options in order of preference, and objections other than quirks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from app.base.sentence import Sentence, say
from app.compat.machine.hardware import Kind
from app.compat.machine.verdicts import Subject
from app.compat.planning.chunk_fields import decide_budget, decide_chunk_k, decide_chunk_most, decide_chunk_q
from app.compat.planning.memory_formulas import keeps_no_scores
from app.compat.planning.options import MEASURED_HERE, FieldDecision, Option, Situation, decide_field, find_objections, refuse
from app.compat.planning.quickest_way import Shape, Way, parse_shape, parse_way
from app.compat.planning.quirk import version
from app.compat.planning.types import HALVES, Dtype, Kernel, Path, Reason

_NO, _YES = "no", "yes"

KERNELS: Final[dict[Kind, tuple[Kernel, ...]]] = {
    "cuda": ("flash", "efficient", "cudnn", "math"),
    "rocm": ("flash", "efficient", "math"),
    "mps": ("math",),
    "cpu": ("flash", "math"),
    "directml": (),
}

FLAGS: Final[dict[str, tuple[Sentence, Sentence]]] = {
    "contiguous": (
        say("contiguous.no", "Tensors are passed unchanged: this machine reads strides correctly."),
        say("contiguous.yes", "Tensors are made contiguous first."),
    ),
    "explicit_mask": (
        say("explicit_mask.no", "torch applies the causal mask itself: it is correct here."),
        say("explicit_mask.yes", "The causal mask is passed as a tensor."),
    ),
    "expand_mask": (
        say("expand_mask.no", "Masks are passed unchanged: this machine broadcasts them correctly."),
        say("expand_mask.yes", "Masks are expanded to full size."),
    ),
    "pad_value": (
        say("pad_value.no", "Values may have a different width from queries here."),
        say("pad_value.yes", "Values are padded to the width of the queries."),
    ),
    "zero_masked_rows": (
        say("zero_masked_rows.no", "torch returns zeros for fully masked rows here."),
        say("zero_masked_rows.yes", "Fully masked rows are set to zero."),
    ),
}


def decide_score_dtype(situation: Situation, dtype: Dtype) -> FieldDecision:
    if dtype not in HALVES:
        same = say("score_dtype.same", "The model and its attention scores are computed in {dtype}.", dtype=dtype)
        return FieldDecision("kernel", Reason("score_dtype", same))
    options = (
        Option("kernel", say("score_dtype.kernel", "torch's kernels already use float32 for scores here.")),
        Option("float32", say("score_dtype.float32", "Scores are computed in float32.")),
    )
    return decide_field(situation, "score_dtype", options, dtype)


def decide_kernels(situation: Situation, dtype: Dtype) -> tuple[tuple[Kernel, ...], FieldDecision]:
    """With none allowed Hearth computes attention itself."""
    kind, forced = situation.hardware.kind, kernels_asked(situation)
    here = KERNELS[kind]
    for name in forced or ():
        if name not in here:
            absent = say("kernels.absent", "There is no {kernel} kernel on {device}.", kernel=name, device=kind)
            refuse(situation, "kernels", name, (Reason("kernels", absent, fatal=True),))
    own = Option("own", say("kernels.none", "torch has no suitable kernel here, so Hearth computes attention itself."))
    if here:
        words = say("kernels.all", "torch chooses among {kernels}: none is known to be wrong here.", kernels=here)
        own = Option("own", words, "torch's sdp_utils.cpp")
    decision = decide_field(situation, "kernels", [Option(name, own.why) for name in here], dtype, forced=forced, together=own)
    return decision.taken, decision  # type: ignore[return-value]


def kernels_asked(situation: Situation) -> tuple[Kernel, ...] | None:
    wanted = situation.choice.kernels
    return (wanted,) if isinstance(wanted, str) else wanted and tuple(wanted)


def decide_gqa(situation: Situation, dtype: Dtype, kernels: Sequence[Kernel]) -> FieldDecision:
    native: list[Reason] = []
    if not kernels:
        words = say("gqa.own", "Native grouped heads need a torch kernel; here Hearth computes attention itself.")
        native.append(Reason("gqa", words))
    if situation.hardware.kind == "cpu":
        native.append(
            Reason(
                "gqa",
                say("gqa.cpu", "On a processor, folding is 2 times (float32) to 14 times (bfloat16) as fast as torch's grouped attention."),
                "measured on torch 2.13, Dia's decoding step",
            )
        )
    if situation.hardware.kind == "mps":
        words = say("gqa.metal", "On Metal some releases of torch repeat keys and values for grouped heads; folding copies nothing.")
        native.append(Reason("gqa", words, "torch's attention.cpp"))
    expanded = [Reason("gqa", say("gqa.copies", "Expanding copies every key and value once per query head."))]
    options = (
        Option("native", say("gqa.why.native", "torch's own grouped attention is correct and fast here.")),
        Option("folded", say("gqa.why.folded", "Grouped heads are folded into the queries, without copies.")),
        Option("expanded", say("gqa.why.expanded", "Keys and values are repeated: slow, but correct everywhere.")),
    )
    return decide_field(situation, "gqa", options, dtype, {"native": native, "expanded": expanded}, forced=situation.choice.gqa)


def decide_flag(situation: Situation, field: str, dtype: Dtype) -> FieldDecision:
    no, yes = FLAGS[field]
    more: list[Reason] = []
    if field == "contiguous" and situation.hardware.kind == "mps" and version(situation.hardware.torch) < (2, 13):
        words = say(
            "contiguous.metal", "Metal misread strides in several releases before torch 2.13, so tensors are made contiguous first."
        )
        more.append(Reason(field, words, "pytorch #163597, #181133"))
    return decide_field(situation, field, (Option(_NO, no), Option(_YES, yes)), dtype, {_NO: more})


def is_native_right(situation: Situation, dtype: Dtype, kernels: Sequence[Kernel], gqa: str) -> bool:
    """Return whether native groups are correct: on a CPU yes, merely slow, unless a quirk, the self-test or a run
    objects."""
    at_will = situation.choice.gqa is None and gqa == "folded" and bool(kernels)
    return at_will and situation.hardware.kind == "cpu" and not find_objections(situation, "gqa", "native", dtype)


def decide_ways(
    situation: Situation, kernels: Sequence[Kernel], gqa: str, native: bool
) -> tuple[tuple[tuple[Shape, Way], ...], FieldDecision]:
    """Return the ways measured here that the plan allows. Kernels or groups chosen by hand are always respected."""
    by_hand = situation.choice.kernels is not None or situation.choice.gqa is not None
    measured = ((parse_shape(name), parse_way(verdict.words)) for name, verdict in situation.verdicts.items() if verdict.passed)
    found = tuple(
        (shape, way)
        for shape, way in measured
        if shape is not None and way is not None and not by_hand and allows_way(kernels, gqa, native, way)
    )
    if not found:
        sentence = say("ways.rule", "No attention shape has been measured here yet, so a rule measured on other machines chooses.")
        return (), FieldDecision("rule", Reason("ways", sentence, "measured on torch 2.13"))
    sentence = say("ways.measured", "{count} attention {count:shape uses|shapes use} the way measured fastest here.", count=len(found))
    return found, FieldDecision(str(len(found)), Reason("ways", sentence, MEASURED_HERE))


def allows_way(kernels: Sequence[Kernel], gqa: str, native: bool, way: Way) -> bool:
    """Return whether a way is allowed: the plan's own grouping, or torch's if that is correct but slower."""
    if way.by == "own":
        return True
    return bool(kernels) and (way.by in ("torch", gqa) or (way.by == "native" and native))


def narrow_to_kernels(situation: Situation, *paths: Path) -> Situation:
    """Return the situation with only the quirks and verdicts that concern calls of these kernels of Metal."""
    quirks, retired = (
        tuple(found for each in known if (found := each.on(*paths)) is not None) for known in (situation.quirks, situation.retired)
    )
    named = [(subject.name.partition("@"), verdict) for subject, verdict in situation.verdicts.items() if subject.kind == "path"]
    theirs = [(name, verdict) for (name, _, path), verdict in named if path in paths]
    measured = {Subject("path", name): verdict for name, verdict in sorted(theirs, key=lambda each: not each[1].passed)}
    return replace(situation, quirks=quirks, retired=retired, verdicts={**situation.verdicts, **measured})


def decide_attention(
    everywhere: Situation, path: Path | None, dtype: Dtype, beside_bytes: int, computed: Collection[Dtype]
) -> tuple[dict[str, Any], dict[str, FieldDecision]]:
    """Return the plan's fields for attention, and the decision for each. `path`: Metal's kernel for it; `beside_bytes`:
    memory free once the model is loaded; `computed`: dtypes of the parts that it is for."""
    situation = everywhere if path is None else narrow_to_kernels(everywhere, path)
    kernels, running = decide_kernels(situation, dtype)
    if path is not None and not kernels:
        situation = narrow_to_kernels(everywhere, path, "graph")  # own arithmetic is made of the same products
    scores = [decide_score_dtype(situation, each) for each in (dtype, *sorted(set(computed) & set(HALVES) - {dtype}))]
    score = next((each for each in scores if each.option == "float32"), scores[0])
    score_dtype: Dtype | None = "float32" if score.option == "float32" else None
    widest = score_dtype or dtype
    budget, budget_decision = decide_budget(situation, dtype, widest, beside_bytes)
    chunk_k, keys = decide_chunk_k(situation, dtype)
    chunk_q, queries = decide_chunk_q(situation, dtype, widest, keeps_no_scores(kernels, path), chunk_k, budget)
    chunk_most, bound = decide_chunk_most(situation)
    groups = decide_gqa(situation, dtype, kernels)
    native = is_native_right(situation, dtype, kernels, groups.option)
    ways, measured = decide_ways(situation, kernels, groups.option, native)
    decisions = {
        "score_dtype": score, "gqa": groups, "chunk_q": queries, "chunk_most": bound, "chunk_k": keys,
        "budget_bytes": budget_decision, "kernels": running, "ways": measured,
        **{field: decide_flag(situation, field, dtype) for field in FLAGS},
    }  # fmt: skip
    fields = {
        "score_dtype": score_dtype, "gqa": groups.option, "chunk_q": chunk_q, "chunk_most": chunk_most, "chunk_k": chunk_k,
        "budget_bytes": budget, "kernels": kernels, "ways": ways, "native_right": native,
        **{field: decisions[field].option == _YES for field in FLAGS},
    }  # fmt: skip
    return fields, decisions
