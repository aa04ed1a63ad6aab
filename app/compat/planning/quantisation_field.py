"""Decide which weights to quantise, and how: preferences by device, and objections to each format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from app.base.sentence import say
from app.compat.machine.hardware import Hardware, Kind
from app.compat.machine.verdicts import Subject
from app.compat.planning.memory_formulas import (
    SMALLEST_TILE_PIXELS,
    free_bytes,
    gib,
    is_quantised,
    needed_bytes,
    part_bytes,
    too_much,
    usable_bytes,
)
from app.compat.planning.options import MEASURED_HERE, FieldDecision, Option, Situation, decide_field, failed_sentence
from app.compat.planning.precision_fields import SMALL_MODEL
from app.compat.planning.product_field import find_share, is_admitted, list_objections, right_subject
from app.compat.planning.types import Dtype, Need, Offload, Precision, Quantised, Reason, Vae

_SMALLEST: Final = Vae(True, SMALLEST_TILE_PIXELS)
_PICTURE_OFFLOADS: Final[tuple[Offload, ...]] = ("none", "model", "group")
PACKED: Final[tuple[Quantised, ...]] = ("int8", "int4")
"""Hearth packs these for torch's own kernels."""
QUICKER: Final = 0.8
"""At most this share of the plain time counts as quicker: noise must not decide how a voice computes."""
PACKED_KINDS: Final[tuple[Kind, ...]] = ("cpu", "mps")
"""torch has quick kernels for them on these kinds of device."""
_NAMES: Final[tuple[Quantised, ...]] = (*PACKED, "awq", "bnb-nf4", "bnb-int8", "torchao-int8", "gguf")
_PACKAGE: Final = {"awq": "gptqmodel", "bnb-nf4": "bitsandbytes", "bnb-int8": "bitsandbytes", "torchao-int8": "torchao", "gguf": "gguf"}
_AMPERE: Final = (8, 0)


def preferred_ways(situation: Situation, dtype: Dtype) -> tuple[Quantised, ...]:
    """Return the formats to prefer, by device and by speech or picture; first what a card multiplies by Hearth's kernel."""
    hardware, speech = situation.hardware, situation.need.kind != "picture"
    own = tuple(each for each in PACKED if speech and hardware.kind == "cuda" and is_admitted(situation, "kernel", each, dtype))  # type: ignore[arg-type]
    return (*own, *_preferred(hardware, speech))


def _preferred(hardware: Hardware, speech: bool) -> tuple[Quantised, ...]:
    if hardware.kind in ("cuda", "rocm"):
        capability = hardware.capability or _AMPERE
        if capability >= _AMPERE:
            return ("awq", "bnb-nf4", "bnb-int8") if speech else ("bnb-nf4", "torchao-int8", "gguf")
        if capability >= (6, 0):
            return ("bnb-nf4", "bnb-int8") if speech else ("gguf", "bnb-nf4")
        return () if speech else ("gguf",)
    if hardware.kind == "mps":
        return (*PACKED, "bnb-nf4") if speech else ("gguf", "bnb-nf4")
    return (*PACKED, "bnb-int8", "torchao-int8") if speech else ("gguf", "torchao-int8")


def decide_quantised(situation: Situation, how: tuple[Precision, ...]) -> FieldDecision:
    first = preferred_ways(situation, _find_dtype(how))
    order = [*first, *(name for name in _NAMES if name not in first)]
    why = {name: say("quantised.smaller", "{kind} weights fit here and run correctly.", kind=name) for name in order}
    options = [Option(name, why[name], "a judgement, by device") for name in order]
    none = Option("none", say("quantised.none", "The weights fit unquantised, so nothing is lost."))
    more: dict[str, list[Reason]] = {name: _unusable(situation, name, how) for name in order}
    for name in order[len(first) :]:
        more[name].append(
            Reason("quantised", say("quantised.elsewhere", "Other formats run better than {kind} on this machine.", kind=name))
        )
    more["none"] = _too_heavy(situation, how)
    every = [none, *options]
    quicker = _find_quicker(situation, _find_dtype(how))
    if quicker is not None:
        every = [quicker, none, *(each for each in options if each.name != quicker.name)]
    if situation.need.published != "none":
        # The published format comes first, because it is the one that was tested.
        every.sort(key=lambda each: each.name != situation.need.published)
    return decide_field(situation, "quantised", every, None, more, forced=situation.choice.quantised)


