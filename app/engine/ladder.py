"""The ladder: what to change when a run breaks, in order. Pure: a plan and a fault give the next plan, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from app.compat.plan import Offload, Plan, Precision, Role
from app.sentence import Sentence, say

Fault = Literal["numbers", "memory", "crash"]
SMALLEST_CHUNK = 32
FIRST_CHUNK = 512
TILE_PIXELS = 512


@dataclass(frozen=True, slots=True)
class Rung:
    id: str
    faults: frozenset[Fault]
    change: Callable[[Plan], Plan]
    """The same plan back means: nothing left to change here."""
    sentence: Sentence
    first_for: Role | None = None
    """Where the fault is known to lie in this part, this rung comes before all others."""


def _upcast(*roles: Role) -> Callable[[Plan], Plan]:
    def change(plan: Plan) -> Plan:
        def each(part: Precision) -> Precision:
            return replace(part, compute="float32") if part.role in roles else part

        dtype = "float32" if "denoiser" in roles or "speech" in roles else plan.dtype
        return replace(plan, dtype=dtype, precision=tuple(map(each, plan.precision)))

    return change


def _smaller_chunk(plan: Plan) -> Plan:
    chunk = FIRST_CHUNK if plan.chunk_q is None else max(SMALLEST_CHUNK, plan.chunk_q // 2)
    return replace(plan, chunk_q=min(chunk, plan.chunk_q or chunk), budget_bytes=max(1 << 24, plan.budget_bytes // 2))


def _once_smaller(plan: Plan) -> Plan:
    """Halves again and again, but stops at the smallest size that still makes sense."""
    return plan if plan.chunk_q is not None and plan.chunk_q <= SMALLEST_CHUNK else _smaller_chunk(plan)


def _offload(after: Offload, *before: Offload) -> Callable[[Plan], Plan]:
    """In a memory that is shared only a picture's parts have somewhere to wait: in a file, one part after the other."""

    def change(plan: Plan) -> Plan:
        somewhere = plan.device == "cuda" or (after == "model" and plan.of("speech") is None)
        return replace(plan, offload=after) if somewhere and plan.offload in before else plan

    return change


def _own_arithmetic(plan: Plan) -> Plan:
    return replace(plan, kernels=(), explicit_mask=True, expand_mask=True, gqa="folded")


RUNGS: tuple[Rung, ...] = (
    Rung(
        "contiguous", frozenset({"numbers", "crash"}), lambda plan: replace(plan, contiguous=True),
        say("ladder.contiguous", "Tensors are now copied into plain order before attention."),
    ),
    Rung(
        "float32-scores", frozenset({"numbers"}), lambda plan: replace(plan, score_dtype="float32"),
        say("ladder.float32-scores", "Attention scores are now computed in float32."),
    ),
    Rung(
        "float32-decoder", frozenset({"numbers"}), _upcast("vae", "codec"),
        say("ladder.float32-decoder", "The decoder now computes in float32."),
        first_for="vae",
    ),
    Rung(
        "own-arithmetic", frozenset({"numbers", "crash"}), _own_arithmetic,
        say("ladder.own-arithmetic", "Hearth's own arithmetic now takes the place of torch's attention kernels."),
    ),
    Rung(
        "float32", frozenset({"numbers"}), _upcast("denoiser", "speech", "text", "vae", "codec"),
        say("ladder.float32", "The whole model now computes in float32."),
    ),
    Rung(
        "smaller-chunk", frozenset({"memory", "crash"}), _once_smaller,
        say("ladder.smaller-chunk", "Attention now works in smaller chunks."),
    ),
    Rung(
        "tiled-decoder", frozenset({"memory"}),
        lambda plan: replace(plan, vae=replace(plan.vae, slicing=True, tile_pixels=plan.vae.tile_pixels or TILE_PIXELS)),
        say("ladder.tiled-decoder", "The picture is now decoded in tiles."),
        first_for="vae",
    ),
    Rung(
        "offload", frozenset({"memory"}), _offload("model", "none"),
        say("ladder.offload", "Parts that wait are now kept off the device."),
    ),
    Rung(
        "offload-all", frozenset({"memory"}), _offload("sequential", "model", "group"),
        say("ladder.offload-all", "Weights now travel to the device piece by piece, which is slow."),
    ),
)  # fmt: skip
CAUSES: dict[Fault, Sentence] = {
    "numbers": say("fault.numbers", "The model's numbers went wrong; the run goes on from the last good ones."),
    "memory": say("fault.memory", "Memory ran out; the run goes on with less."),
    "crash": say("fault.crash", "torch failed at this calculation; the run goes on another way."),
}
BY_ID = {rung.id: rung for rung in RUNGS}
RELOAD = frozenset({"float32-decoder", "float32", "offload", "offload-all"})
"""Rungs that change how weights are held: the model is loaded again."""


def next_rung(plan: Plan, fault: Fault, where: Role | None = None) -> tuple[Rung, Plan] | None:
    """The first rung for this fault that still changes something."""
    for rung in sorted(RUNGS, key=lambda rung: where is None or rung.first_for != where):
        if fault in rung.faults:
            changed = rung.change(plan)
            if changed != plan:
                return rung, changed
    return None


def stepped(plan: Plan, rungs: tuple[str, ...]) -> Plan:
    """The plan after these rungs; ones that a newer Hearth knows and this one does not are passed over."""
    for id_ in rungs:
        if id_ in BY_ID:
            plan = BY_ID[id_].change(plan)
    return plan
