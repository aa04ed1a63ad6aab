"""How attention runs: the options of each attention field in order of preference, and what speaks against them besides the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.compat.hardware import Hardware, Kind
from app.compat.memory import COPIES_OF_SCORES, GIB, MIB, SCORES_AT_LEAST, SCORES_AT_MOST, scores_bytes
from app.compat.quirk import Unit, version
from app.compat.settle import Case, Objection, Option, Settled, objections, reasons, refuse, second, settle
from app.compat.terms import Dtype, Kernel, Need, Reason, Rejected
from app.sentence import Sentence, say

_NO, _YES = "no", "yes"

DTYPES: Final[dict[Kind, tuple[Dtype, ...]]] = {
    "cuda": ("bfloat16", "float16", "float32", "float64"),
    "rocm": ("bfloat16", "float16", "float32", "float64"),
    "mps": ("float16", "bfloat16", "float32", "float64"),
    "cpu": ("bfloat16", "float32", "float16", "float64"),
    "directml": ("float32",),
}
_DTYPE_WHY: Final[dict[Dtype, Sentence]] = {
    "bfloat16": say("dtype.bfloat16", "bfloat16 is fast here and does not overflow."),
    "float16": say("dtype.float16", "float16 is this machine's fastest."),
    "float32": say("dtype.float32", "float32 is exact enough for everything and right everywhere."),
    "float64": say("dtype.float64", "float64 is for comparing results."),
}
SMALL_MODEL: Final = 50_000_000
"""Parameters under which rounding costs more than half the memory is worth."""

KERNELS: Final[dict[Kind, tuple[Kernel, ...]]] = {
    "cuda": ("flash", "efficient", "cudnn", "math"),
    "rocm": ("flash", "efficient", "math"),
    "mps": ("math",),
    "cpu": ("flash", "math"),
    "directml": (),
}
FUSED: Final = frozenset({"flash", "efficient", "cudnn"})
"""These never write all scores down."""

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


def dtype(case: Case) -> Settled:
    parameters = sum(part.parameters for part in case.need.parts)
    half: list[Objection] = []
    if 0 < parameters < SMALL_MODEL:
        half.append(
            Objection(
                say("dtype.small", "The model is so small that half precision would save nothing worth its rounding.")
            )
        )
    emulated, slow = [], []
    if case.hardware.kind == "cpu":
        slow.append(Objection(say("dtype.cpu-float16", "Processors compute float16 by way of float32: slower.")))
        if not case.hardware.fast_bf16:
            emulated.append(
                Objection(
                    say(
                        "dtype.cpu-bfloat16",
                        "This processor has no bfloat16 arithmetic, so it would be slower than float32.",
                    )
                )
            )
    # Metal has no float64 at all; elsewhere it is possible, and nobody wants it by accident.
    double = [
        Objection(
            say(
                "dtype.double",
                "float64 takes twice the memory and many times the time, for no audible or visible gain.",
            )
        )
    ]
    more = {"bfloat16": half + emulated, "float16": half + slow, "float64": double}
    options = [Option(name, _DTYPE_WHY[name]) for name in DTYPES[case.hardware.kind]]
    return settle(case, "dtype", options, None, more, case.choice.dtype)


def score_dtype(case: Case, dtype: Dtype) -> Settled:
    options = (
        Option("kernel", say("score_dtype.kernel", "torch's kernels here sum scores in float32 by themselves.")),
        Option("float32", say("score_dtype.float32", "Scores are kept in float32.")),
    )
    return settle(case, "score_dtype", options, dtype)


def kernels(case: Case, dtype: Dtype) -> tuple[tuple[Kernel, ...], Settled]:
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
    return taken, Settled(told, because, rejected, warnings)


def wanted_kernels(case: Case) -> tuple[Kernel, ...] | None:
    wanted = case.choice.kernels
    return (wanted,) if isinstance(wanted, str) else wanted


def gqa(case: Case, dtype: Dtype, kernels: Sequence[Kernel]) -> Settled:
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
        Option("native", say("gqa.native", "torch's own grouped attention is right and fast here.")),
        Option("folded", say("gqa.folded", "Groups are folded into the queries: nothing is copied.")),
        Option("expanded", say("gqa.expanded", "Keys and values are repeated: slow, and right everywhere.")),
    )
    return settle(case, "gqa", options, dtype, {"native": native, "expanded": expanded}, case.choice.gqa)


def flag(case: Case, field: str, dtype: Dtype) -> Settled:
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
    return settle(case, field, (Option(_NO, no), Option(_YES, yes)), dtype, {_NO: more})


def chunk_k(case: Case, dtype: Dtype) -> tuple[int | None, Settled]:
    caps = _limits(case, dtype, "keys")
    cap = min((most for _, most in caps), default=None)
    whole = Option(
        "automatic",
        say("chunk_k.automatic", "Keys are taken whole, and in pieces only where one row of scores is too large."),
    )
    if cap is None:
        return None, settle(case, "chunk_k", (whole,), dtype)
    pieces = Option(str(cap), say("chunk_k.capped", "Keys are taken {keys} at a time.", keys=cap))
    settled = settle(case, "chunk_k", (whole, pieces), dtype, {"automatic": [each for each, _ in caps]})
    return (cap if settled.option == pieces.name else None), settled


def chunk_q(
    case: Case, dtype: Dtype, score: Dtype, kernels: Sequence[Kernel], keys: int | None, budget: int
) -> tuple[int | None, Settled]:
    need, forced = case.need, case.choice.chunk
    fixed = largest_chunk(need, score, keys, budget)
    automatic = Option(
        "automatic",
        say("chunk_q.automatic", "The chunk follows free memory at each call, exactly; where all fits there is one."),
    )
    if need.queries == 1 or need.kind == "speech":
        automatic = Option(
            "automatic",
            say(
                "chunk_q.decode",
                "While sound is made one query at a time there is nothing to cut; the chunk acts on the reading of the prompt.",
            ),
        )
    options = [automatic, Option(str(fixed), say("chunk_q.fixed", "{chunk} queries at a time, always.", chunk=fixed))]
    options.append(Option("whole", say("chunk_q.whole", "All queries at once.")))
    if forced is not None and forced != fixed:
        options.append(
            Option(str(forced), say("chunk_q.forced", "{chunk} queries at a time, as you asked.", chunk=forced))
        )
    more = {
        each.name: _too_large(case, dtype, score, kernels, rows, keys, budget)
        for each, rows in (
            (options[2], need.queries),
            *((each, int(each.name)) for each in options if each.name.isdigit()),
        )
    }
    settled = settle(case, "chunk_q", options, dtype, more, None if forced is None else str(forced))
    return (int(settled.option) if settled.option.isdigit() else None), settled


def largest_chunk(need: Need, score: Dtype, keys: int | None, budget: int) -> int:
    """The largest power of two, 16 to 4096, whose scores stay within the budget."""
    row = scores_bytes(need.batch, need.heads, 1, min(need.keys, keys or need.keys), score) * COPIES_OF_SCORES
    return max(16, min(4096, 1 << max(0, (budget // max(1, row)).bit_length() - 1)))


def budget(case: Case, dtype: Dtype, score: Dtype, free_bytes: int) -> tuple[int, Reason]:
    """A quarter of what is free beside the model, at most 1 GiB; never more than the rows allow."""
    most = min(max(free_bytes // 4, SCORES_AT_LEAST), SCORES_AT_MOST)
    for unit, share in (("bytes", 1), ("elements", scores_bytes(1, 1, 1, 1, score))):
        most = min([most, *(limit * share for _, limit in _limits(case, dtype, unit))])  # type: ignore[arg-type]
    sentence = say(
        "budget.quarter",
        "The scores of one call may take {mib} MiB: a quarter of the memory that is free beside the model, at most 1024.",
        mib=most // MIB,
    )
    return most, Reason("budget_bytes", sentence, "Hearth's rule")


def free_bytes(hardware: Hardware) -> int:
    """What may be planned with; a machine that does not say is taken for a small one."""
    return hardware.free_bytes or hardware.limit_bytes or hardware.memory_bytes or 4 * GIB


def _limits(case: Case, dtype: Dtype, unit: Unit) -> list[tuple[Objection, int]]:
    return [
        (Objection(row.sentence, row.source, row.fatal), free_bytes(case.hardware) if unit == "free" else most)
        for row in case.rows
        if row.concerns(case.hardware, case.need, dtype)
        for its, most in row.limits
        if its == unit
    ]


def _too_large(
    case: Case, dtype: Dtype, score: Dtype, kernels: Sequence[Kernel], rows: int, keys: int | None, budget: int
) -> list[Objection]:
    need = case.need
    rows, keys = min(rows, need.queries), min(need.keys, keys or need.keys)
    elements = need.batch * need.heads * rows * keys
    sizes: dict[Unit, int] = {
        "elements": elements, "bytes": scores_bytes(need.batch, need.heads, rows, keys, score), "pairs": rows * keys,
    }  # fmt: skip
    sizes["free"] = sizes["bytes"]
    found = [each for unit, size in sizes.items() for each, most in _limits(case, dtype, unit) if size > most]
    if not FUSED & set(kernels) and sizes["bytes"] * COPIES_OF_SCORES > budget:
        found.append(
            Objection(
                say(
                    "chunk_q.budget",
                    "Scores of {mib} MiB in one piece are more than what is free beside the model allows.",
                    mib=sizes["bytes"] // MIB,
                )
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Attention:
    """The attention fields of a plan, and how each was settled."""

    score_dtype: Dtype | None
    gqa: str
    chunk_q: int | None
    chunk_k: int | None
    budget_bytes: int
    flags: dict[str, bool]
    kernels: tuple[Kernel, ...]
    settled: dict[str, Settled]


def attention(case: Case, dtype: Dtype, beside_bytes: int) -> Attention:
    """`beside_bytes`: what is free once the model lies in memory."""
    score = score_dtype(case, dtype)
    kept: Dtype | None = "float32" if score.option == "float32" else None
    some, running = kernels(case, dtype)
    most, why = budget(case, dtype, kept or dtype, beside_bytes)
    keys, keys_settled = chunk_k(case, dtype)
    rows, rows_settled = chunk_q(case, dtype, kept or dtype, some, keys, most)
    groups = gqa(case, dtype, some)
    settled = {
        "score_dtype": score, "gqa": groups, "chunk_q": rows_settled, "chunk_k": keys_settled,
        "budget_bytes": Settled(str(most), why), "kernels": running,
        **{field: flag(case, field, dtype) for field in FLAGS},
    }  # fmt: skip
    flags = {field: settled[field].option == _YES for field in FLAGS}
    return Attention(kept, groups.option, rows, keys, most, flags, some, settled)
