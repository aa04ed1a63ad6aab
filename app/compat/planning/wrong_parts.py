"""Turn what came out wrong on this machine, an operation or a starter's part, into objections to a dtype or to the device. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from app.base.sentence import Sentence, say
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.options import MEASURED_HERE, Situation
from app.compat.planning.types import Dtype, ModelPart, Reason

OPERATIONS: Final = {"attention": ("linear",), "speech": ("linear",), "picture": ("linear", "convolution")}
"""The parts that compute in a plan's dtype are made of these, besides attention."""
PARTS: Final = {"attention": (), "speech": ("voice-text", "voice-row"), "picture": ("text", "denoiser")}
"""These parts of the starters compute in a plan's dtype, by the kind of model that they speak for."""
PART_WORDS: Final[dict[str, Sentence]] = {
    "linear": say("wrong.linear", "linear layers"),
    "convolution": say("wrong.convolution", "convolutions"),
    "text": say("wrong.text", "the starter painter's text encoder"),
    "denoiser": say("wrong.denoiser", "a step of the starter painter"),
    "vae": say("wrong.vae", "the starter painter's decoder"),
    "voice-text": say("wrong.voice-text", "the starter voice's text encoder"),
    "voice-row": say("wrong.voice-row", "a row of the starter voice"),
    "codec": say("wrong.codec", "the starter voice's codec"),
}


def object_to_dtype(situation: Situation, dtype: Dtype) -> list[Reason]:
    """Collect what came out wrong in this dtype and matters for this kind of model."""
    return [_objection("dtype", found, name, dtype) for found, name in _failed(situation, dtype)]


def object_to_decoder(situation: Situation, dtype: Dtype) -> list[Reason]:
    return _object_to_part(situation, "vae", dtype)


def object_to_codec(situation: Situation) -> list[Reason]:
    """Collect what speaks against running the codec, which computes in float32, on the device."""
    return _object_to_part(situation, "codec", "float32")


def object_to_part(situation: Situation, part: ModelPart, dtype: Dtype) -> list[Reason]:
    """Collect what speaks against computing a part of a model in this dtype."""
    if part.role == "codec":
        return []
    return [*(object_to_decoder(situation, dtype) if part.role == "vae" else ()), *object_to_dtype(situation, dtype)]


def usable_dtypes(part: ModelPart, dtypes: Sequence[Dtype]) -> list[Dtype]:
    """Return the dtypes in which a part does not overflow."""
    return [each for each in dtypes if part.half_is_safe or part.scales or each != "float16"]


def object_to_device(situation: Situation, dtypes: Sequence[Dtype]) -> list[Reason]:
    """Object to a device on which some part of the model is wrong in each dtype that it may be computed in."""
    parts = situation.need.parts or (ModelPart("attention", "denoiser", 0),)
    for part in parts:
        against = [object_to_part(situation, part, each) for each in usable_dtypes(part, dtypes)]
        if all(against):
            words = say(
                "device.wrong",
                "{machine} is not used: {why} No other precision is right either, so the processor computes, which is slower.",
                machine=situation.hardware.name,
                why=against[-1][0].sentence,
            )
            return [Reason("device", words, MEASURED_HERE, fatal=True, slower=True)]
    return []


def _failed(situation: Situation, dtype: Dtype) -> Iterator[tuple[Verdict, str]]:
    kind = situation.need.kind
    subjects = [(Subject.path(f"{name}/{dtype}", dtype), name) for name in OPERATIONS[kind]]
    subjects += [(Subject.part(name, dtype), name) for name in PARTS[kind]]
    for subject, name in subjects:
        found = situation.verdicts.get(subject)
        if found is not None and not found.passed:
            yield found, name


def _object_to_part(situation: Situation, part: str, dtype: Dtype) -> list[Reason]:
    found = situation.verdicts.get(Subject.part(part, dtype))
    return [] if found is None or found.passed else [_objection("precision", found, part, dtype)]


def _objection(field: str, found: Verdict, name: str, dtype: Dtype) -> Reason:
    said = say(
        "plan.wrong-part",
        "In {dtype} this machine computes {part} wrongly: {words}",
        dtype=dtype,
        part=PART_WORDS[name],
        words=_word_error(found),
    )
    return Reason(field, said, MEASURED_HERE, fatal=True)


def _word_error(found: Verdict) -> Sentence | str:
    if found.words:
        return found.words
    if not math.isfinite(found.error):
        return say("wrong.nan", "the result is not a number.")
    return say("wrong.off", "up to {percent}% off.", percent=f"{100 * found.error:.2g}")
