"""Decide each part's compute dtype, its storage dtype, which may be narrower, and its device."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from app.compat.machine.hardware import Kind
from app.compat.planning.memory_formulas import SCRATCH_BYTES, free_bytes, gib, part_bytes
from app.compat.planning.options import LEARNED_HERE, FieldDecision, Objection, Option, Situation, as_reasons, decide_field, find_objections
from app.compat.planning.types import Dtype, ModelPart, Precision, Reason, Rejected
from app.sentence import Sentence, say

DTYPES: Final[dict[Kind, tuple[Dtype, ...]]] = {
    "cuda": ("bfloat16", "float16", "float32", "float64"),
    "rocm": ("bfloat16", "float16", "float32", "float64"),
    "mps": ("float16", "bfloat16", "float32", "float64"),
    "cpu": ("bfloat16", "float32", "float16", "float64"),
    "directml": ("float32",),
}
_DTYPE_WHY: Final[dict[Dtype, Sentence]] = {
    "bfloat16": say("dtype.bfloat16", "bfloat16 is fast here and does not overflow."),
    "float16": say("dtype.float16", "float16 is the fastest here."),
    "float32": say("dtype.float32", "float32 is precise and correct everywhere."),
    "float64": say("dtype.float64", "float64 is for comparing results."),
}
SMALL_MODEL: Final = 50_000_000
"""Models with fewer parameters gain too little memory from half precision to be worth its rounding."""


def decide_dtype(situation: Situation) -> FieldDecision:
    parameters = sum(part.parameters for part in situation.need.parts)
    # Metal has no float64; elsewhere it works, but nobody wants it by accident.
    words = say("dtype.double", "float64 takes twice the memory and many times the time, for no audible or visible gain.")
    more: dict[str, list[Objection]] = {"bfloat16": [], "float16": [], "float64": [Objection(words)]}
    if 0 < parameters < SMALL_MODEL:
        words = say("dtype.small", "The model is so small that half precision would save too little to be worth its rounding.")
        more["bfloat16"].append(Objection(words))
        more["float16"].append(Objection(words))
    if situation.hardware.kind == "cpu":
        words = say("dtype.cpu-float16", "Processors convert float16 to float32 to compute, which is slower.")
        more["float16"].append(Objection(words))
    if situation.hardware.kind == "cpu" and not situation.hardware.fast_bf16:
        words = say("dtype.cpu-bfloat16", "This processor has no bfloat16 arithmetic, so it would be slower than float32.")
        more["bfloat16"].append(Objection(words))
    options = [Option(name, _DTYPE_WHY[name]) for name in DTYPES[situation.hardware.kind]]
    return decide_field(situation, "dtype", options, None, more, situation.choice.dtype, falls_back=True)


def decide_precision(situation: Situation, dtype: Dtype, device: str) -> tuple[tuple[Precision, ...], FieldDecision]:
    """Decide each part's precision, in the order of the need's parts."""
    computed = [_compute(situation, part, dtype) for part in situation.need.parts]
    storing = _storage(situation, dtype)
    made = []
    for part, (compute, _) in zip(situation.need.parts, computed, strict=True):
        narrow = compute == dtype and part.role in ("text", "denoiser", "speech")
        stored: Dtype = storing.option if narrow else compute  # type: ignore[assignment]
        made.append(Precision(part.name, part.role, stored, compute, device))
    made = _codec_aside(situation, made)
    wider = [each for _, found in computed for each in found]
    wider.sort(key=lambda each: each.objections[0].source != LEARNED_HERE)
    narrower = [Rejected("precision", f"storage: {each.option}", each.objections) for each in storing.rejected]
    because = _explain(made, dtype, wider, storing)
    return tuple(made), FieldDecision(storing.option, because, (*wider, *narrower), storing.warnings)


def _explain(made: list[Precision], dtype: Dtype, wider: list[Rejected], storing: FieldDecision) -> Reason:
    if any(each.storage != each.compute for each in made):
        return replace(storing.because, field="precision")
    if wider:
        return wider[0].objections[0]
    if any(each.role == "codec" for each in made) and dtype != "float32":
        codec = say("precision.codec", "Everything is {dtype} except the codec, which decodes sound in float32.", dtype=dtype)
        return Reason("precision", codec, "transformers' Dia")
    same = say("precision.same", "Every part computes and stores its weights in {dtype}.", dtype=dtype)
    return Reason("precision", same, "Hearth's rule")


def _compute(situation: Situation, part: ModelPart, dtype: Dtype) -> tuple[Dtype, tuple[Rejected, ...]]:
    if part.role == "codec":
        return "float32", ()
    broke = find_objections(situation, "decoder", dtype, dtype) if part.role == "vae" else []
    if broke:
        return "float32", (Rejected("precision", f"{part.name}: {dtype}", as_reasons("precision", broke)),)
    if part.half_is_safe or dtype != "float16":
        return dtype, ()
    against = find_objections(situation, "unsafe", "float16", dtype)
    if not against:
        return dtype, ()
    # Use the next of this machine's dtypes that has no objection and does not overflow.
    wider: Dtype = next(
        (each for each in DTYPES[situation.hardware.kind] if each != "float16" and not find_objections(situation, "dtype", each, None)),
        "float32",
    )
    return wider, (Rejected("precision", f"{part.name}: float16", as_reasons("precision", against)),)


def _storage(situation: Situation, dtype: Dtype) -> FieldDecision:
    """Decide whether to store weights narrower than they are computed with, to fit or to load sooner."""
    half: Dtype = "bfloat16" if situation.hardware.kind == "cpu" else "float16"
    names: tuple[Dtype, ...] = (dtype, half) if dtype == "float32" else (dtype,)
    options = [Option(name, say("storage.same", "Weights are kept in {dtype}.", dtype=name)) for name in names]
    if dtype != "float32":
        return decide_field(situation, "storage", options, dtype)
    wide = sum(part.parameters for part in situation.need.parts) * 4 + SCRATCH_BYTES[situation.need.kind]
    more = []
    # Widening weights costs a GPU next to nothing, a CPU much.
    if wide > free_bytes(situation.hardware) // (1 if situation.hardware.unified else 2):
        more.append(
            Objection(
                say(
                    "storage.tight",
                    "Weights of {gib} GiB in float32 leave too little memory, so they are stored in half precision and widened layer by layer.",
                    gib=gib(wide),
                )
            )
        )
    return decide_field(situation, "storage", options, dtype, {"float32": more})


def _codec_aside(situation: Situation, made: list[Precision]) -> list[Precision]:
    """Move the codec to the CPU if the speech model leaves no memory for it."""
    sizes = sum(part_bytes(part, how, "none") for part, how in zip(situation.need.parts, made, strict=True))
    if sizes + situation.need.cache_bytes + SCRATCH_BYTES["speech"] <= free_bytes(situation.hardware):
        return made
    return [replace(how, device="cpu") if how.role == "codec" else how for how in made]
