"""Decide which weights to quantise, and how: preferences by device, and objections to each format."""

from __future__ import annotations

from typing import Final

from app.compat.planning.memory_formulas import SMALLEST_TILE_PIXELS, free_bytes, gib, needed_bytes, part_bytes
from app.compat.planning.options import FieldDecision, Objection, Option, Situation, decide_field
from app.compat.planning.types import Offload, Precision, Quantised, Vae
from app.sentence import say

_SMALLEST: Final = Vae(True, SMALLEST_TILE_PIXELS)
_PICTURE_OFFLOADS: Final[tuple[Offload, ...]] = ("none", "model", "group")
_NAMES: Final[tuple[Quantised, ...]] = ("awq", "bnb-nf4", "bnb-int8", "torchao-int8", "gguf")
_PACKAGE: Final = {
    "awq": "gptqmodel",
    "bnb-nf4": "bitsandbytes",
    "bnb-int8": "bitsandbytes",
    "torchao-int8": "torchao",
    "gguf": "gguf",
}
_AMPERE: Final = (8, 0)


def preferred_ways(situation: Situation) -> tuple[Quantised, ...]:
    """Return the formats to prefer, by device and by speech or picture."""
    hardware, speech = situation.hardware, situation.need.kind != "picture"
    if hardware.kind in ("cuda", "rocm"):
        capability = hardware.capability or _AMPERE
        if capability >= _AMPERE:
            return ("awq", "bnb-nf4", "bnb-int8") if speech else ("bnb-nf4", "torchao-int8", "gguf")
        if capability >= (6, 0):
            return ("bnb-nf4", "bnb-int8") if speech else ("gguf", "bnb-nf4")
        return () if speech else ("gguf",)
    if hardware.kind == "mps":
        return ("bnb-nf4",) if speech else ("gguf", "bnb-nf4")
    return ("bnb-int8", "torchao-int8") if speech else ("gguf", "torchao-int8")


def decide_quantised(situation: Situation, how: tuple[Precision, ...]) -> FieldDecision:
    first = preferred_ways(situation)
    order = [*first, *(name for name in _NAMES if name not in first)]
    why = {name: say("quantised.smaller", "{kind} weights fit here and run correctly.", kind=name) for name in order}
    options = [Option(name, why[name], "a judgement, by device") for name in order]
    none = Option("none", say("quantised.none", "The weights fit unquantised, so nothing is lost."))
    more: dict[str, list[Objection]] = {name: _unusable(situation, name) for name in order}
    for name in order[len(first) :]:
        more[name].append(
            Objection(say("quantised.elsewhere", "Other formats run better than {kind} on this machine.", kind=name))
        )
    more["none"] = _too_heavy(situation, how)
    every = [none, *options]
    if situation.need.published != "none":
        # The published format comes first, because it is the one that was tested.
        every.sort(key=lambda each: each.name != situation.need.published)
    return decide_field(situation, "quantised", every, None, more, situation.choice.quantised)


def _unusable(situation: Situation, name: Quantised) -> list[Objection]:
    hardware, need, found = situation.hardware, situation.need, list[Objection]()
    found += [Objection(why, "this machine", overrules=True) for kind, why in need.impossible if kind == name]
    if name == "awq" and (hardware.kind != "cuda" or (hardware.capability or (0, 0)) < _AMPERE):
        found.append(
            Objection(
                say(
                    "quantised.awq-sm80",
                    "AWQ's kernels need an NVIDIA card with compute capability 8.0. "
                    "Elsewhere the weights are unpacked, or replaced by bitsandbytes, "
                    "torchao or GGUF if they do not fit.",
                ),
                "AutoAWQ's kernels",
                True,
            )
        )
    if name == "awq" and need.published != "awq" and "awq" not in need.also_published:
        found.append(Objection(say("quantised.not-awq", "This model is not published in AWQ."), fatal=True))
    if name == "gguf" and need.kind != "picture":
        found.append(
            Objection(say("quantised.gguf-pictures", "GGUF works for picture models only."), "diffusers", True)
        )
    elif name == "gguf" and need.published != "gguf" and "gguf" not in need.also_published:
        found.append(Objection(say("quantised.not-gguf", "Hearth knows no GGUF file of this model."), fatal=True))
    if name.startswith("bnb") and hardware.kind == "cuda" and (hardware.capability or (6, 0)) < (6, 0):
        found.append(
            Objection(
                say("quantised.bnb-sm60", "bitsandbytes needs compute capability 6.0."), "bitsandbytes 0.50", True
            )
        )
    if name.startswith("bnb") and hardware.kind == "mps" and hardware.torch.startswith(("2.6", "2.7", "2.8")):
        found.append(
            Objection(say("quantised.bnb-metal", "bitsandbytes on Metal needs torch 2.9."), "bitsandbytes 0.50", True)
        )
    if name.startswith("bnb") and need.kind == "picture" and hardware.kind not in ("cuda", "rocm", "mps"):
        found.append(
            Objection(
                say("quantised.bnb-pictures", "diffusers can make bitsandbytes weights on a GPU only; torchao is used here."),
                "diffusers' quantizers/bitsandbytes",
                True,
            )
        )  # fmt: skip
    if name == "bnb-int8" and need.kind == "picture" and hardware.kind == "mps":
        found.append(
            Objection(
                say("quantised.bnb-int8-metal", "diffusers can make 8-bit bitsandbytes weights on NVIDIA cards only; 4-bit ones also on Metal."),
                "diffusers' quantizers/bitsandbytes",
                True,
            )
        )  # fmt: skip
    package = _PACKAGE[name]
    if hardware.packages is not None and package not in hardware.packages:
        found.append(
            Objection(
                say(
                    "quantised.package",
                    "{package} is not installed. Run `start.py add quantised`, or pip install {package}.",
                    package=package,
                ),
                fatal=True,
            )
        )
    return found


def _too_heavy(situation: Situation, how: tuple[Precision, ...]) -> list[Objection]:
    """Object to offloading speech weights, because each step reads all of them."""
    allowed = _PICTURE_OFFLOADS if situation.need.kind == "picture" else _PICTURE_OFFLOADS[:1]
    if situation.hardware.unified:
        allowed = allowed[:2]
    least = min(needed_bytes(situation.need, how, "none", offload, _SMALLEST) for offload in allowed)
    free = free_bytes(situation.hardware)
    total = sum(part_bytes(part, each, "none") for part, each in zip(situation.need.parts, how, strict=True))
    if least > free:
        return [
            Objection(
                say(
                    "quantised.heavy",
                    "The unquantised weights need at least {gib} GiB, but only {free} GiB are free.",
                    gib=gib(least),
                    free=gib(free),
                )
            )
        ]
    if (
        not situation.hardware.unified
        and situation.hardware.ram_bytes
        and total > situation.hardware.ram_bytes * 3 // 4
    ):
        return [
            Objection(
                say(
                    "quantised.ram",
                    "Weights of {gib} GiB do not fit in the computer's main memory either.",
                    gib=gib(total),
                )
            )
        ]
    return []