def _find_dtype(how: tuple[Precision, ...]) -> Dtype:
    return next((each.compute for each in how if each.role == "speech"), "float32")


def _find_quicker(situation: Situation, dtype: Dtype) -> Option | None:
    """Return 8-bit weights as what comes before unquantised ones, where the self-test found them right and quicker."""
    need, verdicts = situation.need, situation.verdicts
    pace, own = verdicts.get(Subject.quicker("int8", dtype)), situation.hardware.kind == "cuda"
    right = verdicts.get(right_subject("kernel", "int8", dtype) if own else Subject.path("quantised/int8", dtype))
    small = sum(part.parameters for part in need.parts) < SMALL_MODEL
    if need.kind != "speech" or small or situation.choice.dtype is not None or not (pace and right and right.passed):
        return None
    # Both were measured by torch's own way of multiplying them; the better ways of each count.
    share = pace.error * find_share(situation, "int8", dtype) / find_share(situation, "half", dtype)
    if share > QUICKER:
        return None
    words = say(
        "quantised.quicker",
        "8-bit weights multiply in {percent}% of the time here, and each row of speech reads all weights. Little is lost: in the starter "
        "voice, where it was measured, 97 of 100 choices stay the same.",
        percent=round(100 * share),
    )
    return Option("int8", words, MEASURED_HERE)


def _unusable(situation: Situation, name: Quantised, how: tuple[Precision, ...]) -> list[Reason]:
    """Object to a format that this machine, this model or what is installed has no use for."""
    need, packages = situation.need, situation.hardware.packages
    found = [Reason("quantised", why, "this machine", overrules=True) for kind, why in need.impossible if kind == name]
    if name in PACKED:
        found += _without_packing(situation, name, how)
    elif name == "awq":
        found += _without_awq(situation)
    elif name == "gguf":
        found += _without_gguf(need)
    elif name in ("bnb-nf4", "bnb-int8"):
        found += _without_bitsandbytes(situation, name, how)
    package = _PACKAGE.get(name)
    if package and packages is not None and package not in packages:
        words = say(
            "quantised.package",
            '{package} is not installed. Add "Weights in fewer bits" on the Machine tab, or run `{hearth} add quantised`.',
            package=package,
        )
        found.append(Reason("quantised", words, fatal=True))
    return found


def _without_packing(situation: Situation, name: Quantised, how: tuple[Precision, ...]) -> Iterator[Reason]:
    if situation.need.kind == "picture":
        words = say("quantised.packed-speech", "These weights are packed for a voice, which multiplies few lines at a time.")
        yield Reason("quantised", words, fatal=True)
    if situation.hardware.kind not in PACKED_KINDS:
        yield from _without_kernel(situation, name, how)
    verdict = situation.verdicts.get(Subject.path(f"quantised/{name}", _find_dtype(how)))
    if verdict is not None and not verdict.passed:
        yield Reason("quantised", failed_sentence(name, verdict), MEASURED_HERE, fatal=True)
    needed = needed_bytes(situation.need, how, "int8", "none", _SMALLEST)
    if name == "int8" and needed > usable_bytes(situation.hardware):
        words = say(
            "quantised.packed-heavy",
            "8-bit weights need {gib} GiB, more than 85% of the {free} GiB free.",
            **too_much(needed, situation.hardware),
        )
        yield Reason("quantised", words)


def _without_kernel(situation: Situation, name: Quantised, how: tuple[Precision, ...]) -> Iterator[Reason]:
    """Object to packed weights on a card, where torch has no quick kernel for them."""
    own = list_objections(situation, "kernel", name, _find_dtype(how)) if situation.hardware.kind == "cuda" else []  # type: ignore[arg-type]
    if own or situation.hardware.kind != "cuda":
        words = say("quantised.packed-cards", "torch's kernels for these weights are quick on processors and Macs only.")
        yield Reason("quantised", words, "torch's int8mm.cu", fatal=True)
    yield from (replace(each, field="quantised", fatal=True) for each in own)
    sent = situation.choice.offload in ("group", "sequential") or any(
        "offload/group" in each.fallback.against for each in situation.learned
    )
    needed = needed_bytes(situation.need, how, name, "none", _SMALLEST)
    if sent or needed > usable_bytes(situation.hardware):
        words = say("quantised.packed-stays", "Packed weights stay on the card as a whole: they are not sent to it layer by layer.")
        yield Reason("quantised", words, fatal=True)


