"""Decide each part's compute dtype, its storage dtype, which may be narrower, and the device of a codec that is wrong on the model's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, get_args

from app.base.sentence import Sentence, say
from app.compat.machine.hardware import Hardware, Kind
from app.compat.machine.verdicts import Subject
from app.compat.planning.memory_formulas import SMALLEST_TILE_PIXELS, free_bytes, gib, needed_bytes, too_much, usable_bytes
from app.compat.planning.options import LEARNED_HERE, MEASURED_HERE, FieldDecision, Option, Situation, decide_field, find_objections
from app.compat.planning.types import Dtype, ModelPart, Precision, Reason, Rejected, Vae
from app.compat.planning.wrong_parts import object_to_codec, object_to_decoder, object_to_dtype, object_to_part, usable_dtypes

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


_SMALL_WORDS: Final = say("dtype.small", "The model is so small that half precision would save too little to be worth its rounding.")


def list_dtypes(hardware: Hardware) -> tuple[Dtype, ...]:
    """Return the dtypes that a plan may choose unasked: float64 is for comparing results."""
    return tuple(each for each in DTYPES[hardware.kind] if each != "float64")


def decide_dtype(situation: Situation) -> FieldDecision:
    parameters = sum(part.parameters for part in situation.need.parts)
    # Metal has no float64; elsewhere it works, but nobody wants it by accident.
    words = say("dtype.double", "float64 takes twice the memory and many times the time, for no audible or visible gain.")
    more = {str(each): object_to_dtype(situation, each) for each in get_args(Dtype)}
    more["float64"].append(Reason("dtype", words))
    if 0 < parameters < SMALL_MODEL:
        more["bfloat16"].append(Reason("dtype", _SMALL_WORDS))
        more["float16"].append(Reason("dtype", _SMALL_WORDS))
    if situation.hardware.kind == "cpu":
        words = say("dtype.cpu-float16", "Processors convert float16 to float32 to compute, which is slower.")
        more["float16"].append(Reason("dtype", words, slower=True))
    if situation.hardware.kind == "cpu" and not situation.hardware.fast_bf16:
        words = say("dtype.cpu-bfloat16", "This processor has no bfloat16 arithmetic, so it would be slower than float32.")
        more["bfloat16"].append(Reason("dtype", words, slower=True))
    options = [Option(name, _DTYPE_WHY[name]) for name in DTYPES[situation.hardware.kind]]
    return decide_field(situation, "dtype", options, None, more, forced=situation.choice.dtype, falls_back=True)


def decide_precision(situation: Situation, dtype: Dtype, device: str) -> tuple[tuple[Precision, ...], FieldDecision]:
    """Decide each part's precision, in the order of the need's parts."""
    computed = [_compute(situation, part, dtype) for part in situation.need.parts]
    linear = _linear(situation, dtype)
    halves = linear is not None and linear.option == "float16"
    wide = [
        Precision(part.name, part.role, compute, compute, device, "float16" if halves and part.role == "speech" else None)
        for part, (compute, _) in zip(situation.need.parts, computed, strict=True)
    ]
    storing = linear if linear is not None and halves else _storage(situation, dtype, wide)
    blocks = _blocks(situation, dtype)
    if blocks is not None and blocks.option == "float16":
        wide = [replace(how, linear="float16") if how.part == "unet" else how for how in wide]
    stored: Dtype = storing.option  # type: ignore[assignment]
    made = [replace(how, storage=stored) if how.compute == dtype and how.role in ("text", "denoiser", "speech") else how for how in wide]
    wrong_codec = object_to_codec(situation) if any(how.role == "codec" and device != "cpu" for how in made) else []
    if wrong_codec:
        made = list(without_codec(made))
    aside = (Rejected("precision", f"codec: {device}", tuple(wrong_codec)),) if wrong_codec else ()
    wider = [each for _, found in computed for each in found]
    wider.sort(key=lambda each: each.objections[0].source != LEARNED_HERE)
    decided = {"linear": linear or blocks} if halves else {"linear": linear or blocks, "storage": storing}
    narrower = [
        Rejected("precision", f"{name}: {each.option}", each.objections)
        for name, found in decided.items()
        if found is not None
        for each in found.rejected
    ]
    scaled = any(part.scales and how.compute == "float16" for part, how in zip(situation.need.parts, made, strict=True))
    because = aside[0].objections[0] if aside else _explain(made, dtype, wider, storing, scaled)
    return tuple(made), FieldDecision(storing.option, because, (*aside, *wider, *narrower), storing.warnings)


def _explain(made: list[Precision], dtype: Dtype, wider: list[Rejected], storing: FieldDecision, scaled: bool) -> Reason:
    if any(each.role == "denoiser" and each.linear for each in made):
        return Reason("precision", _BLOCKS, MEASURED_HERE)
    if scaled:
        words = say(
            "precision.scaled",
            "The denoiser computes in float16, with layers scaled by powers of two where its numbers would be too large; float32 takes four times as long.",
        )
        return Reason("precision", words, "ComfyUI PRs 11057, 11187; sd-webui-forge-classic #460")
    if any(each.storage != each.compute for each in made):
        return replace(storing.because, field="precision")
    if wider:
        return wider[0].objections[0]
    if any(each.role == "codec" for each in made) and dtype != "float32":
        codec = say("precision.codec", "Everything is {dtype} except the codec, which decodes sound in float32.", dtype=dtype)
        return Reason("precision", codec, "transformers' Dia")
    same = say("precision.same", "Every part computes and stores its weights in {dtype}.", dtype=dtype)
    return Reason("precision", same)


def _compute(situation: Situation, part: ModelPart, dtype: Dtype) -> tuple[Dtype, tuple[Rejected, ...]]:
    if part.role == "codec":
        return "float32", ()
    broke = find_objections(situation, "decoder", dtype, dtype, object_to_decoder(situation, dtype)) if part.role == "vae" else []
    unsafe = [] if part.half_is_safe or dtype != "float16" else find_objections(situation, "unsafe", "float16", dtype)
    if not broke and not unsafe:
        return dtype, ()
    scaled = find_objections(situation, "scaled", "float16", dtype) if part.scales else []
    gone = (Rejected("precision", f"{part.name}: {dtype}", tuple(replace(each, field="precision") for each in broke or scaled or unsafe)),)
    right = [
        each for each in usable_dtypes(part, list_dtypes(situation.hardware)) if each != dtype and not object_to_part(situation, part, each)
    ]
    if broke and "float32" in right:
        return "float32", gone
    # Use the next of this machine's dtypes that has no objection and does not overflow.
    plain = [each for each in right if each != "float16" and not find_objections(situation, "dtype", each, None)]
    if part.scales and plain in ([], ["float32"]) and not (broke or scaled):
        return dtype, ()
    return (*plain, *reversed(right), "float32")[0], gone


def _linear(situation: Situation, dtype: Dtype) -> FieldDecision | None:
    """Decide in which dtype the linear layers of a voice multiply on a card that computes in float32; None elsewhere. Each row reads
    all weights, so half of the bytes is twice the speed."""
    need = situation.need
    if need.kind != "speech" or need.plain or dtype != "float32" or situation.hardware.kind not in ("cuda", "rocm"):
        return None
    right = say("linear.half", "Linear layers multiply weights stored in float16 and sum in float32, which the self-test found right here.")
    options = (Option("float16", right, MEASURED_HERE), Option("float32", say("linear.wide", "Linear layers multiply in float32.")))
    against: list[Reason] = []
    if situation.choice.dtype == dtype:
        against.append(Reason("linear", say("plan.yours", "You asked for {option}.", option=dtype)))
    elif 0 < sum(part.parameters for part in need.parts) < SMALL_MODEL:
        against.append(Reason("linear", _SMALL_WORDS))
    elif Subject.path("linear/float16", "float16") not in situation.verdicts:
        words = say(
            "linear.untested",
            "Linear layers multiply in float16 once the self-test, which runs while Hearth is idle, has found that right here.",
        )
        against.append(Reason("linear", words))
    return decide_field(situation, "linear", options, "float16", {"float16": against})


_BLOCKS: Final = say(
    "linear.blocks",
    "The denoiser's transformer blocks compute in float16, which the self-test found right here, its convolutions in float32: in float16 they "
    "give NaN on such cards.",
)  # fmt: skip


def _blocks(situation: Situation, dtype: Dtype) -> FieldDecision | None:
    """Decide in which dtype a UNet's transformer blocks compute on a card that computes in float32 for the sake of convolutions alone;
    None elsewhere."""
    slow = {each.id for each in situation.quirks if "dtype/float16" in each.against}
    if dtype != "float32" or slow != {"gtx16-fp16"} or not any(part.name == "unet" for part in situation.need.parts):
        return None
    options = (Option("float16", _BLOCKS, MEASURED_HERE), Option("float32", say("linear.wide", "Linear layers multiply in float32.")))
    against: list[Reason] = []
    if situation.choice.dtype == dtype:
        against.append(Reason("linear", say("plan.yours", "You asked for {option}.", option=dtype)))
    elif 0 < sum(part.parameters for part in situation.need.parts) < SMALL_MODEL:
        against.append(Reason("linear", _SMALL_WORDS))
    elif any(Subject.path(name, "float16") not in situation.verdicts for name in ("linear/float16", "kernels/efficient")):
        words = say(
            "linear.blocks-untested",
            "Transformer blocks compute in float16 once the self-test, which runs while Hearth is idle, has found that right here.",
        )
        against.append(Reason("linear", words))
    elif not situation.verdicts[Subject.path("kernels/efficient", "float16")].passed:
        words = say("linear.blocks-attention", "Attention came out wrong in float16 here, so transformer blocks compute in float32.")
        against.append(Reason("linear", words, MEASURED_HERE))
    return decide_field(situation, "linear", options, "float16", {"float16": against})


def without_codec(made: Iterable[Precision]) -> tuple[Precision, ...]:
    """Return the parts with the codec on the processor."""
    return tuple(replace(how, device="cpu") if how.role == "codec" else how for how in made)


def make_room(hardware: Hardware, made: Iterable[Precision]) -> tuple[Precision, ...]:
    """Return the parts as they take the least of the device's memory: the codec can leave a card, but not a memory that is one."""
    return tuple(made) if hardware.unified else without_codec(made)


