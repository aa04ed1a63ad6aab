"""The list of fallbacks: failed runs become objections that later plans weigh, and the next fallback to try. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.base.sentence import Sentence, say
from app.compat.machine.verdicts import Fault, RunFailure, Subject, Verdict, Verdicts
from app.compat.planning.memory_formulas import COPIES_OF_SCORES, keeps_no_scores, peak_bytes, scores_bytes
from app.compat.planning.types import AUTO, Need, Plan, Role

SMALLEST_CHUNK: Final = 32
FIRST_CHUNK: Final = 512
SPEECH_CHUNK: Final = 64
"""Speech has this smaller chunk and no other, as it takes one query at a time except for its prompt."""


@dataclass(frozen=True, slots=True)
class Fallback:
    id: str
    faults: frozenset[Fault]
    against: tuple[str, ...]
    """It objects to these options, as a quirk row does: "dtype/float16". Without any it limits the chunk."""
    sentence: Sentence
    first_for: Role | None = None
    """If the fault is known to be in this part, this fallback comes first."""


CHUNK_FALLBACK: Final = "smaller-chunk"
FALLBACKS: Final[tuple[Fallback, ...]] = (
    Fallback(
        "row-by-calls", frozenset({"numbers", "crash", "memory"}), ("row/graph",),
        say("fallback.row-by-calls", "Each operation of a row of speech is started by itself, not by a captured graph."),
    ),
    Fallback(
        "products-by-torch", frozenset({"numbers", "crash"}), ("product/kernel", "product/lines"),
        say("fallback.products-by-torch", "torch multiplies each row's lines by the weights, not a kernel of Hearth's."),
    ),
    Fallback(
        "whole-weights", frozenset({"numbers", "crash"}), ("quantised/int8", "quantised/int4"),
        say("fallback.whole-weights", "Weights are not packed in 8 or 4 bits."),
    ),
    Fallback(
        "wide-denoiser", frozenset({"numbers"}), ("scaled/float16",),
        say("fallback.wide-denoiser", "The denoiser computes in float32, not in float16 with scaled layers."),
    ),
    Fallback(
        "heads-as-they-are", frozenset({"numbers", "crash"}), ("pad_heads/yes",),
        say("fallback.heads-as-they-are", "Heads are not padded for Metal's kernel."),
    ),
    Fallback(
        "usual-order", frozenset({"numbers", "crash"}), ("channels_last/yes",),
        say("fallback.usual-order", "Convolutions hold their numbers in torch's usual order."),
    ),
    Fallback(
        "contiguous", frozenset({"numbers", "crash"}), ("contiguous/no",),
        say("fallback.contiguous", "Tensors are made contiguous before attention."),
    ),
    Fallback(
        "float32-scores", frozenset({"numbers"}), ("score_dtype/kernel",),
        say("fallback.float32-scores", "Attention scores are computed in float32."),
    ),
    Fallback(
        "float32-decoder", frozenset({"numbers"}), ("decoder/float16", "decoder/bfloat16"),
        say("fallback.float32-decoder", "The decoder computes in float32."),
        first_for="vae",
    ),
    Fallback(
        "own-arithmetic", frozenset({"numbers", "crash"}),
        ("kernels/flash", "kernels/cudnn", "kernels/efficient", "kernels/math", "explicit_mask/no", "expand_mask/no"),
        say("fallback.own-arithmetic", "Hearth computes attention itself instead of torch's kernels."),
    ),
    Fallback(
        "float32", frozenset({"numbers"}), ("dtype/float16", "dtype/bfloat16", "linear/float16"),
        say("fallback.float32", "The whole model computes in float32."),
    ),
    Fallback(
        CHUNK_FALLBACK, frozenset({"memory", "crash"}), (),
        say("fallback.smaller-chunk", "Attention works in smaller chunks."),
    ),
    Fallback(
        "tiled-decoder", frozenset({"memory"}), ("vae/whole",),
        say("fallback.tiled-decoder", "The picture is decoded in tiles."),
        first_for="vae",
    ),
    Fallback(
        "small-tiles", frozenset({"memory"}), ("vae/whole", "vae/512"),
        say("fallback.small-tiles", "The picture is decoded in small tiles."),
        first_for="vae",
    ),
    Fallback(
        "offload", frozenset({"memory"}), ("offload/none",),
        say("fallback.offload", "Idle model parts are moved off the device."),
    ),
    Fallback(
        "offload-all", frozenset({"memory"}), ("offload/none", "offload/model", "offload/group"),
        say("fallback.offload-all", "Weights are moved to the device layer by layer, which is slow."),
    ),
)  # fmt: skip
CAUSES: Final[dict[Fault, Sentence]] = {
    "numbers": say("failure.numbers", "The model produced NaN or infinity; the run continues from the last good step."),
    "memory": say("failure.memory", "Memory ran out; the run continues with less."),
    "crash": say("failure.crash", "torch failed at this calculation; the run continues another way."),
}


@dataclass(frozen=True, slots=True)
class Learned:
    """A fallback that a model's runs on this machine have taken, and why they failed."""

    fallback: Fallback
    seen: RunFailure

    @property
    def sentence(self) -> Sentence:
        return say("learned", "{fallback} {seen}", fallback=self.fallback.sentence, seen=describe_failure(self.seen))