def _without_awq(situation: Situation) -> Iterator[Reason]:
    hardware, need = situation.hardware, situation.need
    if hardware.kind != "cuda" or (hardware.capability or (0, 0)) < _AMPERE:
        yield Reason(
            "quantised",
            say(
                "quantised.awq-sm80",
                "AWQ's kernels need an NVIDIA card with compute capability 8.0. Elsewhere the weights are unpacked, or replaced "
                "by bitsandbytes, torchao or GGUF if they do not fit.",
            ),
            "AutoAWQ's kernels",
            fatal=True,
        )
    if "awq" not in (need.published, *need.also_published):
        yield Reason("quantised", say("quantised.not-awq", "This model is not published in AWQ."), fatal=True)


def _without_gguf(need: Need) -> Iterator[Reason]:
    if need.kind != "picture":
        yield Reason("quantised", say("quantised.gguf-pictures", "GGUF works for picture models only."), "diffusers", fatal=True)
    elif "gguf" not in (need.published, *need.also_published):
        yield Reason("quantised", say("quantised.not-gguf", "Hearth knows no GGUF file of this model."), fatal=True)


def _without_bitsandbytes(situation: Situation, name: Quantised, how: tuple[Precision, ...]) -> Iterator[Reason]:
    hardware, pictures = situation.hardware, situation.need.kind == "picture"
    pairs = zip(situation.need.parts, how, strict=True)
    made = sum(part_bytes(part, each, name) for part, each in pairs if is_quantised(part, name))
    if pictures and hardware.kind in ("cuda", "rocm") and made > usable_bytes(hardware):
        words = say(
            "quantised.bnb-room",
            "bitsandbytes makes these weights on the card, where all of them need {gib} GiB at once, more than 85% of the {free} GiB free.",
            **too_much(made, hardware),
        )
        yield Reason("quantised", words, "diffusers' and transformers' quantizers", fatal=made > free_bytes(hardware))
    if hardware.kind == "cuda" and (hardware.capability or (6, 0)) < (6, 0):
        words = say("quantised.bnb-sm60", "bitsandbytes needs compute capability 6.0.")
        yield Reason("quantised", words, "bitsandbytes 0.50", fatal=True)
    if hardware.kind == "mps" and hardware.torch.startswith(("2.6", "2.7", "2.8")):
        words = say("quantised.bnb-metal", "bitsandbytes on Metal needs torch 2.9.")
        yield Reason("quantised", words, "bitsandbytes 0.50", fatal=True)
    if pictures and hardware.kind not in ("cuda", "rocm", "mps"):
        words = say("quantised.bnb-pictures", "diffusers can make bitsandbytes weights on a GPU only; torchao is used here.")
        yield Reason("quantised", words, "diffusers' quantizers/bitsandbytes", fatal=True)
    if pictures and name == "bnb-int8" and hardware.kind == "mps":
        words = say(
            "quantised.bnb-int8-metal", "diffusers can make 8-bit bitsandbytes weights on NVIDIA cards only; 4-bit ones also on Metal."
        )
        yield Reason("quantised", words, "diffusers' quantizers/bitsandbytes", fatal=True)


def _too_heavy(situation: Situation, how: tuple[Precision, ...]) -> list[Reason]:
    """Object to offloading speech weights, because each step reads all of them."""
    allowed = _PICTURE_OFFLOADS if situation.need.kind == "picture" else _PICTURE_OFFLOADS[:1]
    if situation.hardware.unified:
        allowed = allowed[:2]
    least = min(needed_bytes(situation.need, how, "none", offload, _SMALLEST) for offload in allowed)
    total = sum(part_bytes(part, each, "none") for part, each in zip(situation.need.parts, how, strict=True))
    if least > usable_bytes(situation.hardware):
        words = say(
            "quantised.heavy",
            "The unquantised weights need at least {gib} GiB, more than 85% of the {free} GiB free.",
            **too_much(least, situation.hardware),
        )
        return [Reason("quantised", words)]
    ram_bytes = situation.hardware.ram_bytes
    if not situation.hardware.unified and ram_bytes and total > ram_bytes * 3 // 4:
        return [
            Reason(
                "quantised", say("quantised.ram", "Weights of {gib} GiB do not fit in the computer's main memory either.", gib=gib(total))
            )
        ]
    return []