def _storage(situation: Situation, dtype: Dtype, made: list[Precision]) -> FieldDecision:
    """Decide whether to store weights narrower than they are computed with, to fit or to load sooner. `made`: in full width."""
    half: Dtype = "bfloat16" if situation.hardware.kind == "cpu" else "float16"
    names: tuple[Dtype, ...] = (dtype, half) if dtype == "float32" and not situation.need.plain else (dtype,)
    options = [Option(name, say("storage.same", "Weights are kept in {dtype}.", dtype=name)) for name in names]
    if dtype != "float32":
        return decide_field(situation, "storage", options, dtype)
    need, hardware = situation.need, situation.hardware
    needed = needed_bytes(need, make_room(hardware, made), "none", "none", Vae(True, SMALLEST_TILE_PIXELS))
    usable = usable_bytes(hardware)
    more: list[Reason] = []
    if need.kind == "speech":
        words = say(
            "storage.scratch",
            "In float32 it would need {gib} GiB, more than 85% of the {free} GiB free, so weights are stored in half precision; "
            "each layer is widened in one buffer as it computes.",
            **too_much(needed, hardware),
        )
        more = [Reason("storage", words)] if needed > usable else []
    # Widening costs a picture next to nothing: a layer computes for long.
    elif needed > min(usable, free_bytes(hardware) // (1 if hardware.unified else 2)):
        words = say(
            "storage.tight",
            "Weights of {gib} GiB in float32 leave too little memory, so they are stored in half precision and widened layer by layer.",
            gib=gib(needed),
        )
        more = [Reason("storage", words)]
    return decide_field(situation, "storage", options, dtype, {"float32": more})
