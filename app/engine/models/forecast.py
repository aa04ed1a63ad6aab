"""Forecast memory and time from formulas and this machine's measurements. Pure, and imports no torch."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator
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
from app.engine.jobs import quicker
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import PictureRequest, Request
from app.engine.models import at_once
from app.engine.models.model import Model, ModelSettings, is_guided
from app.engine.models.planned import find_need, make_plan

GIB = 1 << 30
OFFLOADS: Final[tuple[Offload, ...]] = ("model", "group", "sequential")
QUANTISED: Final[tuple[Quantised, ...]] = ("int8", "int4", "torchao-int8", "bnb-int8", "bnb-nf4", "gguf")
FRACTIONS: Final = (0.75, 0.5)
_WEIGHED: Final = ("width", "height", "guidance", "scheduler", "steps", "image", "strength", "quicker", "batch")


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
    elif request.kind == "picture":  # a voice's two parts alternate all the time: neither is idle
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
    if not isinstance(request, PictureRequest):
        return
    settings = model.settings
    width, height = request.width or settings.width, request.height or settings.height
    fractions = ((_scale_side(width, part, settings), _scale_side(height, part, settings)) for part in FRACTIONS)
    recommended = sorted(settings.sizes, key=lambda size: -size[0] * size[1])
    for across, down in (*recommended, *fractions):
        if across * down < width * height:
            smaller = dataclasses.replace(request, width=across, height=down)
            yield say("cure.size", "Paint {width} x {height} instead.", width=across, height=down), smaller, choice, chunk


def _scale_side(side: int, part: float, settings: ModelSettings) -> int:
    return max(settings.least, int(side * part) // settings.multiple * settings.multiple)


def list_alike(past: Iterable[Creation], plan: Plan) -> list[Creation]:
    """List what was made as the plan would: on its device, in its precision, with its weights. Rows of an older Hearth may lack some."""
    names = ("device", "runs_on", "dtype", "quantised", "offload")
    return [each for each in past if all(each.plan.get(name) in (None, getattr(plan, name)) for name in names)]


def estimate_seconds(request: Request, model: Model, past: Iterable[Creation], frames: int = 0, plan: Plan | None = None) -> float | None:
    """Estimate from this machine's earlier speed with this model; None if it was never measured. Steps at another size are
    scaled by their pixels. `frames`: the estimated length of speech; `plan`: of a picture, without which none are painted together."""
    times = []
    for creation in past:
        if creation.model != model.id or not 0 < creation.rate < math.inf:
            continue
        if isinstance(request, PictureRequest):
            try:
                before = _read_weighed(creation)
                ratio = weigh_step(model, request) / weigh_step(model, before)
                ratio *= _weigh_batch(request, model, *((plan.device, plan.chunk_q) if plan else ("", AUTO)))
                ratio /= _weigh_batch(before, model, creation.plan.get("device", ""), creation.plan.get("chunk_q", AUTO))
            except Trouble:  # settings of a newer Hearth
                continue
            times.append(count_steps(request, model) * request.batch * ratio / creation.rate)
        elif frames > 0:
            times.append(frames / creation.rate)
    return statistics.median(times) if times else None


def _weigh_batch(request: PictureRequest, model: Model, device: str, chunk_q: Chunk) -> float:
    """Weigh a picture of a batch by one that is painted alone, with memory for as many at once as gain something."""
    width, height = request.width or model.settings.width, request.height or model.settings.height
    return at_once.estimate_share(dataclasses.replace(request, width=width, height=height), model, device, chunk_q, math.inf)


def _read_weighed(creation: Creation) -> PictureRequest:
    """Return what weighs a step of an earlier picture; rows of an older Hearth may lack some of it."""
    return PictureRequest(creation.text or "?", **{name: creation.settings[name] for name in _WEIGHED if name in creation.settings})


def count_steps(request: PictureRequest, model: Model) -> int:
    """Count the steps; from a start picture only the last part of them runs."""
    steps = request.steps or model.recommended(request.scheduler).steps
    return max(1, int(steps * request.strength)) if request.image else steps


def weigh_step(model: Model, request: Request) -> float:
    """Weigh an average step of a request by its pixels; guidance doubles it, "quicker" spares some. Rows of speech are alike."""
    if not isinstance(request, PictureRequest):
        return 1.0
    settings = model.recommended(request.scheduler)
    pixels = (request.width or settings.width or 1) * (request.height or settings.height or 1)
    return pixels * (2 if _guides(request, model) else 1) * estimate_share(request, model)


def estimate_share(request: PictureRequest, model: Model) -> float:
    """Estimate what "quicker" leaves of the steps' time."""
    return quicker.estimate_share(request.quicker, model.family, _guides(request, model), count_steps(request, model))


def compare_few_steps(request: PictureRequest, model: Model) -> float:
    """Return what a few-steps LoRA leaves of the steps' time that its model takes without one; 1 where the request has none."""
    if model.plain is None or model.recommended(request.scheduler) is model.plain:
        return 1.0
    few = dataclasses.replace(request, quicker="off")
    without = dataclasses.replace(few, scheduler=model.plain.scheduler, steps=None, guidance=None)
    taken, spared = (count_steps(each, model) * weigh_step(model, each) for each in (few, without))
    return taken / spared


def _guides(request: PictureRequest, model: Model) -> bool:
    recommended = model.recommended(request.scheduler).guidance
    return is_guided(model, recommended if request.guidance is None else request.guidance)