def describe_failure(failure: RunFailure) -> Sentence:
    """Word a failure for the user."""
    if failure.step is None:
        return {
            "numbers": say("learned.numbers", "{dtype} produced NaN or infinity.", dtype=failure.dtype),
            "memory": say("learned.memory", "Memory ran out."),
            "crash": say("learned.crash", "The calculation failed in torch or in the graphics system."),
        }[failure.fault]
    return {
        "numbers": say("learned.numbers-at", "{dtype} produced NaN or infinity at step {step}.", dtype=failure.dtype, step=failure.step),
        "memory": say("learned.memory-at", "Memory ran out at step {step}.", step=failure.step),
        "crash": say("learned.crash-at", "The calculation failed in torch or in the graphics system at step {step}.", step=failure.step),
    }[failure.fault]


def learned(verdicts: Verdicts, model: str) -> tuple[Learned, ...]:
    """Return the fallbacks that this model has taken, in the list's order."""
    found = ((fallback, verdicts.get(Subject.fallback(model, fallback.id))) for fallback in FALLBACKS)
    return tuple(Learned(fallback, verdict.seen) for fallback, verdict in found if verdict is not None and verdict.seen)


def next_fallback(
    decided: Callable[[Verdicts], Plan],
    need: Need,
    verdicts: Verdicts,
    failure: RunFailure,
    *,
    where: Role | None = None,
    words: str = "",
    loading: bool = False,
) -> tuple[Learned, Verdict, Plan] | None:
    """Return the first fallback for this fault that changes the plan, its verdict and the new plan; None if no fallback is
    left. After a memory fault, skip fallbacks that need more memory. `loading`: the weights did not fit, so only a fallback
    that holds them differently can help."""
    before = decided(verdicts)
    for fallback in sorted(FALLBACKS, key=lambda fallback: where is None or fallback.first_for != where):
        if failure.fault not in fallback.faults:
            continue
        most = smaller_chunk(before, need) if fallback.id == CHUNK_FALLBACK else None
        if fallback.id == CHUNK_FALLBACK and most is None:
            continue
        until = before.chunk_most if most is not None else None
        lesson = replace(failure, chunk_most=most, chunk_before=until, dtype=failure.dtype or computing_dtype(before, where))
        verdict = Verdict(Subject.fallback(need.model, fallback.id), passed=False, words=words, seen=lesson)
        after = decided({**verdicts, verdict.subject: verdict})
        if choices(after) == choices(before) or (loading and weights_held(after) == weights_held(before)):
            continue
        if failure.fault == "memory" and not loading and peak_bytes(need, after) > peak_bytes(need, before):
            continue
        return Learned(fallback, lesson), verdict, after
    return None


def before_each_fallback(taken: tuple[Learned, ...]) -> Iterator[tuple[Learned, tuple[Learned, ...]]]:
    """Yield each fallback with all earlier lessons except its last step."""
    for each in taken:
        until = each.seen.chunk_before
        less = () if until is None else (replace(each, seen=replace(each.seen, chunk_most=until, chunk_before=None)),)
        yield each, tuple(kept for other in taken for kept in (less if other is each else (other,)))


def choices(plan: Plan) -> Plan:
    """Return what a plan does: without its reasons, and without what nothing reads. A processor's kernels keep scores in
    float32 whatever the plan says; torch's flags mean nothing where none of its kernels is used."""
    done = replace(plan, because=(), rejected=(), warnings=(), retired=())
    if plan.device == "cpu":
        done = replace(done, score_dtype=None)
    done = replace(done, others=tuple(choices(each) for each in plan.others))
    if plan.kernels:
        return done
    return replace(done, explicit_mask=False, expand_mask=False, pad_value=False, pad_heads=False, zero_masked_rows=False)


def weights_held(plan: Plan) -> tuple[object, ...]:
    """Return how the weights are held."""
    return plan.precision, plan.offload, plan.quantised


def computing_dtype(plan: Plan, where: Role | None) -> str:
    part = plan.of(where) if where is not None else None
    return (part.linear or part.compute) if part is not None else plan.dtype


def smaller_chunk(plan: Plan, need: Need) -> int | None:
    """Return a chunk smaller than the current one; None if there is none."""
    now = count_at_once(plan, need)
    if now <= SMALLEST_CHUNK:
        return None
    if need.kind == "speech":
        return SPEECH_CHUNK if now > SPEECH_CHUNK else None
    return max(SMALLEST_CHUNK, min(FIRST_CHUNK, 1 << (now - 1).bit_length() - 1))


def count_at_once(plan: Plan, need: Need) -> int:
    """Return how many queries the model's widest attention takes at a time under this plan."""
    rows = need.queries if plan.chunk_q == AUTO else min(need.queries, plan.chunk_q)
    rows = min(rows, plan.chunk_most or rows)
    if plan.chunk_q == AUTO and not keeps_no_scores(plan.kernels, plan.path):
        keys = min(need.keys, plan.chunk_k or need.keys)
        row = scores_bytes(need.batch, need.heads, 1, keys, plan.score_dtype or plan.dtype) * COPIES_OF_SCORES
        rows = min(rows, max(1, plan.budget_bytes // row))
    return rows
