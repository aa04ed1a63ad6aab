"""Decide the fields for weights in turn: precision, quantisation, what is on the device at a time, and in how many pieces a picture is decoded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from app.base.sentence import Value, say
from app.compat.planning.memory_formulas import (
    MIB,
    SCORES_AT_LEAST,
    SCRATCH_BYTES,
    SMALLEST_TILE_PIXELS,
    TILE_PIXELS,
    gib,
    needed_bytes,
    part_bytes,
    resident_bytes,
    too_much,
    usable_bytes,
    vae_bytes,
    work_bytes,
)
from app.compat.planning.options import LEARNED_HERE, FieldDecision, Option, Situation, decide_field
from app.compat.planning.precision_fields import decide_precision, make_room, without_codec
from app.compat.planning.quantisation_field import decide_quantised
from app.compat.planning.types import Dtype, Offload, Precision, Quantised, Reason, Rejected, Vae

SMALLEST: Final = Vae(True, SMALLEST_TILE_PIXELS)


def decide_weights(situation: Situation, dtype: Dtype, device: str, unfolds: bool) -> tuple[dict[str, Any], dict[str, FieldDecision]]:
    """Return the plan's fields for weights, and the decision for each. `unfolds`: see Vae."""
    whole, stored = decide_precision(situation, dtype, device)
    # Neither is a weight quantised nor a layer sent for the sake of a codec that can leave the card.
    precision = make_room(situation.hardware, whole)
    small = decide_quantised(situation, precision)
    quantised: Quantised = small.option  # type: ignore[assignment]
    moved = decide_offload(situation, precision, quantised, unfolds)
    if precision != whole:
        precision, stored = _place_codec(situation, whole, quantised, moved, stored)
    precision, moved = keep_layers(situation, precision, quantised, moved)
    offload: Offload = moved.option  # type: ignore[assignment]
    vae, decoding = decide_vae(situation, precision, quantised, offload, unfolds)
    fields = {"precision": precision, "quantised": quantised, "offload": offload, "vae": vae}
    return fields, {"precision": stored, "quantised": small, "offload": moved, "vae": decoding}


def _place_codec(
    situation: Situation, whole: tuple[Precision, ...], quantisation: Quantised, moved: FieldDecision, stored: FieldDecision
) -> tuple[tuple[Precision, ...], FieldDecision]:
    """Leave the codec on the card where it fits beside the voice; else it computes on the processor, beside the loop that makes rows."""
    needed = needed_bytes(situation.need, whole, quantisation, "none", SMALLEST)
    if needed > usable_bytes(situation.hardware):
        words = say(
            "precision.codec-room",
            "The codec computes on the processor, while the card makes the next rows: with it the card would need {gib} GiB, more than 85% of "
            "the {free} GiB free.",
            **too_much(needed, situation.hardware),
        )
    elif moved.option != "none":
        words = say(
            "precision.codec-idle", "The codec computes on the processor, while the card makes the next rows: what is idle leaves the card."
        )
    else:
        return whole, stored
    codec = next(each for each in whole if each.role == "codec")
    gone = Rejected("precision", f"{codec.part}: {codec.device}", (Reason("precision", words),))
    return without_codec(whole), replace(stored, rejected=(*stored.rejected, gone))


def decide_offload(situation: Situation, how: tuple[Precision, ...], quantisation: Quantised, unfolds: bool = False) -> FieldDecision:
    """`unfolds`: see Vae."""
    names: tuple[Offload, ...] = ("none", "model", "group", "sequential")
    options = (
        Option("none", say("offload.none", "Everything stays on the device: it fits.")),
        Option("model", say("offload.model", "One component at a time is on the device.")),
        Option("group", say("offload.group", "Layers are moved to the device in groups.")),
        Option("sequential", say("offload.sequential", "Layers are moved to the device one by one: slow, but needs the least memory.")),
    )
    unified, more = situation.hardware.unified, dict[str, list[Reason]]()
    for name in names:
        needed = needed_bytes(situation.need, how, quantisation, name, replace(SMALLEST, unfolds=unfolds))
        sizes = too_much(needed, situation.hardware)
        if unified:
            words = say("offload.swap", "It needs {gib} GiB, more than 85% of the {free} GiB free.", **sizes)
        else:
            words = say("offload.full", "It needs {gib} GiB, more than 85% of the card's {free} GiB free.", **sizes)
        more[name] = [Reason("offload", words)] if needed > usable_bytes(situation.hardware) else []
    if unified:
        words = say("offload.unified", "Device and processor share one memory here: moving layers between them frees nothing.")
        more["group"].append(Reason("offload", words, fatal=True))
        more["sequential"].append(Reason("offload", words, fatal=True))
    if situation.need.plain:
        words = say("offload.plain", "The layers of this voice cannot be sent to the device one by one.")
        more["group"].append(Reason("offload", words, fatal=True))
        more["sequential"].append(Reason("offload", words, fatal=True))
    if unified and situation.need.kind == "speech":
        words = say("offload.voice", "The speech model and its codec alternate all the time, so neither can be unloaded.")
        more["model"].append(Reason("offload", words, fatal=True))
    return decide_field(situation, "offload", options, None, more, forced=situation.choice.offload, frugal=True)


