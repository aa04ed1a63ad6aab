"""Forecast memory and time from formulas and this machine's measurements. Pure, and imports no torch."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, starmap
from typing import Final, Literal

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware, as_processor
from app.compat.machine.verdicts import Verdicts
from app.compat.planning.memory_formulas import TIGHT, free_bytes, gib, peak_bytes, round_apart
from app.compat.planning.types import AUTO, Choice, Chunk, Offload, Plan, Quantised
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import Request
from app.engine.models.model import Model, ModelSettings
from app.engine.models.planned import find_need, make_plan

GIB = 1 << 30
OFFLOADS: Final[tuple[Offload, ...]] = ("model", "group", "sequential")
QUANTISED: Final[tuple[Quantised, ...]] = ("int8", "int4", "torchao-int8", "bnb-int8", "bnb-nf4", "gguf")
FRACTIONS: Final = (0.75, 0.5)


@dataclass(frozen=True, slots=True)
class Cure:
    """A change that makes it fit."""

    sentence: Sentence
    request: Request
    choice: Choice
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Forecast:
    fit: Literal["fits", "tight", "no"]
    sentence: Sentence
    plan: Plan | None
    """None if no plan is possible."""
    cures: tuple[Cure, ...] = ()


def make_forecast(
    home: Home, request: Request, model: Model, hardware: Hardware, choice: Choice, verdicts: Verdicts, *, chunk: Chunk = AUTO,
    yields: bool = False,
) -> Forecast:  # fmt: skip
    """Forecast a request's memory. `hardware` as it is now; memory that Hearth itself holds and would release counts as
    free. `yields`: for a guest, as in `planned`."""
    need = find_need(home, hardware, model, request)
    try:
        plan = make_plan(home, hardware, model, choice, verdicts, request, chunk=chunk, yields=yields)
    except Trouble as trouble:
        cures = tuple(find_cures(home, request, model, hardware, hardware, choice, chunk, verdicts))
        return Forecast("no", trouble.sentence, None, cures)
    place = as_processor(hardware) if plan.device == "cpu" != hardware.kind else hardware
    fit, sentence = judge(peak_bytes(need, plan), free_bytes(place))
    cures = tuple(find_cures(home, request, model, hardware, place, choice, chunk, verdicts)) if fit == "no" else ()
    return Forecast(fit, sentence, plan, cures)


def judge(peak: int, free: int) -> tuple[Literal["fits", "tight", "no"], Sentence]:
    gigabytes = {"peak": gib(peak), "free": gib(free)}
    if peak <= TIGHT * free:
        return "fits", say("forecast.fits", "Takes about {peak} of the {free} GB that are free.", **gigabytes)
    if peak <= free:
        return "tight", say(
            "forecast.tight", "Needs about {peak} GB at its peak; {free} GB are free. Closing other programs helps.", **gigabytes
        )
    needed, there = round_apart(peak, free)
    return "no", say("forecast.no", "Needs about {peak} GB at its peak, but only {free} GB are free.", peak=needed, free=there)


def find_cures(
    home: Home, request: Request, model: Model, hardware: Hardware, place: Hardware, choice: Choice, chunk: Chunk, verdicts: Verdicts
) -> Iterator[Cure]:
    """Find single changes that make it fit, the mildest first; of each kind the first that works. `place`: the machine as it
    computes: without its card, where that is wrong."""

    def fits(cure: Cure) -> bool:
        try:
            plan = make_plan(home, hardware, model, cure.choice, verdicts, cure.request, chunk=cure.chunk)
        except Trouble:
            return False
        return peak_bytes(find_need(home, hardware, model, cure.request), plan) <= free_bytes(place)

    for alike in (*_vary_plan(request, choice, chunk, place.unified), _vary_size(request, model, choice, chunk)):
        yield from islice(filter(fits, starmap(Cure, alike)), 1)


Change = tuple[Sentence, Request, Choice, Chunk]


def _vary_plan(request: Request, choice: Choice, chunk: Chunk, unified: bool) -> Iterator[Iterable[Change]]:
    """Vary the plan of the same request, in each way by several values."""
    if (choice, chunk) != (Choice(), AUTO):
        yield [(say("cure.automatic", "Set everything to automatic."), request, Choice(), AUTO)]
    yield [(say("cure.chunk", "Use a chunk size of {chunk}.", chunk=size), request, choice, size) for size in (512, 128)]
    if not unified:
        words = say("cure.offload", "Move idle parts off the GPU.")
        yield [(words, request, dataclasses.replace(choice, offload=each), chunk) for each in OFFLOADS]
    else:
        yield [(say("cure.offload-file", "Move idle parts to disk."), request, dataclasses.replace(choice, offload="model"), chunk)]
    yield [
        (
            say("cure.quantised", "Use {kind} weights: smaller, and nearly as good.", kind=kind),
            request,
            dataclasses.replace(choice, quantised=kind),
            chunk,
        )
        for kind in QUANTISED
    ]


def _vary_size(request: Request, model: Model, choice: Choice, chunk: Chunk) -> Iterator[Change]:
    """Make the picture smaller: to sizes that its makers recommend, then to fractions of the size asked for."""
    settings = model.settings
    width, height = request.size[0] or settings.width, request.size[1] or settings.height  # a script has none, and its model neither
    fractions = ((_scale_side(width, part, settings), _scale_side(height, part, settings)) for part in FRACTIONS)
    recommended = sorted(settings.sizes, key=lambda size: -size[0] * size[1])
    for across, down in (*recommended, *fractions):
        if across * down < width * height:
            words = say("cure.size", "Paint {width} x {height} instead.", width=across, height=down)
            yield words, request.with_size(across, down), choice, chunk


def _scale_side(side: int, part: float, settings: ModelSettings) -> int:
    return max(settings.least, int(side * part) // settings.multiple * settings.multiple)


def list_alike(past: Iterable[Creation], plan: Plan) -> list[Creation]:
    """List what was made as the plan would: on its device, in its precision, with its weights. Rows of an older Hearth may lack some."""
    names = ("device", "runs_on", "dtype", "quantised", "offload")
    return [each for each in past if all(each.plan.get(name) in (None, getattr(plan, name)) for name in names)]


def list_measured(past: Iterable[Creation], model: Model) -> list[Creation]:
    """List what this model made at a speed that is known."""
    return [each for each in past if each.model == model.id and 0 < each.rate < math.inf]


def take_median(times: Sequence[float]) -> float | None:
    return statistics.median(times) if times else None
