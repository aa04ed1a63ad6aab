"""Will it fit, and how long will it take: from formulas and from this machine's own measurements. Pure, and imports no torch."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from app.compat.hardware import Hardware
from app.compat.memory import peak_bytes, weights_bytes
from app.compat.plan import Choice, Need, Plan, decide
from app.compat.verdicts import Verdict
from app.engine.model import Model, need
from app.engine.request import PictureRequest, Request
from app.engine.shelf import Creation
from app.sentence import Sentence, Trouble, say

TIGHT = 0.85
"""Of what is free; above it other programs begin to suffer."""
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Cure:
    """A change that makes it fit."""

    sentence: Sentence
    request: Request
    choice: Choice


@dataclass(frozen=True, slots=True)
class Forecast:
    fit: Literal["fits", "tight", "no"]
    sentence: Sentence
    peak_bytes: int
    weights_bytes: int
    free_bytes: int
    seconds: float | None
    """None: never measured on this machine."""
    plan: Plan | None
    """None where not even a plan can be made."""
    cures: tuple[Cure, ...] = ()


def forecast(
    request: Request,
    model: Model,
    hardware: Hardware,
    choice: Choice,
    verdicts: Mapping[str, Verdict],
    held_bytes: int = 0,
    past: Iterable[Creation] = (),
    frames: int = 0,
) -> Forecast:
    """`held_bytes`: what Hearth itself holds and would give back. `frames`: how much speech the script is thought to need."""
    asked = asks(model, request)
    free = hardware.free_bytes + held_bytes
    seconds = seconds_of(request, model, past, frames)
    try:
        plan = decide(hardware, asked, choice, verdicts)
    except Trouble as trouble:
        return Forecast("no", trouble.sentence, 0, 0, free, None, None)
    peak = peak_bytes(asked, plan)
    fit, sentence = judged(peak, free)
    cures = tuple(cured(request, model, hardware, choice, verdicts, free)) if fit == "no" else ()
    return Forecast(fit, sentence, peak, weights_bytes(asked, plan), free, seconds, plan, cures)


def asks(model: Model, request: Request) -> Need:
    if isinstance(request, PictureRequest):
        return need(model, width=request.width, height=request.height, guidance=request.guidance)
    return need(model)


def judged(peak: int, free: int) -> tuple[Literal["fits", "tight", "no"], Sentence]:
    gigabytes = {"peak": round(peak / GIB, 1), "free": round(free / GIB, 1)}
    if peak <= TIGHT * free:
        return "fits", say("forecast.fits", "Fits: about {peak} GB at its highest, {free} GB are free.", **gigabytes)
    if peak <= free:
        return "tight", say(
            "forecast.tight",
            "Tight: about {peak} GB at its highest, {free} GB are free. Closing other programs helps.",
            **gigabytes,
        )
    return "no", say(
        "forecast.no", "Would not fit: about {peak} GB at its highest, only {free} GB are free.", **gigabytes
    )


def cured(
    request: Request, model: Model, hardware: Hardware, choice: Choice, verdicts: Mapping[str, Verdict], free: int
) -> Iterator[Cure]:
    """Single changes that make it fit, the mildest first."""
    changes: list[tuple[Sentence, Request, Choice]] = [
        (
            say("cure.chunk", "Work in chunks of {chunk}.", chunk=chunk),
            request,
            dataclasses.replace(choice, chunk=chunk),
        )
        for chunk in (512, 128)
    ]
    changes += [
        (say("cure.offload", "Keep waiting parts off the card."), request, dataclasses.replace(choice, offload=offload))
        for offload in ("model", "sequential")
    ]  # fmt: skip
    if isinstance(request, PictureRequest):
        now = (request.width or model.settings.width) * (request.height or model.settings.height)
        changes += [
            (say("cure.size", "Paint {width} x {height} instead.", width=width, height=height), dataclasses.replace(request, width=width, height=height), choice)
            for width, height in sorted(model.settings.sizes, key=lambda size: -size[0] * size[1])
            if width * height < now
        ]  # fmt: skip
    seen: set[str] = set()
    for sentence, changed, chosen in changes:
        try:
            plan = decide(hardware, asks(model, changed), chosen, verdicts)
        except Trouble:
            continue
        if sentence.key not in seen and peak_bytes(asks(model, changed), plan) <= free:
            seen.add(sentence.key)
            yield Cure(sentence, changed, chosen)


def seconds_of(request: Request, model: Model, past: Iterable[Creation], frames: int) -> float | None:
    """From how fast this machine was with this model before. Steps of another size are scaled by their pixels."""
    times = []
    for creation in past:
        if creation.model != model.id or creation.rate <= 0:
            continue
        if isinstance(request, PictureRequest):
            before = creation.settings
            ratio = pixels(request.width, request.height, model) / pixels(
                before.get("width"), before.get("height"), model
            )
            steps = request.steps or model.recommended(request.scheduler).steps
            times.append(steps * request.batch * ratio / creation.rate)
        elif frames:
            times.append(frames / creation.rate)
    return statistics.median(times) if times else None


def pixels(width: int | None, height: int | None, model: Model) -> int:
    return (width or model.settings.width or 1) * (height or model.settings.height or 1)