def keep_layers(
    situation: Situation, how: tuple[Precision, ...], quantisation: Quantised, moved: FieldDecision
) -> tuple[tuple[Precision, ...], FieldDecision]:
    """Let as many layers of a voice or a denoiser stay on the card as fit, where the others are sent for each row or step."""
    need = situation.need
    part = next((pair for pair in zip(need.parts, how, strict=True) if pair[0].role in ("speech", "denoiser")), None)
    if part is None or moved.option != "group" or (quantisation != "none" and need.kind != "picture"):
        return how, moved
    # For attention's scores, which get a quarter of what is left, and for unpacked or wide copies and wide results where a card computes so.
    widens = need.kind == "picture" and (quantisation != "none" or part[1].storage != part[1].compute)
    beside = SCRATCH_BYTES[need.kind] // 2 * (1 + 2 * widens) + work_bytes(need, *part, quantisation) + SCORES_AT_LEAST
    room = usable_bytes(situation.hardware) - resident_bytes(need, how, quantisation, "group", part[0]) - beside
    if any("offload/none" in each.fallback.against for each in situation.learned):
        room //= 2  # memory ran out although all of it should have fit
    whole = part_bytes(*part, quantisation)
    kept = max(0, min(room, whole)) // MIB * MIB
    sizes: dict[str, Value] = {"why": moved.because.sentence, "kept": gib(kept), "whole": gib(whole)}
    words = say(
        "offload.kept",
        "{why} {kept} of {whole} GiB of the weights stay on the card; the others are sent for each row and never copied back.",
        **sizes,
    )
    if need.kind == "picture":
        words = say(
            "offload.kept-steps",
            "{why} {kept} of {whole} GiB of the denoiser stay on the card while a picture is painted; the rest is sent at each step.",
            **sizes,
        )
    made = tuple(replace(each, kept_bytes=kept) if each is part[1] else each for each in how)
    return made, replace(moved, because=replace(moved.because, sentence=words))


def _unmoved(situation: Situation, how: tuple[Precision, ...], quantisation: Quantised, now: Offload, unfolds: bool) -> Offload:
    """Return the offload that was used before memory ran out."""
    if not situation.learned or situation.choice.offload is not None:
        return situation.choice.offload or now
    return decide_offload(replace(situation, learned=()), how, quantisation, unfolds).option  # type: ignore[return-value]


def decide_vae(
    situation: Situation, how: tuple[Precision, ...], quantisation: Quantised, offloading: Offload, unfolds: bool
) -> tuple[Vae, FieldDecision]:
    need = situation.need
    found = next(((part, each) for part, each in zip(need.parts, how, strict=True) if part.role == "vae"), None)
    if found is None or not need.width or not need.height:
        nothing = Option("whole", say("vae.nothing", "No picture is decoded here."))
        return Vae(), decide_field(situation, "vae", (nothing,), None)
    part, each = found
    room = usable_bytes(situation.hardware) - resident_bytes(need, how, quantisation, offloading, part)
    # Memory freed by offloading after a failed run is not for larger tiles.
    before = usable_bytes(situation.hardware) - resident_bytes(
        need, how, quantisation, _unmoved(situation, how, quantisation, offloading, unfolds), part
    )
    options = [Option("whole", say("vae.whole", "The picture is decoded in one piece: it fits."))]
    more: dict[str, list[Reason]] = {}
    # A tile as large as the picture would change nothing.
    tiles = (0, *(each for each in (TILE_PIXELS, SMALLEST_TILE_PIXELS) if each < max(need.width, need.height)))
    for tile in tiles:
        name = str(tile) if tile else "whole"
        if tile:
            options.append(
                Option(name, say("vae.why.tiles", "The picture is decoded in tiles of {pixels} {pixels:pixel|pixels}.", pixels=tile))
            )
        needed = vae_bytes(need.width, need.height, each.compute, Vae(True, tile, unfolds), each.device)
        if room >= needed > before and tile != tiles[-1]:
            kept = say("vae.kept", "Memory ran out here before, so the tiles stay small even though more memory is free now.")
            more[name] = [Reason("vae", kept, LEARNED_HERE)]
        elif needed > room:
            words = say(
                "vae.room",
                "Decoding this way takes {gib} GiB, and {room} GiB are left beside the weights, so the tiles are smaller.",
                gib=gib(needed),
                room=gib(max(0, room)),
            )
            source = "docs/speed-pictures.md" if each.device == "cpu" else "InvokeAI's rule of 2200 bytes a pixel"
            more[name] = [Reason("vae", words, source)]
    decision = decide_field(situation, "vae", options, None, more, frugal=True)
    # Decoding one picture of a batch at a time is exact and saves memory: always done.
    return Vae(True, 0 if decision.option == "whole" else int(decision.option), unfolds), decision
