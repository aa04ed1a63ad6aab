"""Forecast memory and time from formulas and this machine's measurements. Pure, and imports no torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware, as_processor
from app.compat.planning.memory_formulas import TIGHT, free_bytes, gib, peak_bytes, round_apart, sent_bytes, weights_bytes
from app.compat.planning.types import AUTO, Choice, Need, Offload, Plan, Quantised
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import Request
from app.engine.models.model import Model, ModelSettings
from app.engine.models.planned import Setup, find_need

GIB = 1 << 30
OFFLOADS: Final[tuple[Offload, ...]] = ("model", "group", "sequential")
QUANTISED: Final[tuple[Quantised, ...]] = ("int8", "int4", "torchao-int8", "bnb-int8", "bnb-nf4", "gguf")
FRACTIONS: Final = (0.75, 0.5)


@dataclass(frozen=True, slots=True)
class Cure:
    """A change that makes it fit."""

    sentence: Sentence
    request: Request
    setup: Setup


@dataclass(frozen=True, slots=True)
class Forecast:
    fit: Literal["fits", "tight", "no"]
    sentence: Sentence
    plan: Plan | None
    """None: no plan is possible."""
    cures: tuple[Cure, ...] = ()


def make_forecast(setup: Setup, request: Request, model: Model) -> Forecast:
    """Forecast a request's memory."""
    hardware, need = setup.hardware, find_need(setup.home, setup.hardware, model, request)
    try:
        plan = setup.plan(model, request)
    except Trouble as trouble:
        return Forecast("no", trouble.sentence, None, tuple(find_cures(setup, request, model, hardware)))
    computing = as_processor(hardware) if plan.device == "cpu" != hardware.kind else hardware
    fit, sentence = judge_plan(need, plan, computing)
    cures = tuple(find_cures(setup, request, model, computing)) if fit == "no" else ()
    if fit != "no" and (sent := gib(sent_bytes(need, plan))):
        sentence = say(
            "forecast.sent",
            "{memory} {sent} GB of its weights are sent to the card at each step, which takes longer.",
            memory=sentence,
            sent=sent,
        )
    return Forecast(fit, sentence, plan, cures)


def judge_plan(need: Need, plan: Plan, computing: Hardware) -> tuple[Literal["fits", "tight", "no"], Sentence]:
    """Judge the device's memory, and the computer's own beside a card, where all weights wait that take turns on it."""
    fit, sentence = judge(peak_bytes(need, plan), free_bytes(computing))
    waiting, ram_bytes = weights_bytes(need, plan), computing.ram_bytes
    if fit == "no" or plan.offload == "none" or computing.unified or waiting <= TIGHT * ram_bytes or not ram_bytes:
        return fit, sentence
    needed, there = round_apart(waiting, ram_bytes)
    if waiting <= ram_bytes:
        words = say(
            "forecast.tight-main", "Its weights need about {weights} of the computer's {ram} GB of main memory.", weights=needed, ram=there
        )
        return "tight", words
    words = say(
        "forecast.no-main",
        "Its weights need about {weights} GB of the computer's main memory, which has only {ram} GB.",
        weights=needed,
        ram=there,
    )
    return "no", words


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


def find_cures(setup: Setup, request: Request, model: Model, computing: Hardware) -> Iterator[Cure]:
    """Find single changes that make it fit, the mildest first; of each kind the first that works. `computing`: the machine as it
    computes: without its card, where that is wrong."""
    setup = replace(setup, yields=False)

    def fits(cure: Cure) -> bool:
        try:
            plan = cure.setup.plan(model, cure.request)
        except Trouble:
            return False
        return judge_plan(find_need(setup.home, setup.hardware, model, cure.request), plan, computing)[0] != "no"

    for alike in _vary_plan(setup, computing.unified):
        yield from islice(filter(fits, (Cure(words, request, changed) for words, changed in alike)), 1)
    yield from islice(filter(fits, (Cure(words, smaller, setup) for words, smaller in _vary_size(request, model))), 1)


def _vary_plan(setup: Setup, unified: bool) -> Iterator[Iterable[tuple[Sentence, Setup]]]:
    """Vary the plan of the same request, in each way by several values."""
    if (setup.choice, setup.chunk) != (Choice(), AUTO):
        yield [(say("cure.automatic", "Set everything to automatic."), replace(setup, choice=Choice(), chunk=AUTO))]
    yield [(say("cure.chunk", "Use a chunk size of {chunk}.", chunk=size), replace(setup, chunk=size)) for size in (512, 128)]

    def choose(**values: Any) -> Setup:
        return replace(setup, choice=replace(setup.choice, **values))

    if unified:
        yield [(say("cure.offload-file", "Move idle parts to disk."), choose(offload="model"))]
    else:
        yield [(say("cure.offload", "Move idle parts off the GPU."), choose(offload=each)) for each in OFFLOADS]
    words = {kind: say("cure.quantised", "Use {kind} weights: smaller, and nearly as good.", kind=kind) for kind in QUANTISED}
    yield [(words[kind], choose(quantised=kind)) for kind in QUANTISED]


def _vary_size(request: Request, model: Model) -> Iterator[tuple[Sentence, Request]]:
    """Make the picture smaller: to sizes that its makers recommend, then to fractions of the size asked for."""
    settings = model.settings
    width, height = request.size[0] or settings.width, request.size[1] or settings.height  # a script has none, and its model neither
    fractions = ((_scale_side(width, part, settings), _scale_side(height, part, settings)) for part in FRACTIONS)
    recommended = sorted(settings.sizes, key=lambda size: -size[0] * size[1])
    for across, down in (*recommended, *fractions):
        if across * down < width * height:
            words = say("cure.size", "Paint {width} x {height} instead.", width=across, height=down)
            yield words, request.with_size(across, down)


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
