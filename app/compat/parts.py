"""Where a model's weights go and in what shape: precision part by part, quantisation, offload, and how a picture is decoded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from app.compat.memory import (
    GIB,
    SCRATCH_BYTES,
    SMALLEST_TILE_PIXELS,
    TILE_PIXELS,
    needed_bytes,
    part_bytes,
    resident_bytes,
    vae_bytes,
)
from app.compat.rules import DTYPES, free_bytes
from app.compat.settle import Case, Objection, Option, Settled, objections, reasons, settle
from app.compat.terms import Dtype, Offload, Part, Precision, Quantised, Reason, Rejected, Vae
from app.sentence import say

_SMALLEST: Final = Vae(True, SMALLEST_TILE_PIXELS)
_PICTURE_OFFLOADS: Final[tuple[Offload, ...]] = ("none", "model", "group")


@dataclass(frozen=True, slots=True)
class Parts:
    precision: tuple[Precision, ...]
    quantised: Quantised
    offload: Offload
    vae: Vae
    resident_bytes: int
    """The most weights that lie on the device at once."""
    settled: dict[str, Settled]


def parts(case: Case, dtype: Dtype, device: str) -> Parts:
    how, precision_settled = precision(case, dtype, device)
    small = quantised(case, how)
    quantisation: Quantised = small.option  # type: ignore[assignment]
    moved = offload(case, how, quantisation)
    offloading: Offload = moved.option  # type: ignore[assignment]
    vae, decoding = decode(case, how, quantisation, offloading)
    resident = max(
        (resident_bytes(case.need, how, quantisation, offloading, each) for each in case.need.parts), default=0
    )
    settled = {"precision": precision_settled, "quantised": small, "offload": moved, "vae": decoding}
    return Parts(how, quantisation, offloading, vae, resident, settled)


# Precision: what a part is computed in, what its weights are kept in, and where.


def precision(case: Case, dtype: Dtype, device: str) -> tuple[tuple[Precision, ...], Settled]:
    each_part = [_compute(case, part, dtype) for part in case.need.parts]
    storing = _storage(case, dtype)
    made = []
    for part, (compute, _) in zip(case.need.parts, each_part, strict=True):
        narrow = compute == dtype and part.role in ("text", "denoiser", "speech")
        stored: Dtype = storing.option if narrow else compute  # type: ignore[assignment]
        made.append(Precision(part.name, part.role, stored, compute, device))
    made = _codec_aside(case, made)
    rejected = tuple(each for _, found in each_part for each in found) + storing.rejected
    apart = next((found for _, found in each_part if found), ())
    if any(each.storage != each.compute for each in made):
        because = storing.because
    elif apart:
        because = apart[0].objections[0]
    else:
        because = Reason(
            "precision",
            say("precision.same", "Every part computes in {dtype} and keeps its weights so.", dtype=dtype),
            "Hearth's rule",
        )
    if any(each.role == "codec" for each in made) and dtype != "float32" and not apart and storing.option == dtype:
        because = Reason(
            "precision",
            say("precision.codec", "Everything is {dtype} but the codec: sound is decoded in float32.", dtype=dtype),
            "transformers' Dia",
        )
    return tuple(made), Settled(storing.option, because, rejected, storing.warnings)


def _compute(case: Case, part: Part, dtype: Dtype) -> tuple[Dtype, tuple[Rejected, ...]]:
    if part.role == "codec":
        return "float32", ()
    if part.half_is_safe or dtype != "float16":
        return dtype, ()
    against = objections(case, "unsafe", "float16", dtype)
    if not against:
        return dtype, ()
    # The next of this machine's dtypes that nothing speaks against and that does not overflow.
    wider: Dtype = next(
        (
            each
            for each in DTYPES[case.hardware.kind]
            if each != "float16" and not objections(case, "dtype", each, None)
        ),
        "float32",
    )
    return wider, (Rejected("precision", f"{part.name}: float16", reasons("precision", against)),)


def _storage(case: Case, dtype: Dtype) -> Settled:
    """Weights may be kept narrower than they are computed with, where that is what lets them fit or arrive sooner."""
    half: Dtype = "bfloat16" if case.hardware.kind == "cpu" else "float16"
    names: tuple[Dtype, ...] = (dtype, half) if dtype == "float32" else (dtype,)
    options = [Option(name, say("storage.same", "Weights are kept in {dtype}.", dtype=name)) for name in names]
    if dtype != "float32":
        return settle(case, "storage", options, dtype)
    wide = sum(part.parameters for part in case.need.parts) * 4 + SCRATCH_BYTES[case.need.kind]
    more = []
    # A card widens weights for next to nothing, a processor does not.
    if wide > free_bytes(case.hardware) // (1 if case.hardware.unified else 2):
        more.append(
            Objection(
                say(
                    "storage.tight",
                    "Weights of {gib} GiB in float32 leave too little room, so they are kept in half and widened layer by layer.",
                    gib=_gib(wide),
                )
            )
        )
    return settle(case, "storage", options, dtype, {"float32": more})


def _codec_aside(case: Case, made: list[Precision]) -> list[Precision]:
    """The codec goes to the processor where the speech model leaves it no room."""
    sizes = sum(part_bytes(part, how, "none") for part, how in zip(case.need.parts, made, strict=True))
    if sizes + case.need.cache_bytes + SCRATCH_BYTES["speech"] <= free_bytes(case.hardware):
        return made
    return [replace(how, device="cpu") if how.role == "codec" else how for how in made]


# Quantisation: section C of the facts, a judgement. The first that is listed and that nothing speaks against.

_NAMES: Final[tuple[Quantised, ...]] = ("awq", "bnb-nf4", "bnb-int8", "torchao-int8", "gguf")
_PACKAGE: Final = {
    "awq": "gptqmodel",
    "bnb-nf4": "bitsandbytes",
    "bnb-int8": "bitsandbytes",
    "torchao-int8": "torchao",
    "gguf": "gguf",
}
_AMPERE: Final = (8, 0)


def preferred(case: Case) -> tuple[Quantised, ...]:
    """By what the machine is and whether it is to speak or to paint."""
    hardware, speech = case.hardware, case.need.kind != "picture"
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


def quantised(case: Case, how: tuple[Precision, ...]) -> Settled:
    first = preferred(case)
    order = [*first, *(name for name in _NAMES if name not in first)]
    why = {
        name: say("quantised.smaller", "{kind} weights are what fits here and runs right.", kind=name) for name in order
    }
    options = [Option(name, why[name], "a judgement, by device") for name in order]
    none = Option("none", say("quantised.none", "The weights fit as they are, and nothing is lost."))
    more: dict[str, list[Objection]] = {name: _unusable(case, name) for name in order}
    for name in order[len(first) :]:
        more[name].append(
            Objection(say("quantised.elsewhere", "{kind} is not what this machine does best.", kind=name))
        )
    more["none"] = _too_heavy(case, how)
    as_published = case.need.published == "awq" and not more["awq"]
    if as_published:
        more["none"].append(
            Objection(
                say("quantised.published", "The model is published in AWQ, and this card computes with it as it is.")
            )
        )
    return settle(case, "quantised", [none, *options], None, more, case.choice.quantised)


def _unusable(case: Case, name: Quantised) -> list[Objection]:
    hardware, need, found = case.hardware, case.need, list[Objection]()
    if name == "awq" and (hardware.kind != "cuda" or (hardware.capability or (0, 0)) < _AMPERE):
        found.append(
            Objection(
                say(
                    "quantised.awq-sm80",
                    "AWQ needs an NVIDIA card of compute capability 8.0; bitsandbytes, torchao, GGUF or plain weights take its place.",
                ),
                "AutoAWQ's kernels",
                True,
            )
        )
    if name == "awq" and need.published != "awq" and "awq" not in need.also_published:
        found.append(Objection(say("quantised.not-awq", "This model is not published in AWQ."), fatal=True))
    if name == "gguf" and need.kind != "picture":
        found.append(Objection(say("quantised.gguf-pictures", "GGUF is read for pictures only."), "diffusers", True))
    elif name == "gguf" and need.published != "gguf" and "gguf" not in need.also_published:
        found.append(Objection(say("quantised.not-gguf", "No GGUF file of this model is known."), fatal=True))
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
    package = _PACKAGE[name]
    if hardware.packages is not None and package not in hardware.packages:
        found.append(
            Objection(
                say("quantised.package", "{package} is not installed here: pip install {package}.", package=package),
                fatal=True,
            )
        )
    return found


def _too_heavy(case: Case, how: tuple[Precision, ...]) -> list[Objection]:
    """Speech reads all its weights at every step, so moving them in and out is no way for it."""
    allowed = _PICTURE_OFFLOADS if case.need.kind == "picture" else _PICTURE_OFFLOADS[:1]
    if case.hardware.unified:
        allowed = allowed[:2]
    least = min(needed_bytes(case.need, how, "none", offload, _SMALLEST) for offload in allowed)
    free = free_bytes(case.hardware)
    total = sum(part_bytes(part, each, "none") for part, each in zip(case.need.parts, how, strict=True))
    if least > free:
        return [
            Objection(
                say(
                    "quantised.heavy",
                    "The weights as they are ask for {gib} GiB at least, and {free} GiB are free.",
                    gib=_gib(least),
                    free=_gib(free),
                )
            )
        ]
    if not case.hardware.unified and case.hardware.ram_bytes and total > case.hardware.ram_bytes * 3 // 4:
        return [
            Objection(
                say(
                    "quantised.ram",
                    "Weights of {gib} GiB do not fit the computer's own memory either.",
                    gib=_gib(total),
                )
            )
        ]
    return []


# Offload and decoding.


def offload(case: Case, how: tuple[Precision, ...], quantisation: Quantised) -> Settled:
    free = free_bytes(case.hardware)
    names: tuple[Offload, ...] = ("none", "model", "group", "sequential")
    options = (
        Option("none", say("offload.none", "Everything stays on the device: it fits.")),
        Option("model", say("offload.model", "One part at a time is on the device.")),
        Option("group", say("offload.group", "Layers come to the device in groups.")),
        Option(
            "sequential", say("offload.sequential", "Layers come to the device one by one: slow, in the least memory.")
        ),
    )
    more: dict[str, list[Objection]] = {name: [] for name in names}
    for name in names:
        needed = needed_bytes(case.need, how, quantisation, name, _SMALLEST)
        if needed > free and case.hardware.unified:
            more[name].append(
                Objection(
                    say(
                        "offload.swap",
                        "It asks for {gib} GiB of the {free} that are free, so parts are unloaded after their turn.",
                        gib=_gib(needed),
                        free=_gib(free),
                    )
                )
            )
        elif needed > free:
            more[name].append(
                Objection(
                    say(
                        "offload.full",
                        "It asks for {gib} GiB, and {free} GiB of the card are free.",
                        gib=_gib(needed),
                        free=_gib(free),
                    )
                )
            )
    if case.hardware.unified:
        one_memory = Objection(
            say(
                "offload.unified",
                "Device and processor share one memory here: moving layers between them frees nothing.",
            ),
            fatal=True,
        )
        more["group"].append(one_memory)
        more["sequential"].append(one_memory)
    return settle(case, "offload", options, None, more, case.choice.offload)


def decode(case: Case, how: tuple[Precision, ...], quantisation: Quantised, offloading: Offload) -> tuple[Vae, Settled]:
    need = case.need
    found = next(((part, each) for part, each in zip(need.parts, how, strict=True) if part.role == "vae"), None)
    if found is None or not need.width or not need.height:
        nothing = Option("whole", say("vae.nothing", "No picture is decoded here."))
        return Vae(), settle(case, "vae", (nothing,), None)
    part, each = found
    room = free_bytes(case.hardware) - resident_bytes(need, how, quantisation, offloading, part)
    options = [Option("whole", say("vae.whole", "The picture is decoded whole: it fits."))]
    more: dict[str, list[Objection]] = {}
    for tile in (0, TILE_PIXELS, SMALLEST_TILE_PIXELS):
        name = str(tile) if tile else "whole"
        if tile:
            options.append(
                Option(name, say("vae.tiles", "The picture is decoded in tiles of {pixels} pixels.", pixels=tile))
            )
        needed = vae_bytes(need.width, need.height, each.compute, tile)
        if needed > room:
            more[name] = [
                Objection(
                    say(
                        "vae.room",
                        "Decoding in this way takes {gib} GiB, and {room} GiB are left beside the weights, so it goes in smaller pieces.",
                        gib=_gib(needed),
                        room=_gib(max(0, room)),
                    ),
                    "InvokeAI's rule of 2200 bytes a pixel",
                )
            ]
    settled = settle(case, "vae", options, None, more)
    # One picture of a batch at a time is exact and saves memory: always.
    return Vae(True, 0 if settled.option == "whole" else int(settled.option)), settled


def _gib(size_bytes: int) -> float:
    return round(size_bytes / GIB, 1)
